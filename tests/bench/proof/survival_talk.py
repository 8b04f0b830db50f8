"""What the model says where something goes wrong.

"use your tool" makes it call `read_everything`, if it was offered; everything else is answered in a word.
"""

from __future__ import annotations

from typing import Any

from tests.bench.peers.giant_tool import read_everything
from tests.standin import Reply, call

Json = dict[str, Any]
WISH = "use your tool"


def reply(params: Json) -> Reply:
    content = params["messages"][-1]["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    offered = {tool["name"] for tool in params.get("tools") or []}
    said = blocks[0].get("text", "")
    if said.startswith(WISH) and read_everything.__name__ in offered:
        return Reply(call(read_everything.__name__))
    if said.startswith("Remember: ") and "memory" in offered:
        name = "".join(letter for letter in said if letter.isalnum())[:40]
        given = {"command": "create", "path": f"/memories/{name}.md", "file_text": said}
        return Reply(call("memory", given))
    return Reply("Noted.")
