"""A little MCP server over stdio, as one line of Python for the command line: it says what its variables say."""

import sys

CODE = """
import json, os, sys
def tool(name, said, **more):
    return {"name": name, "description": said, "inputSchema": {"type": "object"}, **more}
tools = [tool("greet", os.environ.get("SAID", "Greets."), annotations={"readOnlyHint": True})]
tools += [tool("secret", "Says how long its key is.")]
def answer(method, params):
    if method == "initialize":
        info = {"name": "little", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": tools}
    if method == "tools/call":
        key = str(len(os.environ.get("API_KEY", "")))
        text = key if params["name"] == "secret" else "Hello " + params.get("arguments", {}).get("who", "you")
        return {"content": [{"type": "text", "text": text}]}
    return {}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked["method"], asked.get("params"))}))
        sys.stdout.flush()
"""
COMMAND = (sys.executable, "-c", CODE)
