"""Snapshots against what they are pictures of: requests rebuilt byte for byte, sizes that the provider said, logs kept
while the agent lived."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.explain import snapshot
from agents.explain.snapshot import take
from agents.explain.snapshot_parts import Snapshot
from agents.explain.window_parts import PARTS, fitted
from pager import BlockSpec, Limits, Memory, MemoryReader, NotFoundError, tokens
from pager.conversation import sizes as sizing
from pager.limits import noted, read_noted
from pager.tiers.prefetch import Prefetch
from pager.types import Json
from tests.standin import Reply, call, thinking
from tests.support import Talk, Words

MARKER = re.compile(r"\[[ua]\d+\]")
CORE = {
    "human": BlockSpec(description="who you talk to", limit_tokens=400),
    "rules": BlockSpec(value="be kind", read_only=True),
}


@dataclass
class Life:
    """An agent with a past, and what a witness noted at each of its replies."""

    talk: Talk
    markers: dict[str, str] = field(default_factory=dict[str, str])  # what only this step says -> its page id
    core: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    facts: dict[str, int] = field(default_factory=dict[str, int])
    size: dict[str, int] = field(default_factory=dict[str, int])

    def live(self, turns: int) -> None:
        memory = self.talk.memory
        for number in range(turns):
            if number % 3 == 0:
                memory.core_append("human", f"noted before turn {number}", actor="person")
            if number % 4 == 0:
                memory.archive(f"In turn {number} it was sunny in Porto.", key=f"k{number % 8}")
            if number == 6:
                memory.page_in("f1", pin=True)
            user = memory.append_user("and so the story went on and on " * 12 + f"[u{number}]")
            self.markers[f"[u{number}]"] = user
            self._reply(thinking(f"let me think about it {number} " * 8), call("weather", {"city": "Porto"}))
            self.talk.answer("sunny")
            memory.core_append("human", f"told in turn {number}", actor="agent")
            self.markers[f"[a{number}]"] = self._reply(f"It is sunny. [a{number}]")

    def _reply(self, *blocks: Any) -> str:
        response = self.talk.send(Reply(*blocks))
        core = {block.name: block.value for block in self.talk.memory.core()}
        facts = len(self.talk.memory.inspect.newest_facts(1_000))
        step = self.talk.memory.append_assistant(response)
        usage = response["usage"]
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        self.core[step], self.facts[step] = core, facts
        self.size[step] = sum(usage[name] for name in names)
        return step


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    directory = tmp_path_factory.mktemp("life")
    talk = Talk(directory, window=6_000, core=CORE, embedder=Words(), prefetch=Prefetch(k=2, budget_tokens=120))
    lived = Life(talk)
    lived.live(24)
    assert len(talk.memory.ledger(events=["epoch"])) > 2, "no eviction: the window is too large for this test"
    yield lived
    talk.memory.close()


@pytest.fixture
def reading(life: Life) -> Iterator[Any]:
    with MemoryReader.open(life.talk.directory) as reading:
        yield reading


# --- then


def test_the_steps_of_a_past_moment_are_those_of_its_request(life: Life, reading: Any) -> None:
    for step in life.size:
        rebuilt = reading.history.rebuild(step)
        shown = {resident.page_id for resident in take(reading, step).steps}
        said = set(MARKER.findall(json.dumps(rebuilt["messages"])))
        in_preamble = set(MARKER.findall(json.dumps(reading.history.prompt(step).epoch.preamble)))
        assert {life.markers[marker] for marker in said - in_preamble} == shown & set(life.markers.values())
        assert len(rebuilt["messages"]) >= len(shown)


def test_a_past_moment_is_as_large_as_the_provider_said(life: Life, reading: Any) -> None:
    for step, size in life.size.items():
        window = take(reading, step).window
        assert (window.used_tokens, window.counted) == (size, True)
        assert sum(part.tokens for part in window.parts) == size
        assert [part.name for part in window.parts] == list(PARTS)


def test_sizes_are_of_the_form_that_was_sent_not_of_the_present_one(life: Life, reading: Any) -> None:
    """Thinking left when a later epoch opened; in its own it still had its size."""
    for step in life.size:
        view, rebuilt = reading.history.prompt(step), reading.history.rebuild(step)
        messages = rebuilt["messages"][1:] if view.epoch.preamble else rebuilt["messages"]
        pieces = [piece for message in messages for block in message["content"] for piece in _pieces(block)]
        assert view.counts() == sum(map(sizing.count, pieces), view.fixed())


def _pieces(block: Json) -> list[Json]:
    """A block without its cache mark, and without what we put behind the one text of a result."""
    block = {key: value for key, value in block.items() if key != "cache_control"}
    if block["type"] != "tool_result":
        return [block]
    return [{**block, "content": block["content"][:1]}, *block["content"][1:]]


def test_the_agent_was_told_that_the_window_fills_from_the_notice_on(life: Life, reading: Any) -> None:
    seen: set[bool] = set()
    for step in life.size:
        said = "<notice>" in json.dumps(reading.history.rebuild(step)["messages"])
        assert take(reading, step).window.noticed == said, step
        seen.add(said)
    assert seen == {True, False}


def test_parts_have_their_share(life: Life, reading: Any) -> None:
    for step in life.size:
        view, window = reading.history.prompt(step), take(reading, step).window
        counter = reading.history.counter("m")
        shown = {part.name: part.tokens for part in window.parts}
        scale = window.used_tokens / counter.tokens(view.counts())
        assert shown["instructions"] == pytest.approx(
            counter.tokens(view.epoch.sizes["instructions"]) * scale, rel=0.02
        )
        assert (shown["digest"] > 0) == ("<digest>" in json.dumps(view.epoch.preamble))
        assert (shown["recalled"] > 0) == ("<recalled>" in json.dumps(reading.history.rebuild(step)["messages"]))
        pinned = '<pinned page_id="f' in json.dumps(reading.history.rebuild(step)["messages"]).replace('\\"', '"')
        assert (shown["pinned"] > 0) == pinned


def test_core_and_archive_are_as_they_were(life: Life, reading: Any) -> None:
    for step in life.size:
        then = take(reading, step, facts=1_000)
        assert {block.name: block.value for block in then.core.blocks} == life.core[step]
        assert then.archive.total == len(then.archive.newest) == life.facts[step]
        assert then.core.used_tokens == sum(tokens.total(block.value) for block in then.core.blocks)


def test_versions_of_a_block_count_from_one(life: Life, reading: Any) -> None:
    ordinals = [reading.history.core_version_number(block) for block in reading.history.core_versions("human")]
    assert ordinals == list(range(1, len(ordinals) + 1))
    now = next(block for block in take(reading).core.blocks if block.name == "human")
    assert (now.version, now.actor) == (len(ordinals), "agent")


def test_movements_of_a_past_moment_came_before_it(life: Life, reading: Any) -> None:
    for step in list(life.size)[::5]:
        moved = take(reading, step, movements=1_000).movements
        everything = reading.ledger()
        assert [row.number for row in moved] == [row.number for row in everything if row.step < int(step[1:])]


def test_a_step_that_answered_nothing_is_refused_with_those_that_did(life: Life, reading: Any) -> None:
    replies = [int(step[1:]) for step in life.size]
    assert 4 not in replies
    with pytest.raises(NotFoundError, match=r"s4 is no reply .* The nearest are s3 and s5\."):
        take(reading, "s4")
    with pytest.raises(NotFoundError, match=f"The nearest are s{replies[-1]}"):
        take(reading, "s100000")
    with pytest.raises(NotFoundError, match="'f1' is not a step"):
        take(reading, "f1")


# --- now


def test_now_is_the_next_request(tmp_path: Path) -> None:
    talk = Talk(tmp_path, core=CORE)
    talk.fill(500)
    for told in ("and then?", "and after that?"):
        talk.memory.append_user(told)
        now = take(talk.memory)
        with MemoryReader.open(tmp_path) as reader:
            assert take(reader) == now
        request = talk.memory.request()
        assert (now.window.used_tokens, now.window.epoch, now.window.counted) == (request.tokens, request.epoch, True)
        assert now.steps[-1].words == told
        assert now.steps[-1].turn == now.steps[-1].page_id
        talk.memory.append_assistant(talk.send(Reply("so it went")))
    talk.memory.close()


def test_who_said_it(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.memory.append_user("hello", name="Dana")
    talk.reply(thinking("private"), "good day")
    talk.ask("bye")
    told = [(step.who, step.words) for step in take(talk.memory).steps]
    assert told == [("Dana", "hello"), ("agent", "good day"), ("user", "bye"), ("agent", "ok")]
    talk.memory.close()


def test_the_archive_now(tmp_path: Path) -> None:
    talk = Talk(tmp_path, embedder=Words())
    old = talk.memory.archive("likes aisles", key="seat")
    new = talk.memory.archive("likes windows", key="seat", tags=["travel"])
    other = talk.memory.archive("lives in Porto")
    talk.memory.search_archive("windows", limit=1)
    archive = take(talk.memory).archive
    assert (archive.total, archive.current, archive.never_used) == (3, 2, 1)
    assert [fact.page_id for fact in archive.newest] == [other.id, new.id, old.id]
    assert [(fact.page_id, fact.uses) for fact in archive.most_used] == [(new.id, 1)]
    assert [fact.page_id for fact in archive.unused] == [other.id]
    assert archive.newest[2].superseded_by == new.id
    talk.memory.close()


def test_an_epoch_that_ended_says_so(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.ask("hello")
    assert not take(talk.memory).window.ended
    fact = talk.memory.archive("secret")
    talk.memory.purge(fact.id)
    assert take(talk.memory).window.ended
    talk.ask("go on")
    window = take(talk.memory).window
    assert (window.ended, window.epoch, window.epoch_reason) == (False, 2, "the last epoch was ended")
    talk.memory.close()


def test_before_anything_was_sent(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=None) as memory:
        now = take(memory)
        window = now.window
        assert (window.usable_tokens, window.thresholds, window.free_tokens, window.epoch) == (None, None, None, None)
        assert (now.steps, now.core.blocks, now.archive.total, now.movements) == ((), (), 0, ())
        memory.append_user("hello")
        assert [step.words for step in take(memory).steps] == ["hello"]


# --- limits


def test_each_moment_has_the_limits_of_its_requests(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=60_000)
    before = talk.ask("hello")
    talk.reopen(limits=Limits.for_window(20_000, notify_at=0.6))
    assert take(talk.memory).window.limit_tokens == 60_000, "opening is not sending: check and purge open it too"
    after = talk.ask("hello again")
    then, now, latest = (take(talk.memory, at).window for at in (before, after, None))
    assert (then.limit_tokens, now.limit_tokens, latest.limit_tokens) == (60_000, 20_000, 20_000)
    assert then.thresholds == snapshot.Thresholds(36_400, 44_200, 26_000)
    assert now.thresholds == snapshot.Thresholds(9_000, 12_750, 7_500)
    assert now.usable_tokens == talk.memory.limits.usable_tokens
    talk.memory.close()


LIMITS = st.sampled_from([Limits.for_window(size) for size in (6_000, 8_000, 60_000)])


@given(st.lists(st.tuples(LIMITS, st.integers(1, 5)), max_size=200))
def test_notes_of_limits_hold_what_held_and_do_not_grow_without_end(changes: list[tuple[Limits, int]]) -> None:
    note, step, held = None, 0, dict[int, Limits | None]()
    for limits, steps in changes:
        held[step] = held.get(step, read_noted(note))
        known, note = note, noted(note, limits, step)
        assert (note == known) == (known is not None and read_noted(known) == limits)
        step += steps
        held[step] = limits
    assert read_noted(note) == (changes[-1][0] if changes else None)
    assert len(json.loads(note or "[]")) <= 100
    if len(changes) <= 100:
        assert {at: read_noted(note, at) for at in held if at} == {at: limits for at, limits in held.items() if at}


# --- data


@given(st.dictionaries(st.sampled_from(PARTS), st.integers(0, 10_000), min_size=1), st.integers(0, 300_000))
def test_fitted_parts_add_up_and_keep_their_proportion(estimates: dict[str, int], total: int) -> None:
    parts = dict(zip(estimates, fitted(list(estimates.values()), total), strict=True))
    known = sum(estimates.values())
    assert sum(parts.values()) == (total if known else 0)
    for name, tokens_ in parts.items():
        assert abs(tokens_ - estimates[name] * total / max(1, known)) < 1


def _keys(value: Any, path: str = "") -> set[str]:
    if isinstance(value, dict):
        return {path}.union(*(_keys(item, f"{path}.{key}") for key, item in value.items() if key != "detail"))
    if isinstance(value, list):
        return {path}.union(*(_keys(item, f"{path}[]") for item in value))
    return {path}


def test_the_data_has_the_same_keys_at_any_moment(life: Life, reading: Any, tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=None) as memory:
        moments: list[Snapshot] = [take(reading), take(reading, "s3"), take(reading, list(life.size)[-1]), take(memory)]
    everything = {path for moment in moments for path in _keys(snapshot.as_data(moment))}
    for moment in moments:
        data = snapshot.as_data(moment)
        assert json.loads(json.dumps(data)) == data
        missing = everything - _keys(data)
        # What is in a list that is empty, and what is within a value that is not known yet, cannot be there.
        assert [path for path in missing if "[]" not in path and not path.startswith(".window.thresholds.")] == []
        assert set(data) == {"at", "window", "core", "steps", "pages", "archive", "movements"}


# --- while it is written


def test_a_snapshot_is_of_one_moment_while_the_agent_goes_on(tmp_path: Path) -> None:
    """Each turn archives one fact and edits core once, in one transaction: no look may see one without the other."""
    talk = Talk(tmp_path, window=6_000, core=CORE)
    talk.memory.append_user("turn 0")

    def live() -> None:
        for number in range(1, 60):
            with talk.memory.transaction():
                talk.reply("yes")
                talk.memory.archive(f"fact {number}")
                talk.memory.core_append("human", "x", actor="agent")
                talk.memory.append_user(f"turn {number} " + "and so on " * 40)

    writer = Thread(target=live)
    seen = set[int]()
    with MemoryReader.open(tmp_path) as reader:
        writer.start()
        while writer.is_alive() or not seen:
            now = take(reader)
            number = now.archive.total
            seen.add(number)
            assert now.steps[-1].words.startswith(f"turn {number}")
            human = next(block for block in now.core.blocks if block.name == "human")
            assert human.value.count("x") == number
            assert sum(part.tokens for part in now.window.parts) == now.window.used_tokens
        writer.join()
    assert take(talk.memory).archive.total == 59
    assert len(seen) > 3
    talk.memory.close()
