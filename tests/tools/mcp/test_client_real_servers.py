"""Servers that others wrote, as they are published: over a plain pipe, which says nothing about the sandbox."""

import sys
from pathlib import Path

import pytest
from tests.tools.mcp.wires import CONTEXT, Answers, allowed, connections

from everloop.errors import ToolError
from everloop.ports.mcp import McpServer

VENV = Path(sys.prefix)
TIME = VENV / "mcp-servers" / "bin" / "mcp-server-time"
EVERYTHING = VENV / "mcp-node" / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
NODE = VENV / "mcp-node" / "bin" / "node"


def needs(*files: Path) -> pytest.MarkDecorator:
    missing = [file.name for file in files if not file.exists()]
    return pytest.mark.skipif(bool(missing), reason=f"there is no {' and no '.join(missing)} in {VENV.name}")


@needs(TIME)
async def test_the_time_is_told_by_mcp_server_time():
    server = McpServer(name="time", command=(str(TIME), "--local-timezone", "UTC"))
    async with connections() as client:
        pins = await allowed(client, server)
        assert [*pins] == ["get_current_time", "convert_time"]
        told = await client.call(server, pins["get_current_time"], {"timezone": "Europe/Berlin"}, CONTEXT)
        assert '"timezone": "Europe/Berlin"' in told.text
        with pytest.raises(ToolError, match="Invalid timezone"):
            await client.call(server, pins["get_current_time"], {"timezone": "Nowhere"}, CONTEXT)


@needs(EVERYTHING, NODE)
async def test_server_everything_is_spoken_with_in_all_it_can():
    server = McpServer(name="everything", command=(str(NODE), str(EVERYTHING), "stdio"), sampling=True, seconds=30.0)
    progress: list[str] = []
    answer = {"role": "assistant", "content": {"type": "text", "text": "sampled"}, "model": "m"}
    async with connections(questions=Answers(answer), told=lambda context, text: progress.append(text)) as client:
        pins = await allowed(client, server)
        echoed = await client.call(server, pins["echo"], {"message": "hi"}, CONTEXT)
        added = await client.call(server, pins["get-sum"], {"a": 1, "b": 2}, CONTEXT)
        image = await client.call(server, pins["get-tiny-image"], {}, CONTEXT)
        steps = {"duration": 1, "steps": 2}
        await client.call(server, pins["trigger-long-running-operation"], steps, CONTEXT)
        resources, prompts = await client.resources(server), await client.prompts(server)
    assert "Echo: hi" in echoed.text
    assert "The sum of 1 and 2 is 3." in added.text
    assert [picture.mime for picture in image.pictures] == ["image/png"]
    assert progress[0].startswith("1/2")
    assert "demo://resource" in resources
    assert "- simple-prompt()" in prompts
