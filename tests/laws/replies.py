"""What a model answers, the odd replies included."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.laws import texts
from tests.laws.plain import cleaned
from tests.standin import Reply, call, redacted_thinking, search_result, server_call, thinking


@dataclass(frozen=True)
class Spoken:
    """A reply by the name of its script, so that a failing example can be read."""

    script: str
    said: tuple[Any, ...] = ()
    fields: tuple[tuple[str, Any], ...] = ()

    def reply(self, waits: str | None = None) -> Reply:
        """`waits` is the id of a search that a pause interrupted: a reply that says anything begins with its result."""
        make = Reply if self.script == "Reply" else getattr(Reply, self.script)
        reply = make(*texts.exact(self.said), **dict(self.fields))
        if waits and reply.blocks and reply.stop_reason != "refusal":
            reply.blocks = (search_result(waits), *reply.blocks)
        return reply


def spoken_text(text: str) -> str:
    """Make it something that a model could say: no lone surrogates, no white space at the ends, not empty."""
    return text if text and text == cleaned(text).strip() else "ok"


def spoken(*said: Any) -> Spoken:
    return Spoken("Reply", said)


def script(name: str, *said: Any, **fields: Any) -> Spoken:
    return Spoken(name, said, tuple(fields.items()))


words = st.one_of(texts.prose(most=80), texts.prose(most=80), texts.mixed).map(spoken_text)
thoughts = st.sampled_from(
    [thinking("Let me see. Which one?"), thinking("", tokens=120), redacted_thinking(tokens=40), thinking("")]
)
arguments = st.dictionaries(
    st.sampled_from(["at", "text", "deep"]), st.one_of(texts.small, texts.prose(), st.lists(texts.prose(), max_size=2))
).map(cleaned)
calls = st.lists(arguments.map(lambda given: call("look", given)), min_size=1, max_size=3)
many_calls = st.integers(4, 20).map(lambda count: [call("look", {"at": f"place {n}"}) for n in range(count)])

_calling = (
    st.builds(lambda thought, given: spoken(thought, *given), thoughts, calls),
    calls.map(lambda given: spoken(*given)),
    many_calls.map(lambda given: spoken(*given)),
)
_ordinary = st.one_of(
    *[words.map(spoken)] * 2,
    st.builds(spoken, thoughts, words),
    st.builds(lambda text, thought, given: spoken(text, thought, *given), words, thoughts, calls),
    *_calling,
)
_working = st.one_of(
    *_calling,
    calls.map(lambda given: script("cut_call", "look", {"at": "the e"}, *given)),  # three in a row end a turn
)
_odd = st.one_of(
    st.just(script("empty")),
    st.sampled_from(["end_turn", "max_tokens"]).map(lambda stop: script("only_thinking", stop_reason=stop)),
    st.just(script("blank")),
    st.just(spoken(thinking("hm"), "\n")),
    st.just(spoken(thinking("hm"), " ", call("look", {"at": "x"}))),
    words.map(lambda text: script("cut_text", text)),
    words.map(lambda text: spoken("  ", text)),
    st.builds(
        lambda before, given: script("cut_call", "look", given, *before),
        st.one_of(st.just([]), calls, st.builds(lambda thought: [thought], thoughts)),
        arguments,
    ),
    texts.prose(most=8).map(lambda text: spoken(texts.repeated(f"{text} ", 100_000))),  # runs into max_tokens
    st.one_of(st.just(()), words.map(lambda text: (text,))).map(lambda said: script("refusal", *said)),
    st.just(script("pause", "hats")),
    st.just(script("pause", "coats", "Wait.")),
    st.builds(lambda thought, text: script("pause", "hats", thought, text), thoughts, words),
    words.map(lambda text: script("window_exceeded", text)),
    words.map(lambda text: script("stopped_by", "END", text)),
    st.integers(2, 4).map(lambda count: script("same_ids", *[call("look", {"at": "y"})] * count)),
    words.map(lambda text: spoken(server_call("web_search", {"query": "q"}), search_result(), text)),
)


@st.composite
def some(draw: st.DrawFn, *kinds: str) -> Spoken:
    """A reply of one of these kinds. (A composite: Hypothesis prints all rules' strategies, and these are long.)"""
    return draw(_KINDS[draw(st.sampled_from(kinds))])


_KINDS = {"ordinary": _ordinary, "working": _working, "odd": _odd}
