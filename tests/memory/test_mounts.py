"""Shared memories: several agents find, read and write one archive and one core block, and each knows who wrote."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pager import Home, InUseError, Memory, Mount, NotFoundError, Prefetch, RejectedError
from pager.types import BlockSpec
from tests.support.clock import HandClock
from tests.support.embedders import Words
from tests.support.formats import newer

RULES = BlockSpec(value="Be kind.", description="The rules.", limit_tokens=100)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, clock=HandClock())


def agent(home: Home, name: str, *mounts: Mount, **more: Any) -> Memory:
    return home.open(name, **{"embedder": Words(dimension=64), "mounts": mounts, **more})


def unit(home: Home, *facts: str, name: str = "sales") -> None:
    with home.open(name, embedder=Words(dimension=64), core={"rules": RULES}) as memory:
        for fact in facts:
            memory.archive(fact)


def reading(home: Home, **more: Any) -> Mount:
    return Mount(home.place("sales"), **more)


def writing(home: Home) -> Mount:
    return Mount(home.place("sales"), core=("rules",), writable=True)


def test_a_search_finds_what_is_shared_and_what_is_ones_own(home: Home) -> None:
    unit(home, "The ferry to Texel takes twenty minutes.", "Lamps are sold in boxes of six.")
    with agent(home, "ann", reading(home)) as memory:
        memory.archive("My own ferry ticket is in the drawer.")
        hits = memory.search_archive("ferry")
        assert {hit.page_id for hit in hits[:2]} == {"f1", "sales/f1"}
        assert memory.search("boxes of lamps")[0].page_id == "sales/f2"
        assert memory.read_page("sales/f2").text == "Lamps are sold in boxes of six."
        assert memory.page_in("sales/f2").page_id == "sales/f2"
        assert memory.fact("sales/f1").text.startswith("The ferry")
        [row] = [row for row in memory.ledger(events=["search"]) if row.reason == "asked of shared memories"][:1]
        assert "sales/f1" in str(row)
        assert memory.search_archive("ferry", tags=["none such"]) == []


def test_what_helps_is_recalled_unasked(home: Home) -> None:
    unit(home, "The ferry to Texel takes twenty minutes.")
    prefetch = Prefetch(k=3)
    with agent(home, "ann", reading(home), prefetch=prefetch, embedder=None) as memory:
        memory.append_user("How long does the ferry to Texel take?")
        assert "sales/f1: The ferry to Texel" in str(memory.request().params["messages"])
        memory.append_assistant("Twenty minutes.")
        memory.append_user("And the ferry to Texel, once more?")
        assert str(memory.request().params["messages"]).count("sales/f1: The ferry") == 1  # it is there already
        assert not memory.check()
        assert [row.page_id for row in memory.ledger(events=["recall"])] == ["sales/f1"]


def test_an_archive_that_is_off_is_not_asked(home: Home) -> None:
    unit(home, "The ferry to Texel takes twenty minutes.")
    with agent(home, "ann", reading(home, archive=False, core=("rules",))) as memory:
        assert memory.search_archive("ferry") == []
        assert [block.value for block in memory.core()] == ["Be kind."]


def test_a_core_block_follows_its_owner(home: Home) -> None:
    unit(home)
    with agent(home, "ann", reading(home, core=("rules",)), core={"human": BlockSpec()}) as memory:
        assert [block.name for block in memory.core()] == ["human", "rules"]
        memory.append_user("Hello.")
        assert "Be kind." in str(memory.request().params)
        memory.append_assistant("Hello.")
        home.send("sales", "core_append", {"block": "rules", "text": "Never shout."})
        memory.append_user("What now?")
        assert "Never shout." in str(memory.request().params)
        with pytest.raises(RejectedError, match="only be read"):
            memory.core_append("rules", "Shout.")


def test_what_one_writes_the_others_find_with_its_source(home: Home) -> None:
    with agent(home, "ann", writing(home)) as ann, agent(home, "bob", writing(home)) as bob:
        assert (
            ann.write_shared("sales", "archive", {"text": "Lamps cost 12 euros.", "key": "lamps"}) == "Stored in sales."
        )
        [hit] = bob.search_archive("lamps")
        assert (hit.page_id, hit.text, str(hit.sources[0])) == ("sales/f1", "Lamps cost 12 euros.", "agent:ann")
        bob.write_shared("sales", "archive", {"text": "Lamps cost 14 euros.", "key": "lamps"})
        assert [(hit.page_id, hit.supersedes) for hit in ann.search_archive("lamps")] == [("sales/f2", "sales/f1")]
        ann.forget("sales/f2", "sold out")
        assert bob.search_archive("lamps") == []
        bob.core_append("rules", "Knock first.")
        ann.process_inbox()
        assert [block.value for block in ann.core()] == ["Knock first."]
    with home.read("sales") as reader:
        assert {str(row.fact.sources[0]) for row in reader.inspect.facts().rows} == {"agent:ann", "agent:bob"}


def test_untrusted_text_stays_untrusted(home: Home) -> None:
    with agent(home, "ann", writing(home)) as ann, agent(home, "bob", reading(home)) as bob:
        ann.append_user("Read the page.", source="web:example.org")
        ann.request()
        call = {"type": "tool_use", "id": "c", "name": "share", "input": {}}
        ann.append_assistant({"role": "assistant", "content": [call], "stop_reason": "tool_use"})
        ann.begin_call("c")
        ann.write_shared("sales", "archive", {"text": "Lamps are free."}, actor="agent")
        [hit] = bob.search_archive("lamps")
        assert hit.via == ("web:example.org",)


def test_who_may_only_read_writes_nothing(home: Home) -> None:
    unit(home, "Lamps cost 12 euros.")
    with agent(home, "ann", reading(home)) as memory:
        for attempt in (
            lambda: memory.write_shared("sales", "archive", {"text": "x"}),
            lambda: memory.forget("sales/f1", "no"),
            lambda: memory.write_shared("other", "archive", {"text": "x"}),
            lambda: memory.page_in("sales/f1", pin=True),
        ):
            with pytest.raises((RejectedError, NotFoundError)):
                attempt()
    with home.read("sales") as reader:
        assert len(reader.search_archive("lamps")) == 1


def test_a_shared_memory_that_is_not_there_yet_is_empty(home: Home) -> None:
    with agent(home, "ann", reading(home, core=("rules",))) as memory:
        assert memory.search_archive("ferry") == []
        with pytest.raises(NotFoundError, match="nothing was stored"):
            memory.read_page("sales/f1")
        unit(home, "The ferry takes twenty minutes.")
        assert [hit.page_id for hit in memory.search_archive("ferry")] == ["sales/f1"]
        memory.process_inbox()
        assert [block.value for block in memory.core()] == ["Be kind."]
    assert not home.exists("other")


def test_a_memory_with_another_embedder_is_found_by_words(home: Home) -> None:
    unit(home, "The ferry takes twenty minutes.")
    with agent(home, "ann", writing(home), embedder=Words(dimension=32)) as memory:
        assert [hit.page_id for hit in memory.search_archive("ferry")] == ["sales/f1"]
        memory.write_shared("sales", "archive", {"text": "The ferry is blue."})
    with home.read("sales", embedder=Words(dimension=64)) as reader:
        assert len(reader.search_archive("ferry")) == 2  # its vectors are its own still


def test_an_open_memory_takes_what_is_written_when_it_looks(home: Home) -> None:
    with agent(home, "sales", core={"rules": RULES}) as owner, agent(home, "ann", writing(home)) as ann:
        assert "Sent to sales" in ann.write_shared("sales", "archive", {"text": "Lamps cost 12 euros."})
        owner.save_value("step", "1")  # with a commit, Postgres says that something waits
        owner.process_inbox()
        assert [hit.page_id for hit in ann.search_archive("lamps")] == ["sales/f1"]
        with pytest.raises(InUseError):
            home.open("sales", embedder=None)


def test_who_does_not_mount_it_leaves_a_shared_block_alone(home: Home) -> None:
    agent(home, "ann", writing(home), core={}).close()
    outcome = home.send("ann", "core_append", {"block": "rules", "text": "Be rude."})
    assert (outcome.state, "shared memory sales" in outcome.text) == ("refused", True)
    with home.read("sales") as reader:
        assert [block.value for block in reader.core()] == [""]


def test_names_that_clash_are_refused(home: Home) -> None:
    unit(home)
    with pytest.raises(RejectedError, match="rules of sales"):
        agent(home, "ann", reading(home, core=("rules",)), core={"rules": BlockSpec()})
    assert home.owner("ann") is None


def test_an_agent_does_not_share_its_memory_with_itself(home: Home) -> None:
    unit(home)
    with pytest.raises(RejectedError, match="sales is this agent's own"):
        agent(home, "sales", reading(home))
    assert home.owner("sales") is None


def test_blocks_that_follow_each_other_do_not_grow(home: Home) -> None:
    unit(home)
    sales, ann = home.place("sales"), home.place("ann")
    with agent(home, "ann", Mount(sales, ("rules",))) as one, agent(home, "sales", Mount(ann, ("rules",))) as other:
        for memory in (one, other) * 3:
            memory.process_inbox()
        assert [block.description for block in one.core()] == ["The rules. It is shared with others, in sales."]


def test_who_has_it_open_is_asked_to_look(home: Home) -> None:
    unit(home)
    with agent(home, "ann", writing(home), embedder=None) as memory, home.open("sales", embedder=None) as sales:
        assert memory.write_shared("sales", "archive", {"text": "Ann sold a lamp."}).startswith("Sent to sales")
        assert home.take_due() == ["sales"]
        sales.archive("Bob sold a chair.")  # in Postgres, a commit tells that commands wait
        assert sales.process_inbox() == 1


def test_many_writers_lose_nothing(home: Home) -> None:
    names = ["ann", "bob", "cid"]

    def write(name: str) -> None:
        with agent(home, name, writing(home), embedder=None) as memory:
            for number in range(5):
                memory.write_shared("sales", "archive", {"text": f"{name} sold lamp {number}."})

    unit(home)
    threads = [Thread(target=write, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with home.read("sales") as reader:
        assert reader.inspect.fact_counts().current == 15
        assert len({row.fact.text for row in reader.inspect.facts(limit=50).rows}) == 15


def test_what_comes_while_an_agent_writes_is_carried_out_as_well(home: Home) -> None:
    class Meanwhile(Words):
        def embed(self, texts: Sequence[str]) -> Any:
            if "Ann sold a lamp." in texts and not sent:  # sales is open here
                sent.append(home.send("sales", "archive", {"text": "Bob sold a chair."}).state)
            return super().embed(texts)

    sent: list[str] = []
    unit(home)
    with agent(home, "ann", writing(home), embedder=Meanwhile(dimension=64)) as memory:
        memory.write_shared("sales", "archive", {"text": "Ann sold a lamp."})
        assert sent == ["pending"]
        assert {hit.text for hit in memory.search_archive("sold")} == {"Ann sold a lamp.", "Bob sold a chair."}


def test_a_memory_that_was_removed_is_gone_and_is_made_again_by_who_may_write_it(home: Home) -> None:
    unit(home, "The ferry takes twenty minutes.")
    with (
        agent(home, "ann", writing(home), embedder=None) as ann,
        agent(home, "bob", reading(home, core=("rules",))) as bob,
    ):
        home.remove("sales")
        for memory in (ann, bob):
            memory.append_user("Hello.")
            assert (memory.core(), memory.search_archive("ferry")) == ([], [])
            assert "Be kind." not in str(memory.request().params["messages"][-1])
        assert ann.write_shared("sales", "core_append", {"block": "rules", "text": "Be quick."}) == "Stored in sales."
        bob.process_inbox()
        assert [block.value for block in (*ann.core(), *bob.core())] == ["Be quick.", "Be quick."]


def test_a_block_that_is_gone_leaves_and_one_that_is_missing_is_made(home: Home) -> None:
    unit(home)
    tone = Mount(home.place("sales"), core=("tone",), writable=True)
    with agent(home, "ann", writing(home)) as ann, agent(home, "bob", tone) as bob:
        bob.core_append("tone", "Sing.")
        with home.read("sales") as reader:
            assert [block.value for block in reader.core()] == ["Be kind.", "Sing."]
        with home.open("sales", embedder=None, core={"tone": BlockSpec()}):
            ann.process_inbox()
        assert ann.core() == []
        bob.process_inbox()
        assert [block.value for block in bob.core()] == ["Sing."]


def test_what_does_not_fit_keeps_no_other_block_from_following(home: Home) -> None:
    blocks = {name: BlockSpec(limit_tokens=3000) for name in "abc"}
    with home.open("sales", embedder=None, core=blocks) as sales:
        sales.core_append("b", "word " * 1999)
    own = {"own": BlockSpec(value="word " * 1499, limit_tokens=3000)}
    with agent(home, "ann", reading(home, core=("a", "b", "c")), core=own) as memory:

        def sizes(**texts: str) -> list[int]:
            with home.open("sales", embedder=None) as sales:
                for name, text in texts.items():
                    sales.core_write(name, text)
            memory.process_inbox()
            return [block.used_tokens for block in memory.core()]

        assert sizes() == [1500, 0, 2000, 0]
        assert sizes(b="short", a="word " * 1999) == [1500, 2000, 1, 0]
        assert sizes(b="word " * 1499, c="short") == [1500, 2000, 1, 1]
        assert ["shared memory b: core would hold" in row.reason for row in memory.ledger(events=["error"])] == [True]
        assert sizes(a="short") == [1500, 1, 1500, 1]


def test_a_memory_that_cannot_be_opened_refuses_and_carries_nothing_out_later(home: Home) -> None:
    unit(home, "The ferry takes twenty minutes.")
    with agent(home, "ann", writing(home), embedder=None) as memory:
        with newer(), home.open("sales", embedder=None) as sales:
            sales.archive("It is of a newer format.")
        for attempt in (
            lambda: memory.write_shared("sales", "archive", {"text": "Lamps cost 12 euros."}),
            lambda: memory.core_append("rules", "Be quick."),
            lambda: memory.forget("sales/f1", "wrong"),
        ):
            with pytest.raises(RejectedError, match=r"^sales cannot be written now: sales(/pager.db)? has format"):
                attempt()
        assert [block.value for block in memory.core()] == ["Be kind."]
        assert home.pending("sales") == []
    with agent(home, "bob", reading(home), embedder=None) as memory:
        with pytest.raises(NotFoundError, match=r"^there is no page 'sales/f1': sales(/pager.db)? has format"):
            memory.read_page("sales/f1")
        memory.process_inbox()
        assert home.address not in str(memory.ledger(events=["error"]))


def test_a_memory_of_an_older_format_is_read(home: Home) -> None:
    unit(home, "The ferry takes twenty minutes.")
    with newer(), agent(home, "ann", reading(home, core=("rules",))) as memory:
        assert [hit.page_id for hit in memory.search_archive("ferry")] == ["sales/f1"]
        assert [block.value for block in memory.core()] == ["Be kind."]


def test_only_facts_are_shared_and_only_where_the_archive_is(home: Home) -> None:
    with home.open("sales", embedder=None, core={"rules": RULES}) as sales:
        sales.append_user("My secret is swordfish.")
        sales.archive("Lamps cost 12 euros.")
    only_core = Mount(home.place("sales"), ("rules",), archive=False, writable=True)
    with agent(home, "ann", writing(home)) as ann, agent(home, "bob", only_core) as bob:
        assert ann.page_in(" sales/f1 ").page_id == ann.fact(" sales/f1 ").id == "sales/f1"
        for read in (ann.page_in, ann.read_page, ann.fact):
            with pytest.raises(NotFoundError, match="only facts are shared"):
                read("sales/s1")
        for attempt in (
            lambda: bob.page_in("sales/f1"),
            lambda: bob.fact("sales/f1"),
            lambda: bob.forget("sales/f1", "no"),
            lambda: bob.write_shared("sales", "archive", {"text": "x"}),
        ):
            with pytest.raises(RejectedError, match=r"not shared with this agent|only be read"):
                attempt()
        assert ann.search_archive("lamps")[0].page_id == "sales/f1"


def test_what_an_agent_had_read_once_labels_nothing_that_it_writes_later(home: Home) -> None:
    unit(home)
    with home.open("sales", embedder=None) as sales:
        for number, via in enumerate([[], ["web:example.org"], []]):
            home.send("sales", "archive", {"text": f"Lamp {number}.", "source": "agent:ann", "via": via})
            sales.save_value("step", str(number))
            sales.process_inbox()
        facts = sorted((row.fact.text, row.fact.via) for row in sales.inspect.facts().rows)
    assert facts == [("Lamp 0.", ()), ("Lamp 1.", ("web:example.org",)), ("Lamp 2.", ())]


def test_what_a_helper_writes_is_of_the_agent_that_it_works_for(home: Home) -> None:
    unit(home)
    agent(home, "acme..ann").close()
    helper = home.place("acme..ann").helper("call")
    with Memory.open(helper, embedder=None, mounts=[writing(home)], clock=HandClock()) as memory:
        memory.write_shared("sales", "archive", {"text": "Lamps cost 12 euros."})
        assert str(memory.fact("sales/f1").sources[0]) == "agent:ann"


def test_a_call_that_is_run_again_after_a_kill_writes_once(home: Home) -> None:
    unit(home)
    with home.open("sales", embedder=None) as sales, agent(home, "ann", writing(home), embedder=None) as memory:
        memory.append_user("Tell the others.")
        call = {"type": "tool_use", "id": "c", "name": "core_append", "input": {}}
        memory.append_assistant({"role": "assistant", "content": [call], "stop_reason": "tool_use"})
        for _ in range(2):
            with suppress(KeyboardInterrupt), memory.transaction():  # as after a kill
                memory.core_append("rules", "Be quick.", actor="agent")
                memory.write_shared("sales", "archive", {"text": "Lamps cost 12 euros."}, actor="agent")
                raise KeyboardInterrupt
        memory.core_append("rules", "Be calm.")
        sales.save_value("step", "1")
        sales.process_inbox()
        with memory.transaction():
            memory.core_append("rules", "Be quick.", actor="agent")
            memory.append_result("c", "Added.", memory_tool=True)
        sales.save_value("step", "2")
        sales.process_inbox()
        assert [block.value for block in sales.core()] == ["Be kind.\nBe quick.\nBe calm."]
        assert [row.event for row in sales.ledger(events=["archive", "repeat"])] == ["archive"]
