"""A server of a few lines, for whatever a test has it do."""

from tests.tools.servers_world import PYTHON

LINES = """
import json, os, sys
def say(text):
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()
def reply(request, **result):
    say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}))
def serve(call):
    for line in sys.stdin:
        request = json.loads(line)
        if request["method"] == "initialize":
            reply(request, protocolVersion="2025-06-18", capabilities={"tools": {}},
                  serverInfo={"name": "lines", "version": "1"})
        elif request["method"] == "tools/call":
            call(request)
        elif request["method"] == "tools/list":
            reply(request, tools=[{"name": "it", "inputSchema": {"type": "object"}}])
        elif "id" in request:
            say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}}))
def text(request, said):
    reply(request, content=[{"type": "text", "text": said}])
"""


def lines(*more: str) -> tuple[str, ...]:
    return (PYTHON, "-I", "-c", LINES + "\n".join(more))
