"""langgraph with its SQLite checkpointer and its SQLite store: a graph of one node that calls the SDK.

The thread holds every message; the node sends the newest ones. A fact goes to the store, which is asked at each turn
(without vectors, which would need an extension of SQLite).
"""
# pyright: reportMissingImports=false, reportMissingTypeArgument=false

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anthropic

from tests.bench.peers.lines import INSTRUCTIONS, KEPT_TURNS, MARK, MAX_TOKENS, MODEL, serve

FOUND = 4
FACTS = ("dana", "facts")
ROLES = {"human": "user", "ai": "assistant"}
THREAD: Any = {"configurable": {"thread_id": "1"}}


class Graph:
    def __init__(self, base_url: str, directory: Path) -> None:
        from langgraph.checkpoint.sqlite import SqliteSaver
        from langgraph.graph import START, MessagesState, StateGraph
        from langgraph.store.sqlite import SqliteStore

        self._client = anthropic.Anthropic(base_url=base_url, api_key="none", max_retries=0)
        self._threads = sqlite3.connect(directory / "threads.db", check_same_thread=False)
        self._facts = sqlite3.connect(directory / "facts.db", check_same_thread=False, isolation_level=None)
        self._store = SqliteStore(self._facts)
        self._store.setup()
        builder: Any = StateGraph(MessagesState)
        builder.add_node("answer", self._answer)
        builder.add_edge(START, "answer")
        self._graph: Any = builder.compile(checkpointer=SqliteSaver(self._threads), store=self._store)

    def _answer(self, state: Any) -> Any:
        from langchain_core.messages import AIMessage

        newest = state["messages"][-2 * KEPT_TURNS + 1 :]
        text = newest[-1].content
        found = [str(item.value["text"]) for item in self._store.search(FACTS, limit=FOUND)]
        with self._client.messages.stream(
            model=MODEL, max_tokens=MAX_TOKENS, system="\n".join([INSTRUCTIONS, *found]),
            messages=[{"role": ROLES[each.type], "content": each.content} for each in newest],  # type: ignore[typeddict-item]
        ) as stream:  # fmt: skip
            for _ in stream:
                pass
            message: Any = stream.get_final_message()
        if text.startswith(MARK):
            self._store.put(FACTS, f"{len(state['messages'])}", {"text": text})
        return {"messages": [AIMessage(content=message.content[0].text)]}

    def grow(self, turns: Sequence[Sequence[str]]) -> None:
        from langchain_core.messages import AIMessage, HumanMessage

        pairs = [(HumanMessage(content=asked), AIMessage(content=answer)) for asked, answer in turns]
        self._graph.update_state(THREAD, {"messages": [each for pair in pairs for each in pair]}, as_node="answer")
        for number, (asked, _) in enumerate(turns):
            if asked.startswith(MARK):
                self._store.put(FACTS, f"grown {number}", {"text": asked})

    def turn(self, text: str) -> str:
        done = self._graph.invoke({"messages": [("user", text)]}, THREAD)
        return done["messages"][-1].content

    def resume(self) -> str:
        """What its documentation says after a failure: the same thread, with nothing new."""
        done = self._graph.invoke(None, THREAD)
        return done["messages"][-1].content

    def said(self) -> list[str]:
        messages = self._graph.get_state(THREAD).values.get("messages", [])
        return [each.content for each in messages if each.type == "human"]

    def close(self) -> None:
        self._client.close()
        self._threads.close()
        self._facts.close()


if __name__ == "__main__":
    serve(Graph)
