"""The pure parts of tests/bench/proof: rival policies, what counts as left, that the pages say what was measured."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import anthropic
import pytest

from pager.types import Json
from tests.bench import question_sets
from tests.bench.peers.bare_sdk import Bare
from tests.bench.peers.tool_runner import Runner
from tests.bench.proof import cost_talk, overhead, sides, survival, tables
from tests.bench.proof.cost_rivals import RIVALS, Everything, Frame, ReRender, Rival, Slide
from tests.standin import Standin
from tests.standin.server import StandinServer

CORE = cost_talk.initial_core()
FRAME = Frame([], {"type": "text", "text": "Be brief."}, {"type": "text", "text": CORE}, 100, usable_tokens=1_000)


def sized(params: Json) -> int:
    """A hundred tokens for each message: ten fill the window."""
    return 100 * len(params["messages"])


def talk(kind: Rival, turns: int) -> list[Json]:
    """The request of each turn."""
    rival, requests = kind(FRAME), []
    for number in range(1, turns + 1):
        rival.says({"role": "user", "content": [{"type": "text", "text": cost_talk.asked(number)}]})
        rival.make_room(sized)
        requests.append(rival.params())
        rival.says({"role": "assistant", "content": [{"type": "text", "text": f"reply {number}"}]})
        if number % 3 == 0:
            rival.edited({"type": "text", "text": f"core of turn {number}"})
    return requests


def marks(params: Json) -> int:
    blocks = [*params["system"], *(block for message in params["messages"] for block in message["content"])]
    return sum("cache_control" in block for block in blocks)


@pytest.mark.parametrize("kind", RIVALS.values())
def test_rivals_send_what_the_provider_takes(kind: Rival) -> None:
    standin = Standin(limit_tokens=100_000)
    for params in talk(kind, 20):
        assert 2 <= marks(params) <= 4
        standin.create({"model": "m", **params})


@pytest.mark.parametrize(
    ("kind", "messages", "shows_the_edit"),  # of which request, and from which one on
    [
        (Everything, [1, 3, 5, 7, 9, 11, 13], None),
        (Slide, [1, 3, 5, 7, 9, 9, 9], 5),  # as little as will do leaves, and edits are only shown then
        (ReRender, [1, 3, 5, 7, 5, 7, 5], 3),  # as much as with ours leaves, and edits are shown at once
    ],
)
def test_a_rival_makes_room_and_shows_edits_by_its_policy(
    kind: Rival, messages: list[int], shows_the_edit: int | None
) -> None:
    requests = talk(kind, 7)
    assert [len(params["messages"]) for params in requests] == messages
    edited = (at for at, params in enumerate(requests) if params["system"][1]["text"] != CORE)
    assert next(edited, None) == shows_the_edit


def test_core_is_edited_as_often_as_it_is_billed_and_reads_as_the_edit_left_it() -> None:
    for every in (cost_talk.EDIT_EVERY, *cost_talk.OFTENER):
        asked = [{"messages": [{"content": cost_talk.asked(turn)}]} for turn in range(1, 31)]
        replies = [cost_talk.reply(params, every) for params in asked]
        assert sum(reply.blocks[0]["type"] == "tool_use" for reply in replies) == 30 // every
        edit = cost_talk.edit(every, every)
        assert FRAME.core_after(every)["text"] == CORE.replace(edit["old_text"], edit["new_text"]) != CORE


def test_the_questions_of_the_talks_name_messages_that_are_there() -> None:
    talks = question_sets.talks()
    assert [len(talk.questions) for talk in talks] == [80] * 5
    for talk in talks:
        assert talk.said
        assert len(talk.texts) == len(talk.sessions) == len(talk.said)
        assert all(asked.gold and asked.gold <= set(range(len(talk.texts))) for asked in talk.questions)


def test_of_overhead_the_median_round_counts_without_the_servers_time() -> None:
    rounds = [overhead.Round(10, wall, cpu=0.05, server=server) for wall, server in ((0.2, 0.1), (0.5, 0.2), (9, 0.3))]
    assert overhead.per_turn(rounds) == pytest.approx(
        {"wall_ms": 30, "mean_wall_ms": 1000 * (9.7 - 0.6) / 30, "cpu_ms": 5, "server_ms": 20}
    )


def test_a_side_that_does_not_begin_is_named_and_the_others_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sides.COMMANDS, "broken", "peers.no_such_module")
    found = overhead.figures(tmp_path, tmp_path, ["broken", sides.BARE], points=(10,), turns=10, seconds=60)
    assert found["stopped"]["broken"].startswith("did not begin: broken ended with 1")
    assert list(found["points"]["10"]) == [sides.BARE]


@pytest.mark.parametrize("kind", [Bare, Runner])
def test_a_message_that_was_refused_does_not_spoil_the_peers_next_turns(kind: type[Any], tmp_path: Path) -> None:
    with StandinServer(Standin(limit_tokens=20_000), replies=survival.reply) as standin:
        side = kind(standin.base_url, tmp_path)
        with pytest.raises(anthropic.BadRequestError):
            side.turn("far too long " * 30_000)
        side.turn("and now something short")
        assert side.said() == ["and now something short"]
        side.close()


@pytest.fixture(scope="module")
def results() -> Json:
    return tables.read()


def test_readme_and_the_pages_say_what_was_measured_and_on_which_machine(results: Json) -> None:
    assert set(results) == set(tables.SECTIONS)
    assert all("cores, load" in result["machine"] for result in results.values())
    for path, table in ((tables.README, tables.shortest(results)), (tables.DOCS, tables.short(results))):
        text = path.read_text(encoding="utf-8")
        assert table in text
        assert tables.with_table(text, table) == text
    assert max(map(len, tables.shortest(results).splitlines())) <= 120  # it fits a screen
    assert tables.PAGE.read_text(encoding="utf-8") == tables.page(results)


def test_a_side_that_was_too_slow_is_shown_where_it_stood_and_then_left_out_ours_too(results: Json) -> None:
    other = deepcopy(results)
    points = other["overhead"]["figures"]["points"]
    points["1000"]["ours"] |= {"at": 654, "wall_ms": 12.5}
    del points["10000"]["ours"]
    other["scale"]["figures"]["archives"]["ours"] = {}
    lines = tables.short(other).splitlines()
    assert [line.split("|")[2].strip() for line in lines if "ms added to a turn" in line][2:] == ["12.5 (at 654)", "-"]
    assert not any("100,000 facts " in line for line in lines)
    assert "100,000 facts" not in tables.shortest(other)
    assert "after 10,000  " in tables.shortest(other)


def test_what_was_left_out_is_named(results: Json) -> None:
    absent = {"stopped": {"mem0": "stopped at 5,000 turns: slow"}, "missing": {"langgraph": "no network"}}
    text = tables.section("overhead", results["overhead"]["figures"] | absent)
    assert "mem0: stopped at 5,000 turns: slow." in text
    assert "langgraph is not here: no network." in text
