"""What is proposed without a model, what applying and undoing do, and what no sleep may do."""

import pickle
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pager import BlockSpec, Home, Memory, MemoryReader, NotFoundError, RejectedError
from pager.sleep import Claim, Edit, FactPair, Proposal
from tests.sleep.conftest import Open
from tests.support.clock import HandClock
from tests.support.embedders import Words

SEATS = ("prefers window seats", "Prefers window seats.")


def proposed(memory: Memory) -> Proposal:
    proposal = memory.sleeps.propose()
    assert proposal is not None
    return proposal


def current(memory: Memory) -> list[str]:
    return [row.fact.text for row in memory.inspect.facts("current").rows[::-1]]


def kinds(proposal: Proposal) -> list[tuple[str, tuple[str, ...]]]:
    return [(edit.kind, edit.pages) for edit in proposal.edits]


def test_repeats_are_merged_with_all_their_sources_and_undone(memory: Memory) -> None:
    for text, tag in zip(SEATS, ("travel", "train"), strict=True):
        memory.archive(text, tags=[tag], source=f"said:{tag}")
    assert current(memory) == list(SEATS)
    proposal = proposed(memory)
    [edit] = proposal.edits
    assert (edit.kind, edit.pages, edit.before, edit.asks) == ("merge", ("f1", "f2"), SEATS, "")
    assert current(memory) == list(SEATS), "a proposal changes nothing"
    memory.sleeps.apply(proposal.number)
    [merged] = memory.inspect.facts("current").rows
    assert (merged.fact.text, merged.fact.tags) == ("Prefers window seats.", ("travel", "train"))
    assert [str(source) for source in merged.fact.sources] == ["said:travel", "said:train"]
    assert {row.actor for row in memory.ledger(page="f3")} == {"sleep 1"}
    assert [row.event for row in memory.ledger(page="f1")] == ["archive", "forget"]
    assert memory.fact("f1").text == SEATS[0]
    undone = memory.sleeps.undo(proposal.number)
    assert (undone.undone, undone.stays) == ((edit.number,), ())
    assert current(memory) == list(SEATS)
    assert memory.fact("f1").forgotten is None
    assert memory.search_archive("which seats?", limit=9)[0].page_id in ("f1", "f2")
    assert memory.sleeps.propose() is None, "what was undone is not proposed again"
    assert memory.check() == []


@pytest.mark.parametrize(
    "other",
    ["prefers aisle seats", "never prefers window seats", "prefers 2 window seats", "prefers window seats, not doors"],
)
def test_what_says_something_else_is_not_merged(memory: Memory, other: str) -> None:
    memory.archive(SEATS[0])
    memory.archive(other)
    assert memory.sleeps.propose() is None


def test_nothing_untrusted_becomes_trusted_and_no_page_ends_a_trusted_fact(memory: Memory) -> None:
    memory.archive(SEATS[0], source="said:Dana")
    memory.archive(SEATS[1], source="web:example.org")
    for text, host in (("sits on roofs", "a.org"), ("Sits on roofs.", "b.org")):
        memory.archive(text, source=f"web:{host}")
    proposal = proposed(memory)
    assert sorted(kinds(proposal)) == [("end", ("f2",)), ("merge", ("f3", "f4"))]
    memory.sleeps.apply(proposal.number)
    assert memory.fact("f1").via == ()
    assert current(memory) == [SEATS[0], "Sits on roofs."]
    assert memory.fact("f5").via == ("web:a.org", "web:b.org")


def test_what_runs_out_and_keys_that_mean_the_same_wait_for_a_person(memory: Memory) -> None:
    memory.archive("The ticket is valid until 3 March 2026.")
    memory.archive("Lived in Faro until 3 March 2026.")
    memory.archive("The ticket is valid until 3 March 2036.")
    memory.archive("window", key="seat_wish")
    memory.archive("aisle", key="wish: seat")
    proposal = proposed(memory)
    assert kinds(proposal) == [("end", ("f1",)), ("key", ("f4", "f5"))]
    assert all(edit.asks for edit in proposal.edits)
    assert memory.sleeps.apply(proposal.number, auto=True).count("applied") == 0
    memory.sleeps.apply(proposal.number)
    newest = memory.history.fact_versions("seat_wish")
    assert [(fact.text, fact.superseded_by) for fact in newest] == [("window", "f6"), ("aisle", None)]


def test_facts_that_nothing_found_for_half_a_year_are_shown_where_facts_are_used(open_memory: Open) -> None:
    clock = HandClock()
    with open_memory(clock=clock) as memory:
        memory.archive("the blue boat")
        memory.archive("the red tram")
        clock.set(clock.now().replace(year=2027))
        assert memory.sleeps.propose() is None
        for _ in range(50):
            memory.search_archive("tram", limit=1, actor="agent")
        [edit] = proposed(memory).edits
        assert (edit.kind, edit.pages, bool(edit.asks)) == ("end", ("f1",), True)


def test_a_full_block_loses_the_lines_that_it_has_twice_and_a_guarded_one_waits(open_memory: Open) -> None:
    value = "likes soup\nlives by the sea\nLikes soup."
    core = {
        "notes": BlockSpec(value=value, limit_tokens=12),
        "human": BlockSpec(value=value, limit_tokens=12, untrusted_writes="ask"),
        "fixed": BlockSpec(value=value, limit_tokens=12, read_only=True),
        "roomy": BlockSpec(value=value, limit_tokens=100),
    }
    with open_memory(core=core) as memory:
        proposal = proposed(memory)
        assert [(edit.block, bool(edit.asks)) for edit in proposal.edits] == [("notes", False), ("human", True)]
        memory.sleeps.apply(proposal.number, auto=True)
        values = {block.name: block.value for block in memory.core()}
        assert (values["notes"], values["human"]) == ("likes soup\nlives by the sea", value)
        memory.core_append("notes", "x")
        assert memory.sleeps.undo(proposal.number).stays == ((1, "the block notes was changed since"),)
        assert memory.core()[0].value.endswith("x")


def test_what_changed_since_is_stale_and_nothing_of_it_is_done(memory: Memory) -> None:
    for text in (*SEATS, "the red tram", "The red tram."):
        memory.archive(text)
    proposal = proposed(memory)
    memory.forget("f1", "it is over")
    states = {edit.pages: (edit.state, edit.why) for edit in memory.sleeps.apply(proposal.number).edits}
    assert states == {("f1", "f2"): ("stale", "f1 is not true any more"), ("f3", "f4"): ("applied", "")}
    assert current(memory) == [SEATS[1], "The red tram."]


def test_an_edit_is_decided_once_and_what_is_refused_stays_refused(memory: Memory) -> None:
    for text in (*SEATS, "the red tram", "The red tram."):
        memory.archive(text)
    proposal = proposed(memory)
    one, other = sorted(edit.number for edit in proposal.edits)
    memory.sleeps.refuse(proposal.number, [one])
    memory.sleeps.apply(proposal.number, [other])
    with pytest.raises(RejectedError, match=r"1 is refused"):
        memory.sleeps.apply(proposal.number, [one])
    with pytest.raises(NotFoundError, match=r"has no edits \[9\]"):
        memory.sleeps.apply(proposal.number, [9])
    with pytest.raises(NotFoundError, match="there is no sleep 7"):
        memory.sleeps.proposal(7)
    assert memory.sleeps.propose() is None
    memory.sleeps.undo(proposal.number)
    with pytest.raises(RejectedError, match="nothing of sleep 1 is applied"):
        memory.sleeps.undo(proposal.number)
    assert pickle.loads(pickle.dumps(proposal)) == proposal  # noqa: S301 - our own


def read(memory: Memory, *claims: Claim) -> Proposal:
    begun = memory.sleeps.begin()
    assert begun is not None
    turns = memory.sleeps.unread_turns()
    memory.sleeps.add_facts(begun.number, claims, turns)
    return memory.sleeps.finish(begun.number, {})


def test_a_fact_that_was_said_is_stored_with_its_step_and_its_day(memory: Memory) -> None:
    memory.record("user", "By the way: I moved to Porto. It rains.", name="Dana", at="2026-02-03")
    proposal = read(memory, Claim("Dana moved to Porto", ("s1",), key="Home Town", tags=("travel",)))
    [edit] = proposal.edits
    assert [(quote.step, quote.text) for quote in edit.quotes] == [("s1", "By the way: I moved to Porto.")]
    memory.sleeps.apply(proposal.number)
    fact = memory.fact("f1")
    assert (fact.key, fact.tags, str(fact.valid_from.date()), fact.actor) == (
        "home town",
        ("travel",),
        "2026-02-03",
        "sleep 1",
    )
    assert [(str(source), source.step) for source in fact.sources] == [("said:Dana", "s1")]
    assert memory.search_archive("Porto", as_of="2026-02-02") == []
    assert memory.sleeps.begin() is None, "no turn is read twice"


def test_a_correction_supersedes_what_was_said_before_it(memory: Memory) -> None:
    memory.record("user", "My favourite colour is green.", at="2026-02-03")
    memory.record("user", "My favourite colour is blue now.", at="2026-03-03")
    claims = [
        Claim(f"The favourite colour is {each}", (step,), key="colour")
        for each, step in (("green", "s1"), ("blue", "s2"))
    ]
    memory.sleeps.apply(read(memory, *claims[::-1]).number)
    assert [hit.text for hit in memory.search_archive("favourite colour")] == ["The favourite colour is blue"]
    old = memory.search_archive("favourite colour", as_of="2026-02-20")
    assert [hit.text for hit in old] == ["The favourite colour is green"]
    memory.record("user", "A correction: my favourite colour is red.", at="2026-04-03")
    proposal = read(memory, Claim("the favourite colour is red", ("s3",), key="colour"))
    assert kinds(proposal) == [("supersede", ("f2",))]
    memory.sleeps.apply(proposal.number)
    assert current(memory) == ["the favourite colour is red"]


def test_a_subject_that_facts_share_ends_none_of_them(memory: Memory) -> None:
    said = ("My sister gets married in June.", "My sister lives in Porto.", "My sister Elin never eats fish.")
    for place, text in enumerate(said):
        memory.record("user", text, name="Dana", at=f"2026-02-0{place + 1}")
    memory.sleeps.apply(read(memory, Claim(said[0], ("s1",), key="sister")).number)
    memory.record("user", "She plays chess now, my sister.", name="Dana", at="2026-03-01")
    begun = memory.sleeps.begin()
    assert begun is None or begun.edits == ()
    memory.record("user", said[1], name="Dana", at="2026-03-02")
    claims = [Claim(text, (step,), key="sister") for text, step in ((said[1], "s5"),)]
    proposal = read(memory, *claims)
    assert [(edit.kind, edit.after[0].key) for edit in proposal.edits] == [("new", None)]
    memory.sleeps.apply(proposal.number)
    assert current(memory) == [said[0], said[1]]


def test_a_judgement_is_believed_as_far_as_the_words_allow(memory: Memory) -> None:
    for text in ("Dana likes red trams", "Dana likes 2 red trams", "Dana never likes red trams", "Elin owns red boats"):
        memory.archive(text)
    begun = memory.sleeps.begin()
    assert begun
    first, second, third, other = (f"f{number}" for number in (1, 2, 3, 4))
    pairs = {
        FactPair(first, second, ("Dana likes red trams", "Dana likes 2 red trams"), ()): "same",
        FactPair(first, third, ("Dana likes red trams", "Dana never likes red trams"), ()): "same",
        FactPair(second, other, ("Dana likes 2 red trams", "Elin owns red boats"), ()): "replaces",
        FactPair(first, third, ("Dana likes red trams", "Dana never likes red trams"), ("x",)): "replaces",
    }
    assert memory.sleeps.judge(begun.number, pairs) == 1  # type: ignore[arg-type]
    assert kinds(memory.sleeps.proposal(begun.number)) == [("supersede", (first,))]


def test_an_untrusted_correction_of_a_new_fact_waits_for_a_person(memory: Memory) -> None:
    memory.record("user", "My favourite colour is green.", name="Dana", at="2026-02-03")
    memory.record("user", "My favourite colour is blue now.", name="Dana", source="web:example.org", at="2026-03-03")
    begun = memory.sleeps.begin()
    assert begun
    for turn in memory.sleeps.unread_turns():
        [step] = turn.steps
        memory.sleeps.add_facts(begun.number, [Claim(f"Dana: {step.text}", (step.id,), key="colour")], [turn])
    proposal = memory.sleeps.finish(begun.number, {})
    assert [bool(edit.asks) for edit in proposal.edits] == [False, True]
    memory.sleeps.apply(proposal.number, auto=True)
    assert current(memory) == ["Dana: My favourite colour is green."]


def test_facts_of_a_sleep_end_by_their_tags_and_what_ends_is_merged_with_nothing(open_memory: Open) -> None:
    with open_memory() as memory:
        memory.archive("the red tram", tags=["note"])
        memory.archive("The red tram.")
        memory.record("user", "I moved to Porto.", name="Dana")
    with open_memory(retention={"note": "90d"}) as memory:
        proposal = read(memory, Claim("Dana moved to Porto", ("s1",), tags=("Note",)))
        assert kinds(proposal) == [("new", ())]
        memory.sleeps.apply(proposal.number)
        fact = memory.fact("f3")
        assert fact.expires is not None
        assert fact.valid_until == fact.expires
        assert (fact.expires - fact.at).days == 90
        memory.sleeps.undo(proposal.number)
        assert memory.fact("f3").forgotten


def test_no_call_waits_while_a_sleep_embeds(tmp_path: Path) -> None:
    """The embedder lets another thread use the memory before it answers: with the lock held that would never end."""

    class Asking(Words):
        waits: Memory | None = None
        met = 0

        def embed(self, texts: Sequence[str]) -> Any:
            if self.waits is not None:
                memory, self.waits = self.waits, None
                other = Thread(target=memory.core, daemon=True)
                other.start()
                other.join(timeout=60)
                assert not other.is_alive(), "a message waited"
                Asking.met += 1
                self.waits = memory
            return super().embed(texts)

    embedder = Asking(dimension=64)
    with Memory.open(tmp_path / "home", embedder=embedder, clock=HandClock()) as memory:
        memory.archive("Dana likes red trams", key="trams")
        memory.archive("Elin likes red trams", key="tram")
        memory.archive("Tomas likes red trams of Porto")
        memory.record("user", "I like the red trams of Porto.", name="Dana")
        embedder.waits = memory
        begun = memory.sleeps.begin()
        assert begun is not None
        of_keys = Asking.met
        memory.sleeps.add_facts(
            begun.number, [Claim("Dana likes red trams of Porto", ("s1",))], memory.sleeps.unread_turns()
        )
        of_facts = Asking.met
        assert memory.sleeps.pairs(begun.number)
        of_pairs = Asking.met
        memory.sleeps.finish(begun.number, {})
        memory.sleeps.apply(begun.number)
        assert 0 < of_keys < of_facts < of_pairs < Asking.met
        embedder.waits = None


def test_whatever_stood_beside_an_untrusted_text_is_untrusted_and_ends_nothing_by_itself(memory: Memory) -> None:
    memory.archive("Dana likes trams and boats", key="trams", source="said:Dana")
    memory.append_user("The colour is red.", source="web:example.org", name="Dana")
    memory.request()
    memory.append_assistant("Well.")
    memory.append_user("And I live in Porto.", name="Dana")
    memory.request()
    memory.append_assistant("Good.")
    memory.record("user", "I like old trams now.", name="Dana")
    begun = memory.sleeps.begin()
    assert begun
    turns = memory.sleeps.unread_turns()
    assert [turn.id for turn in turns] == ["s5"], "what is in the window is not read"
    web = turns[0]._replace(steps=(turns[0].steps[0]._replace(via=("web:example.org",)),))
    memory.sleeps.add_facts(begun.number, [Claim("Dana likes old trams", ("s5",), key="trams")], [web])
    proposal = memory.sleeps.finish(begun.number, {})
    [edit] = proposal.edits
    assert (edit.kind, edit.via) == ("supersede", ("web:example.org",))
    assert "a trusted fact would end" in edit.asks
    assert memory.sleeps.apply(proposal.number, auto=True).count("applied") == 0
    memory.forget_source("web:example.org")
    assert memory.sleeps.proposal(1).edits[0].state == "refused"


def test_a_purge_reaches_what_was_proposed(memory: Memory, tmp_path: Path) -> None:
    secret = "xyzzyplugh"
    memory.archive(f"the code is {secret}")
    memory.archive(f"The code is {secret}.")
    memory.record("user", f"I told you that the word {secret} opens it.")
    proposal = read(memory, Claim(f"the word {secret} opens it", ("s1",)))
    assert proposal.count("open") == 2
    for page in ("f1", "f2", "s1"):
        memory.purge(page)
    assert [edit.state for edit in memory.sleeps.proposal(1).edits] == ["stale", "stale"]
    memory.close()
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]


def test_a_purge_reaches_what_was_noted_of_a_model(memory: Memory, tmp_path: Path) -> None:
    memory.record("user", "My card has the number 4111222233334444. It rains.")
    memory.record("user", "It rains here.")
    begun = memory.sleeps.begin()
    assert begun
    claim = Claim("the card has the number 4111222233334444", ("s2",))  # said in s1
    dropped = memory.sleeps.add_facts(begun.number, [claim], memory.sleeps.unread_turns())
    told = {"dropped": dict(dropped), "failures": ["ApiError: I cannot read 'the number 4111222233334444'"]}
    memory.sleeps.finish(begun.number, told)
    memory.purge("s1")
    assert memory.sleeps.proposal(1).detail == {**told, "failures": ["[purged]"]}
    memory.close()
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and b"4111222233334444" in file.read_bytes()]


def test_a_purge_reaches_a_key_that_a_sleep_has_changed(open_memory: Open, tmp_path: Path) -> None:
    with open_memory(embedder=Words()) as memory:
        memory.archive("sits at the aisle", key="xyzzy_wish")
        newer = memory.archive("sits at the window", key="xyzzy wish")
        assert [edit.kind for edit in proposed(memory).edits] == ["key"]
        memory.sleeps.apply(1)
        memory.purge(newer.id)
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and b"xyzzy wish" in file.read_bytes()]


def test_an_import_brings_no_open_proposal_and_its_own_sleep_makes_one(memory: Memory, tmp_path: Path) -> None:
    for text in (*SEATS, "the old boat", "The old boat!"):
        memory.archive(text)
    memory.record("user", "I moved to Porto.", name="Dana")
    memory.record("user", "It rains.", name="Dana")
    claim = Claim("Dana moved to Porto", ("s1",))
    refused = read(memory, claim).edits[0]
    memory.sleeps.refuse(1, [refused.number])
    memory.export(tmp_path / "copy.db")
    home = Home(tmp_path / "other")
    home.import_file(tmp_path / "copy.db", "twin")
    with home.open("twin", embedder=Words(dimension=64)) as twin:
        assert [edit.state for edit in twin.sleeps.proposal(1).edits] == ["refused", "stale", "stale"]
        assert [turn.id for turn in twin.sleeps.unread_turns()] == ["s1"]
        edits = read(twin, claim).edits
        assert [(edit.kind, edit.pages) for edit in edits] == [("merge", ("f3", "f4")), ("new", ())]


def test_others_decide_by_the_inbox_and_a_reader_sees_it(open_memory: Open, tmp_path: Path) -> None:
    with open_memory() as memory:
        for text in SEATS:
            memory.archive(text)
        proposed(memory)
    home = Home(tmp_path)
    assert home.send("home", "sleep_apply", {"sleep": "1", "edits": ["1"]}).state == "done"
    assert home.send("home", "sleep_apply", {"sleep": "1", "edits": ["1"]}).state == "refused"
    assert home.send("home", "sleep_undo", {"sleep": "1"}).state == "done"
    assert home.send("home", "sleep_refuse", {"sleep": "one"}).state == "refused"
    with pytest.raises(RejectedError, match="edits of sleep_apply is a list of texts"):
        home.send("home", "sleep_apply", {"sleep": "1", "edits": "1"})
    with MemoryReader.open(tmp_path / "home") as reader:
        [proposal] = reader.sleeps.proposals()
        assert [edit.state for edit in proposal.edits] == ["undone"]
        assert not hasattr(reader.sleeps, "apply")


def test_an_interrupted_sleep_goes_on_and_is_not_applied_before_it_ends(open_memory: Open) -> None:
    with open_memory() as memory:
        for text in SEATS:
            memory.archive(text)
        memory.record("user", "I moved to Porto.", name="Dana")
        begun = memory.sleeps.begin()
        assert begun
    with open_memory() as memory:
        with pytest.raises(RejectedError, match="was interrupted"):
            memory.sleeps.apply(begun.number)
        again = memory.sleeps.begin()
        assert again == begun
        turns = memory.sleeps.unread_turns()
        memory.sleeps.add_facts(begun.number, [], turns)
        assert memory.sleeps.unread_turns() == []
        assert memory.sleeps.propose() == memory.sleeps.proposal(begun.number)
        with pytest.raises(RejectedError, match="call begin first"):
            memory.sleeps.add_facts(begun.number, [], turns)


def test_edits_are_exported_and_plain() -> None:
    assert Edit("end", "why").via == ()
