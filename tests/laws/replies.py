"""What a model answers, the odd replies included. A reply is a function of the window: what it says has to fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.laws import texts
from tests.standin import Reply, call, redacted_thinking, search_result, server_call, thinking

Spoken = Callable[[int], Reply]


def spoken(*blocks: Any, **fields: Any) -> Spoken:
    return lambda window: Reply(*blocks, **fields)


def _said(text: str) -> str:
    return text if text.strip() else "ok"


words = st.one_of(texts.prose(most=80), texts.mixed).map(_said).map(str.strip).filter(bool)
thoughts = st.sampled_from(
    [thinking("Let me see. Which one?"), thinking("", tokens=120), redacted_thinking(tokens=40), thinking("")]
)
arguments = st.dictionaries(
    st.sampled_from(["at", "text", "deep"]), st.one_of(texts.small, texts.prose(), st.lists(texts.prose(), max_size=2))
)
calls = st.lists(arguments.map(lambda given: call("look", given)), min_size=1, max_size=3)
many_calls = st.integers(4, 20).map(lambda count: [call("look", {"at": f"place {n}"}) for n in range(count)])

ordinary = st.one_of(
    words.map(spoken),
    words.map(spoken),
    st.builds(spoken, thoughts, words),
    st.builds(lambda thought, given: spoken(thought, *given), thoughts, calls),
    st.builds(lambda text, thought, given: spoken(text, thought, *given), words, thoughts, calls),
    calls.map(lambda given: spoken(*given)),
    many_calls.map(lambda given: spoken(*given)),
)
odd = st.one_of(
    st.just(lambda window: Reply.empty()),
    st.sampled_from(["end_turn", "max_tokens"]).map(lambda stop: lambda window: Reply.only_thinking(stop_reason=stop)),
    st.just(lambda window: Reply.blank()),
    st.just(spoken(thinking("hm"), "\n")),
    st.just(spoken(thinking("hm"), " ", call("look", {"at": "x"}))),
    words.map(lambda text: lambda window: Reply.cut_text(text)),
    words.map(lambda text: lambda window: Reply("  ", text)),
    st.builds(
        lambda before, given: lambda window: Reply.cut_call("look", given, *before),
        st.one_of(st.just([]), calls, st.builds(lambda thought: [thought], thoughts)),
        arguments,
    ),
    words.map(lambda text: spoken(text * 2_000)),  # runs into max_tokens
    st.one_of(st.just(()), words.map(lambda text: (text,))).map(lambda said: lambda window: Reply.refusal(*said)),
    st.just(lambda window: Reply.pause("hats")),
    st.builds(lambda thought, text: lambda window: Reply.pause("hats", thought, text), thoughts, words),
    words.map(lambda text: lambda window: Reply.window_exceeded(text)),
    words.map(lambda text: lambda window: Reply.stopped_by("END", text)),
    st.integers(2, 4).map(lambda count: lambda window: Reply.same_ids(*[call("look", {"at": "y"})] * count)),
    words.map(lambda text: spoken(server_call("web_search", {"query": "q"}), search_result(), text)),
)
