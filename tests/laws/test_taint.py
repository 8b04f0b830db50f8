"""Nothing becomes trusted by waiting: whatever was written with an untrusted text in view is known by its source."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.laws.taint import TaintedTalk

SOURCES = ["web:example.org", "mcp:github", "tool:mail", "file:notes.md"]
KEYS = st.sampled_from([None, "refunds", "account"])
WORDS = st.sampled_from(["refunds", "account", "weather", "went on"])
ACTS = st.one_of(
    st.tuples(st.just("chat"), st.integers(1, 4)),
    st.tuples(st.just("fetch"), st.sampled_from(SOURCES)),
    st.tuples(st.sampled_from(["archive", "undone"]), KEYS),
    st.tuples(st.sampled_from(["search_archive", "search_recall", "say"]), WORDS),
    st.tuples(st.sampled_from(["page_in", "pin", "person_pins", "page_out"]), st.integers(0, 30)),
    st.tuples(st.sampled_from(["core", "empty", "person_archives", "restart"]), st.none()),
)


def act(life: TaintedTalk, name: str, given: object) -> None:
    talk, memory = life.talk, life.talk.memory
    pages = [*life.facts, *life.steps]
    page = pages[given % len(pages)] if isinstance(given, int) and pages else ""
    if name == "restart":
        talk.reopen()
    elif name == "empty":
        life.empty_core()
    elif name == "person_archives":
        life.store(memory.archive("about the refunds "), frozenset())
    elif name == "person_pins" and page and not memory.page_text(page).isspace():
        if page not in {pin.page_id for pin in memory.inspect.pins()} and len(memory.inspect.pins()) < 2:
            memory.page_in(page, pin=True)
    elif name == "page_out":
        for pin in memory.inspect.pins()[:1]:
            memory.page_out(pin.page_id)
    elif name == "chat":
        for number in range(int(str(given))):
            life.say(f"Good day number {number}.")
            life.ask()
    elif name in ("fetch", "archive", "undone", "search_archive", "search_recall", "page_in", "pin", "core", "say"):
        life.say(f"What of the {given}?" if name == "say" else "Please go on.")
        if name == "fetch":
            life.fetch(str(given))
        elif name in ("archive", "undone"):
            life.use(lambda: life.archive(given if isinstance(given, str) else None), undo=name == "undone")
        elif name == "search_archive":
            life.use(lambda: life.read(memory.search_archive(str(given), limit=3, actor="agent")))
        elif name == "search_recall":
            life.use(lambda: life.read(memory.search_recall(str(given), limit=3, actor="agent")))
        elif name in ("page_in", "pin") and page:
            may_pin = name == "pin" and len(memory.inspect.pins()) < 2
            life.use(lambda: life.read([memory.page_in(page, pin=may_pin, actor="agent")]))
        elif name == "core":
            life.use(life.append_core)
        life.ask()


@pytest.mark.parametrize("summarizes", [False, True])
@settings(max_examples=max(10, (settings.default.max_examples if settings.default else 40) // 4))
@given(acts=st.lists(ACTS, min_size=4, max_size=25))
def test_every_word_of_an_untrusted_source_is_known_by_it(acts: list[tuple[str, object]], *, summarizes: bool) -> None:
    with TemporaryDirectory() as place:
        life = TaintedTalk(Path(place), summarizes=summarizes)
        for name, given_ in acts:
            act(life, name, given_)
            life.agrees()
        event(f"{life.evictions} evictions")
        assert life.talk.memory.check() == []
        life.talk.memory.close()
