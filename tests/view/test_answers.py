"""Answers of the debug view about moments, calls, searches and agents."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from agents.view import routes
from agents.view.readers import Readers
from agents.view.serving import ViewServer
from pager import Memory, Prefetch
from pager.home import Home
from tests.support import Talk, Words
from tests.view.asking import api, opened, serving


def test_lists_of_a_moment_are_those_of_its_request(server: ViewServer, home: Path) -> None:
    with opened(home) as memory:
        memory.append_user("And the boat?")
        memory.archive("likes boats", key="tram")
        memory.request()
        memory.append_assistant("At sea.", {"input_tokens": 950, "output_tokens": 5})
        memory.search_archive("boat")
    now, then = ({name: api(server, f"guide/{name}{at}") for name in LISTS} for at in ("", "?at=s2"))
    assert [now[name]["total"] for name in LISTS] == [4, 2, 7, 2, 2]
    assert [then[name]["total"] for name in LISTS] == [1, 1, 4, 1, 1]
    assert (now["facts"]["rows"][1]["superseded_by"], then["facts"]["rows"][0]["superseded_by"]) == ("f2", None)
    assert then["costs"]["sum"]["input_tokens"] == 900
    assert (
        api(server, "guide/events?at=s2")["events"]["archive"],
        api(server, "guide/events")["events"]["archive"],
    ) == (1, 2)
    assert [row["page_id"] for row in api(server, "guide/steps?text=BOAT")["rows"]] == ["s3"]


LISTS = ("steps", "facts", "ledger", "searches", "costs")


def test_any_two_requests_are_compared_in_the_order_of_time(server: ViewServer, home: Path) -> None:
    with opened(home) as memory:
        for text in ("And the boat?", "And the bus?"):
            memory.append_user(text)
            memory.request()
            memory.append_assistant("Well.", {"input_tokens": 950, "output_tokens": 5})
    forth, back = (api(server, f"guide/request?at={at}&with={other}") for at, other in (("s6", "s2"), ("s2", "s6")))
    assert forth["change"] == back["change"]
    assert (forth["change"]["before"], forth["change"]["after"]) == ("s2", "s6")
    entered = [move["piece"]["text"] for move in forth["change"]["entered"]]
    assert entered == ["On rails.", "And the boat?", "Well.", "And the bus?"]
    assert (forth["at"], back["at"], back["total"]) == ("s6", "s2", api(server, "guide/request?at=s2")["total"])
    assert api(server, "guide/request?at=s6")["change"]["before"] == "s4"


def test_a_call_stands_with_its_result(server: ViewServer, home: Path) -> None:
    with opened(home) as memory:
        memory.append_user("And the weather?")
        memory.request()
        calls = [
            {"type": "tool_use", "id": name, "name": "look", "input": {"city": name}} for name in ("porto", "faro")
        ]
        memory.append_assistant({"role": "assistant", "content": calls, "stop_reason": "tool_use"})
        memory.append_result("porto", "sunny")
        memory.append_result("faro", "no such city", is_error=True)
    [row] = [row for row in api(server, "guide/steps")["rows"] if row["calls"]]
    assert [(call["input"], call["result"], call["failed"]) for call in row["calls"]] == [
        ("city: porto", "sunny", False), ("city: faro", "no such city", True),
    ]  # fmt: skip
    titles = [part["title"] for part in api(server, f"guide/page?id={row['page_id']}")["parts"]]
    assert titles == ["calls look", "result", "calls look", "error"]


def test_a_search_that_is_tried_is_not_noted_and_its_scores_add_up(server: ViewServer) -> None:
    before = api(server, "guide/events")
    for tier in ("memory", "archive", "recall"):
        found = api(server, f"guide/find?text=tram&tier={tier}")
        assert found["found"]
        for hit in found["found"]:
            assert round(sum(hit["parts"].values()), 2) == hit["score"]
    assert api(server, "guide/events") == before


def test_all_agents_are_listed_with_their_figures_and_what_cannot_be_read_says_why(
    server: ViewServer, home: Path
) -> None:
    (home / "broken").mkdir()
    (home / "broken" / "pager.db").write_bytes(b"no database" * 1_000)
    with opened(home):
        broken, guide = api(server, "fleet")["fleet"]
        assert guide["running"]["pid"]
    assert broken["name"] == "broken"
    assert "damaged" in broken["trouble"]
    assert (guide["name"], guide["steps"], guide["facts"], guide["requests"]) == ("guide", 2, 1, 1)
    assert (guide["tokens"], guide["usd"], guide["last_error"]) == (905, None, None)
    assert guide["used_tokens"] == api(server, "guide/now")["window"]["used_tokens"]
    assert api(server, "fleet")["fleet"][1]["running"] is None


def test_of_many_agents_a_page_is_shown(server: ViewServer, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("anna", "bert", "cleo"):
        Memory.open(home / name, embedder=None).close()
    monkeypatch.setattr(routes, "PAGE", 2)
    monkeypatch.setattr(routes, "MOST_NAMES", 3)
    first = api(server, "fleet")
    assert ([row["name"] for row in first["fleet"]], first["next"]) == (["anna", "bert"], "cleo")
    rest = api(server, "fleet?from=cl")
    assert ([row["name"] for row in rest["fleet"]], rest["next"]) == (["cleo", "guide"], None)
    assert api(server, "agents")["agents"] == rest["agents"] == ["anna", "bert", "cleo"]
    assert api(server, "agents")["more"]


def test_a_list_of_all_agents_keeps_none_of_them_open(tmp_path: Path) -> None:
    """A home may have more agents than a process can have files open."""
    for name in ("anna", "bert", "cleo"):
        with Memory.open(tmp_path / name, embedder=None) as memory:
            memory.archive("likes trams")
    with closing(Readers(Home(tmp_path))) as readers:
        rows = [readers.summary(name) for name in readers.home.names()]
        assert [row["facts"] for row in rows] == [1, 1, 1]
        assert not [each for each in Path("/proc/self/fd").iterdir() if str(tmp_path) in os.path.realpath(each)]
        with Memory.open(tmp_path / "bert", embedder=None) as memory:
            memory.archive("likes boats")
        assert readers.summary("bert")["facts"] == 2


def test_what_was_recalled_says_why(tmp_path: Path) -> None:
    talk = Talk(tmp_path / "guide", embedder=Words(), prefetch=Prefetch(k=1))
    talk.memory.archive("prefers window seats")
    reply = talk.ask("which window seats do I like?", "These.")
    talk.memory.close()
    with serving(tmp_path) as server:
        entered = api(server, f"guide/request?at={reply}")["change"]["entered"]
        [why] = [move["why"] for move in entered if move["piece"]["part"] == "recalled"]
        [row] = [row for row in api(server, "guide/ledger")["rows"] if row["event"] == "recall"]
    assert row["because"] in why
    assert why.startswith(
        "the facts and earlier turns that fit this message best; f1: the nearest page has a cosine of "
    )
    assert " was needed (score " in why


def test_a_search_is_made_as_the_agent_makes_it(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "guide") as memory:
        for text in ("the cat sleeps all day", "trains leave at nine", "the bill was paid"):
            memory.archive(text)
        wanted = [(hit.page_id, sorted(hit.parts)) for hit in memory.search_archive("which pet do I have?", limit=10)]
    with serving(tmp_path) as server:
        found = api(server, "guide/find?text=which%20pet%20do%20I%20have%3F&tier=archive")["found"]
    assert [hit["page_id"] for hit in found] == [page for page, _ in wanted]
    assert found[0]["parts"]  # among three, parts are small, and those that round to nothing are left out


def test_where_the_embedder_is_another_words_answer_and_say_so(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "guide", embedder=Words()) as memory:
        memory.archive("the cat sleeps all day")
    with serving(tmp_path) as server:
        found = api(server, "guide/find?text=cat&tier=archive")
    assert [hit["page_id"] for hit in found["found"]] == ["f1"]
    assert "another embedder made the vectors" in found["detail"]["without_meaning"]
