"""langgraph with its SQLite checkpointer and its SQLite store: a graph of a node that calls the SDK, and, where a tool
is wanted, of one that runs it.

The thread holds every message; the node sends the newest ones. A fact goes to the store, which is asked at each turn
(without vectors, which would need an extension of SQLite). `delta`: messages are in its channel that writes only what
is new, which is in beta.
"""
# pyright: reportMissingImports=false, reportMissingTypeArgument=false

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

from tests.bench.peers.bare_sdk import client_for, streamed
from tests.bench.peers.giant_tool import read_everything
from tests.bench.peers.lines import INSTRUCTIONS, KEPT_TURNS, MARK, serve

FOUND = 4
FACTS = ("dana", "facts")
SCHEMA = {"type": "object", "properties": {}}
TOOL: Any = {"name": read_everything.__name__, "description": read_everything.__doc__, "input_schema": SCHEMA}
THREAD: Any = {"configurable": {"thread_id": "1"}}


class Graph:
    def __init__(self, base_url: str, directory: Path, more: str = "") -> None:
        from langgraph.checkpoint.sqlite import SqliteSaver
        from langgraph.graph import END, START, MessagesState, StateGraph
        from langgraph.store.sqlite import SqliteStore

        self._client = client_for(base_url)
        self._threads = sqlite3.connect(directory / "threads.db", check_same_thread=False)
        self._facts = sqlite3.connect(directory / "facts.db", check_same_thread=False, isolation_level=None)
        self._store = SqliteStore(self._facts)
        self._store.setup()
        builder: Any = StateGraph(_delta_state() if more == "delta" else MessagesState)
        builder.add_node("answer", self._answer)
        builder.add_edge(START, "answer")
        self._tools = [TOOL] if more == "survives" else []
        if self._tools:
            builder.add_node("tools", self._run_tools)
            builder.add_conditional_edges("answer", lambda state: "tools" if state["messages"][-1].tool_calls else END)
            builder.add_edge("tools", "answer")
        self._graph: Any = builder.compile(checkpointer=SqliteSaver(self._threads), store=self._store)

    def _answer(self, state: Any) -> Any:
        from langchain_core.messages import AIMessage

        newest = state["messages"][-2 * KEPT_TURNS + 1 :]
        text = newest[-1].content if newest[-1].type == "human" else ""
        offered: Any = {"tools": self._tools} if self._tools else {}
        found = [str(item.value["text"]) for item in self._store.search(FACTS, limit=FOUND)]
        system = "\n".join([INSTRUCTIONS, *found])
        message = streamed(self._client, [_sent(each) for each in newest], system, **offered)
        if text.startswith(MARK):
            self._store.put(FACTS, f"{len(state['messages'])}", {"text": text})
        answer = "".join(block.text for block in message.content if block.type == "text")
        uses = [block for block in message.content if block.type == "tool_use"]
        calls: Any = [{"id": block.id, "name": block.name, "args": block.input} for block in uses]
        return {"messages": [AIMessage(content=answer, tool_calls=calls)]}

    def _run_tools(self, state: Any) -> Any:
        from langchain_core.messages import ToolMessage

        calls = state["messages"][-1].tool_calls
        return {"messages": [ToolMessage(content=read_everything(), tool_call_id=call["id"]) for call in calls]}

    def grow(self, turns: Sequence[Sequence[str]]) -> None:
        from langchain_core.messages import AIMessage, HumanMessage

        pairs = [(HumanMessage(content=text), AIMessage(content=answer)) for text, answer in turns]
        self._graph.update_state(THREAD, {"messages": [each for pair in pairs for each in pair]}, as_node="answer")
        for number, (text, _) in enumerate(turns):
            if text.startswith(MARK):
                self._store.put(FACTS, f"grown {number}", {"text": text})

    def turn(self, text: str) -> str:
        return self._graph.invoke({"messages": [("user", text)]}, THREAD)["messages"][-1].content

    def resume(self) -> str:
        """Invoke the same thread with nothing new, as its documentation says for after a failure."""
        return self._graph.invoke(None, THREAD)["messages"][-1].content

    def said(self) -> list[str]:
        messages = self._graph.get_state(THREAD).values.get("messages", [])
        return [each.content for each in messages if each.type == "human"]

    def close(self) -> None:
        self._client.close()
        self._threads.close()
        self._facts.close()


def _delta_state() -> Any:
    from langgraph.channels import DeltaChannel
    from langgraph.graph.message import _messages_delta_reducer

    return TypedDict("State", {"messages": Annotated[list, DeltaChannel(_messages_delta_reducer)]})


def _sent(message: Any) -> Any:
    if message.type == "human":
        return {"role": "user", "content": message.content}
    if message.type == "tool":
        result = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.content}
        return {"role": "user", "content": [result]}
    uses = [{"id": call["id"], "name": call["name"], "input": call["args"]} for call in message.tool_calls]
    return {"role": "assistant", "content": [{"type": "tool_use", **use} for use in uses] or message.content}


if __name__ == "__main__":
    serve(Graph)
