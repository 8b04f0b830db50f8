"""PydanticAI with file tools over its local workspace, and the history of messages handed on: the tasks of bench_tasks.

It runs in an environment of its own. A line of standard input is a message, and a line of standard output answers it:
the last text, or the error that ended it. PydanticAI sends the whole history unless its user writes a processor.
"""
# pyright: reportMissingImports=false

import json
import re
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    base_url, _, root = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    from anthropic import AsyncAnthropic
    from pydantic_ai import Agent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.usage import UsageLimits

    client = AsyncAnthropic(base_url=base_url, api_key="none", max_retries=0)
    model: Any = AnthropicModel("scripted", provider=AnthropicProvider(anthropic_client=client))
    agent: Any = Agent(model, model_settings={"max_tokens": 1500})

    @agent.tool_plain
    def read_file(path: str) -> str:  # pyright: ignore[reportUnusedFunction] -- it is registered
        """Read a file."""
        return (root / path).read_text(encoding="utf-8")

    @agent.tool_plain
    def write_file(path: str, text: str) -> str:  # pyright: ignore[reportUnusedFunction] -- it is registered
        """Write a file."""
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
        return "written"

    @agent.tool_plain
    def search_files(pattern: str, path: str) -> str:  # pyright: ignore[reportUnusedFunction] -- it is registered
        """Search files for a regular expression."""
        found = [
            f"{file.relative_to(root)}: {line}"
            for file in sorted((root / path).rglob("*.*"))
            for line in file.read_text(encoding="utf-8").splitlines()
            if re.search(pattern, line)
        ]
        return "\n".join(found) or "nothing was found"

    history: Any = None
    for line in sys.stdin:
        try:
            done = agent.run_sync(
                json.loads(line), message_history=history, usage_limits=UsageLimits(request_limit=None)
            )
            history, answer = done.all_messages(), {"text": done.output}
        except Exception as error:  # noqa: BLE001 - how it ends is what is measured
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), flush=True)


main()
