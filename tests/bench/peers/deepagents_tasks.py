"""deepagents with its file tools over a directory, its summarization, and a thread in memory: the tasks of bench_tasks.

It runs in an environment of its own. A line of standard input is a message, and a line of standard output answers it:
the last text, or the error that ended the thread.
"""
# pyright: reportMissingImports=false

import json
import sys
from typing import Any


def main() -> None:
    base_url, window, root = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    from deepagents import create_deep_agent
    from deepagents.backends.filesystem import FilesystemBackend
    from langchain_anthropic import ChatAnthropic
    from langgraph.checkpoint.memory import InMemorySaver

    # The profile tells its summarization how large the window is; without one it would never begin.
    model: Any = ChatAnthropic(
        model="scripted", base_url=base_url, api_key="none", max_tokens=1500, max_retries=0,
        profile={"max_input_tokens": window - 1500},
    )  # fmt: skip
    agent: Any = create_deep_agent(
        model, backend=FilesystemBackend(root_dir=root, virtual_mode=True), checkpointer=InMemorySaver()
    )
    thread: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 2_000}
    for line in sys.stdin:
        try:
            state = agent.invoke({"messages": [("user", json.loads(line))]}, thread)
            answer = {"text": state["messages"][-1].text}
        except Exception as error:  # noqa: BLE001 - how it ends is what is measured
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), flush=True)


main()
