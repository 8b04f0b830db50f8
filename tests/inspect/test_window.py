"""How full the window is, against requests rebuilt byte for byte and sizes that the provider counted."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager import BlockSpec, Limits, Memory, NotFoundError
from pager.inspect import PARTS, Inspection, Thresholds
from pager.inspect.window import share_out
from pager.limits import add_to_log, read_log
from pager.prompt.state import PromptState
from pager.tokens.counter import count_block
from pager.types import Json, read_step_id
from tests.inspect.life import Life
from tests.standin import Reply, thinking
from tests.support import Talk

MARKER = re.compile(r"\[[ua]\d+\]")


@pytest.mark.slow
def test_a_past_window_is_that_of_its_request(life: Life, inspect: Inspection) -> None:
    noticed: set[bool] = set()
    for step in life.steps:
        window, steps = inspect.window_and_steps(step)
        state, request = PromptState.load_at(life.memory._store, read_step_id(step)), life.memory.history.rebuild(step)
        assert state.epoch
        assert (window.used_tokens, window.counted) == (life.size[step], True)
        assert sum(part.tokens for part in window.parts) == life.size[step]
        resident = {resident.page_id for resident in steps}
        messages, preamble = json.dumps(request["messages"]), json.dumps(state.epoch.preamble)
        unquoted = re.sub(r"<recalled>.*?</recalled>", "", messages)
        said = set(MARKER.findall(unquoted)) - set(MARKER.findall(preamble))
        assert {life.markers[marker] for marker in said} == resident & set(life.markers.values())
        assert len(request["messages"]) >= len(resident)
        assert window.noticed == ("<notice>" in messages), step
        noticed.add(window.noticed)
        tokens = {part.name: part.tokens for part in window.parts}
        assert list(tokens) == list(PARTS)
        counter = life.memory.history.counter("m")
        scale = window.used_tokens / counter.tokens(state.counts())
        instructions = counter.tokens(state.epoch.sizes["instructions"]) * scale
        assert tokens["instructions"] == pytest.approx(instructions, rel=0.02)
        assert (tokens["digest"] > 0) == ("<digest>" in preamble)
        assert (tokens["recalled"] > 0) == ("<recalled>" in messages)
        assert (tokens["pinned"] > 0) == ('<pinned page_id="f' in messages.replace('\\"', '"'))
    assert noticed == {True, False}


@pytest.mark.slow
def test_sizes_are_of_the_form_that_was_sent_not_of_the_present_one(life: Life) -> None:
    for step in life.steps:
        state, request = PromptState.load_at(life.memory._store, read_step_id(step)), life.memory.history.rebuild(step)
        messages = request["messages"][1:] if state.epoch and state.epoch.preamble else request["messages"]
        pieces = [piece for message in messages for block in message["content"] for piece in _pieces(block)]
        assert state.counts() == sum(map(count_block, pieces), state.fixed_counts())


def _pieces(block: Json) -> list[Json]:
    """A block without its cache mark, and without what we put behind the one text of a result."""
    block = {key: value for key, value in block.items() if key != "cache_control"}
    if block["type"] != "tool_result":
        return [block]
    return [{**block, "content": block["content"][:1]}, *block["content"][1:]]


def test_a_step_that_answered_nothing_is_refused_with_those_that_did(life: Life, inspect: Inspection) -> None:
    assert "s4" not in life.steps
    for step, error in (
        ("s4", r"s4 is no reply .* The nearest are s3 and s5\."),
        ("s100000", f"The nearest are {life.steps[-1]}"),
        ("f1", "'f1' is not a step"),
    ):
        with pytest.raises(NotFoundError, match=error):
            inspect.window(step)


def test_now_is_the_next_request(tmp_path: Path) -> None:
    talk = Talk(tmp_path, core={"human": BlockSpec()})
    talk.fill(500)
    for text in ("and then?", "and after that?"):
        talk.memory.append_user(text, name="Dana")
        window, steps = talk.memory.inspect.window_and_steps()
        request = talk.memory.request()
        assert (window.used_tokens, window.epoch, window.counted) == (request.tokens, request.epoch, True)
        assert (steps[-1].words, steps[-1].who, steps[-1].turn) == (text, "Dana", steps[-1].page_id)
        talk.memory.append_assistant(talk.send(Reply(thinking("private"), "so it went")))
        last = talk.memory.inspect.window_and_steps()[1][-1]
        assert (last.words, last.who) == ("so it went", "agent")
    talk.memory.close()


def test_an_epoch_that_ended_says_so(talk: Talk) -> None:
    talk.ask("hello")
    assert not talk.memory.inspect.window().ended
    talk.memory.purge(talk.memory.archive("secret").id)
    assert talk.memory.inspect.window().ended
    talk.ask("go on")
    window = talk.memory.inspect.window()
    assert (window.ended, window.epoch, window.epoch_reason) == (False, 2, "the last epoch was ended")
    talk.memory.close()


def test_before_anything_was_sent_there_are_no_limits(memory: Memory) -> None:
    window = memory.inspect.window()
    assert (window.usable_tokens, window.thresholds, window.free_tokens, window.epoch) == (None, None, None, None)
    memory.append_user("hello")
    assert [(step.who, step.words) for step in memory.inspect.window_and_steps()[1]] == [("user", "hello")]


def test_each_moment_has_the_limits_of_its_requests(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=60_000)
    before = talk.ask("hello")
    talk.reopen(limits=Limits.for_window(20_000, notify_at=0.6))
    assert talk.memory.inspect.window().limit_tokens == 60_000, "opening is not sending: check and purge open it too"
    after = talk.ask("hello again")
    then, now, latest = (talk.memory.inspect.window(at) for at in (before, after, None))
    assert (then.limit_tokens, now.limit_tokens, latest.limit_tokens) == (60_000, 20_000, 20_000)
    assert then.thresholds == Thresholds(36_400, 44_200, 26_000)
    assert now.thresholds == Thresholds(9_000, 12_750, 7_500)
    assert now.usable_tokens == talk.memory.limits.usable_tokens
    talk.memory.close()


LIMITS = st.sampled_from([Limits.for_window(size) for size in (6_000, 8_000, 60_000)])


@given(st.lists(st.tuples(LIMITS, st.integers(1, 5)), max_size=200))
def test_notes_of_limits_hold_what_held_and_do_not_grow_without_end(changes: list[tuple[Limits, int]]) -> None:
    note, step, held = None, 0, dict[int, Limits | None]()
    for limits, steps in changes:
        held[step] = held.get(step, read_log(note))
        known, note = note, add_to_log(note, limits, step)
        assert (note == known) == (known is not None and read_log(known) == limits)
        step += steps
        held[step] = limits
    assert read_log(note) == (changes[-1][0] if changes else None)
    assert len(json.loads(note or "[]")) <= 100
    if len(changes) <= 100:
        assert {at: read_log(note, at) for at in held if at} == {at: limits for at, limits in held.items() if at}


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=len(PARTS)), st.integers(0, 300_000))
def test_shares_add_up_and_keep_their_proportion(estimates: list[int], total: int) -> None:
    shares, known = share_out(total, estimates), sum(estimates)
    assert sum(shares) == (total if known else 0)
    for share, estimate in zip(shares, estimates, strict=True):
        assert abs(share - estimate * total / max(1, known)) < 1
