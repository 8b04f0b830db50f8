"""Mirrors: what is written is read back as it was, edits are taken over once, and a hostile folder does no harm."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.mirror import import_mirror, is_mirror, write_mirror
from agents.mirror.folder import locked
from agents.mirror.forms import form, parse, same_text
from pager import BlockSpec, Memory, RejectedError
from tests.support import HandClock

CORE = {"human": BlockSpec(value="Dana.", description="the person"), "fixed": BlockSpec(value="x", read_only=True)}


def opened(place: Path) -> Memory:
    return Memory.open(place / "agent", embedder=None, clock=HandClock(), core=CORE)


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def state(memory: Memory) -> Any:
    facts = [row.fact for row in memory.inspect.facts(limit=500).rows]
    return memory.core(), facts, memory.history.days(), [row.event for row in memory.ledger()]


@pytest.fixture
def mirror(tmp_path: Path) -> Any:
    with opened(tmp_path) as memory:
        memory.archive("prefers window seats", key="seat", tags=["travel"])
        memory.archive("prefers aisle seats", key="seat", tags=["travel"])
        memory.archive('# not a heading\n---\nid: "f9"', valid_until="2026-06-01", source="web:example.org")
        memory.record("user", "## s9 forged\n> text", name="Dana")
        folder = tmp_path / "notes"
        write_mirror(memory, "desk", folder)
        yield memory, folder


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_mirror_has_a_file_for_each_block_fact_and_day(mirror: Any) -> None:
    _, folder = mirror
    assert sorted(files(folder)) == [
        "core/fixed.md", "core/human.md", "facts/f0/f1.md", "facts/f0/f2.md", "facts/f0/f3.md", "mirror.md",
        "recall/2026-05-03.md",
    ]  # fmt: skip
    assert is_mirror(folder)
    lines = (folder / "facts/f0/f2.md").read_text().split("\n")
    assert lines[1:4] == ['id: "f2"', 'key: "seat"', 'tags: ["travel"]']
    assert lines[6:] == ['by: "person"', 'sources: ["program"]', 'supersedes: "f1"', "---", "prefers aisle seats", ""]
    assert "\n> ## s9 forged\n> > text\n" in (folder / "recall/2026-05-03.md").read_text()


def test_edits_are_taken_over_once_and_the_next_export_shows_them(mirror: Any) -> None:
    memory, folder = mirror
    edit(folder / "core/human.md", "Dana.", "Dana, of Porto.")
    edit(folder / "facts/f0/f2.md", "aisle", "middle")
    edit(folder / "facts/f0/f3.md", "2026-06-02", "2026-07-02")
    (folder / "facts/mine.md").write_text("likes tea\n")
    (folder / "facts/other.md").write_text('---\nkey: "pet"\ntags: ["home"]\n---\na cat\n')
    assert import_mirror(memory, folder) == 5
    before = state(memory)
    assert import_mirror(memory, folder) == 0
    assert state(memory) == before
    assert memory.core()[0].value == "Dana, of Porto."
    seat = memory.inspect.current_fact("seat")
    assert (seat.text, seat.tags, seat.supersedes) == ("prefers middle seats", ("travel",), "f2")
    assert [str(source) for source in seat.sources] == ["import:notes"]
    assert memory.fact("f3").valid_until.month == 7
    assert memory.inspect.current_fact("pet").text == "a cat"
    write_mirror(memory, "desk", folder)
    assert not (folder / "facts/mine.md").exists()
    assert "likes tea" in "".join(path.read_text() for path in (folder / "facts").rglob("*.md"))
    assert import_mirror(memory, folder) == 0
    assert not memory.check()


def test_a_deleted_file_ends_its_fact_and_never_all_of_them(mirror: Any) -> None:
    memory, folder = mirror
    (folder / "facts/f0/f2.md").unlink()
    assert import_mirror(memory, folder) == 1
    assert memory.fact("f2").forgotten == "its file was removed from the mirror"
    assert import_mirror(memory, folder) == 0
    memory.archive("one more")
    write_mirror(memory, "desk", folder)
    for path in (folder / "facts").rglob("*.md"):
        path.unlink()
    with pytest.raises(RejectedError, match="none of the 2 current facts is there"):
        import_mirror(memory, folder)


def test_what_the_memory_changed_since_is_no_edit(mirror: Any) -> None:
    memory, folder = mirror
    memory.archive("prefers the roof", key="seat")
    memory.core_append("human", "She sings.")
    memory.archive(memory.fact("f3").text, valid_until="2027-01-01")
    memory.forget("f1", "old")
    memory.purge("f2")
    before = state(memory)
    assert import_mirror(memory, folder) == 0
    assert state(memory) == before
    write_mirror(memory, "desk", folder)
    assert not (folder / "facts/f0/f2.md").exists()


def test_an_edit_keeps_the_untrusted_sources_of_the_text(mirror: Any) -> None:
    memory, folder = mirror
    edit(folder / "facts/f0/f3.md", "heading", "title")
    import_mirror(memory, folder)
    [new] = [row.fact for row in memory.inspect.facts("current").rows if "title" in row.fact.text]
    assert new.via == ("web:example.org",)
    assert memory.archive("mine").via == ()


@pytest.mark.parametrize(
    ("name", "change", "where"),
    [
        ("facts/f0/f2.md", lambda t: t.replace('key: "seat"', "key: seat"), "f2.md:3: the value of key is no JSON"),
        ("facts/f0/f2.md", lambda t: t.replace('"seat"', "7"), "f2.md:3: key is a text in double quotes, not 7"),
        ("facts/f0/f2.md", lambda t: t.replace('["travel"]', '"travel"'), "f2.md:4: tags is a list"),
        ("facts/f0/f2.md", lambda t: t.replace("---\nprefers", "prefers"), "f2.md:10: .* is no value"),
        ("facts/f0/f2.md", lambda t: t.replace("tags:", "what is this"), "f2.md:4: .* is no value"),
        ("facts/f0/f2.md", lambda t: t.replace('"f2"', '"../../x"'), "f2.md:2: the id of this file has to be f2"),
        ("facts/f0/f2.md", lambda t: t.replace('stored: "2026', 'stored: "2025'), "f2.md:6: stored cannot be edited"),
        ("facts/f0/f2.md", lambda t: t.replace('from: "2026', 'from: "2025'), "f2.md:5: from cannot be edited"),
        ("facts/f0/f1.md", lambda t: t.replace("window", "roof"), "f1.md:1[0-9]: f1 is a fact of the past"),
        ("facts/f0/f3.md", lambda t: t.replace('until: "2026', 'until: "2020'), "f3.md:4: .*is not after"),
        ("facts/f0/f2.md", lambda t: t.replace("prefers aisle seats", "  "), "f2.md:1[0-9]: a fact needs a text"),
        ("facts/f0/f99.md", lambda _: "hello", "f99.md:1: there is no fact f99"),
        ("facts/new.md", lambda _: '---\nid: "f7"\n---\nx', "new.md:2: this file was renamed or copied"),
        ("facts/new.md", lambda _: "\n", "new.md:1: a new fact needs a text"),
        ("core/human.md", lambda t: t.replace("Dana.", "x " * 3_000), "human.md:[0-9]: .*1000"),
        ("core/fixed.md", lambda t: t + "y", "fixed.md:[0-9]: the block 'fixed' is read-only"),
        ("core/other.md", lambda _: "x", "other.md:1: there is no such core block"),
        ("recall/2026-05-03.md", lambda t: t.replace("forged", "changed"), "03.md:5: this is not what was said"),
        ("recall/2020-01-01.md", lambda _: "# x", "this is not what was said"),
        ("mirror.md", lambda t: t.replace("mirror: 1", "mirror: 2"), "mirror.md:1: this is no mirror"),
    ],
)
def test_what_cannot_be_is_named_with_its_line_and_nothing_is_stored(
    mirror: Any, name: str, change: Callable[[str], str], where: str
) -> None:
    memory, folder = mirror
    (folder / "facts/fine.md").write_text("a fine new fact")
    path = folder / name
    path.write_text(change(path.read_text() if path.exists() else ""))
    before = state(memory)
    with pytest.raises(RejectedError, match=where):
        import_mirror(memory, folder)
    assert state(memory) == before


def test_what_was_edited_here_and_there_is_a_conflict(mirror: Any) -> None:
    memory, folder = mirror
    edit(folder / "facts/f0/f2.md", "aisle", "middle")
    edit(folder / "core/human.md", "Dana.", "Mara.")
    memory.archive("prefers the roof", key="seat")
    memory.core_append("human", "She sings.")
    before = state(memory)
    with pytest.raises(
        RejectedError, match=r"(?s)human.md:6: the block was edited here.*f2.md:1[0-9]: f2 is a fact of the past"
    ):
        import_mirror(memory, folder)
    assert state(memory) == before


def test_an_export_overwrites_no_edit_and_no_other_folder(mirror: Any, tmp_path: Path) -> None:
    memory, folder = mirror
    edit(folder / "facts/f0/f2.md", "aisle", "middle")
    before = files(folder)
    with pytest.raises(RejectedError, match="has 1 edits that were not imported"):
        write_mirror(memory, "desk", folder)
    assert files(folder) == before
    (tmp_path / "else").mkdir()
    (tmp_path / "else/mirror.md").write_text("mine")
    with pytest.raises(RejectedError, match="neither an empty folder nor a mirror"):
        write_mirror(memory, "desk", tmp_path / "else")


def test_one_export_or_import_at_a_time_has_a_folder(mirror: Any) -> None:
    memory, folder = mirror
    before = files(folder)
    memory.archive("prefers a seat in the middle", key="seat")
    with locked(folder):
        with pytest.raises(RejectedError, match=r"another export or import of .*notes is under way"):
            write_mirror(memory, "desk", folder)
        with pytest.raises(RejectedError, match="is under way"):
            import_mirror(memory, folder)
    assert files(folder) == before
    write_mirror(memory, "desk", folder)
    assert import_mirror(memory, folder) == 0


def test_links_pipes_and_huge_files_are_refused_and_never_followed(mirror: Any, tmp_path: Path) -> None:
    memory, folder = mirror
    secret = tmp_path / "secret.md"
    secret.write_text("my key")
    places: list[Callable[[Path], object]] = [
        lambda path: path.symlink_to(secret),
        os.mkfifo,
        lambda path: path.write_bytes(b"\xff\xfe"),
        lambda path: os.truncate(path, 64 << 20) if path.write_text("x") else None,
    ]
    for place in places:
        path = folder / "facts/new.md"
        place(path)
        with pytest.raises(RejectedError, match=r"new\.md"):
            import_mirror(memory, folder)
        path.unlink()
    (folder / "facts/f0").rename(tmp_path / "moved")
    (folder / "facts/f0").symlink_to(tmp_path / "moved")
    with pytest.raises(RejectedError, match="is a link"):
        import_mirror(memory, folder)
    with pytest.raises(RejectedError, match="is a link"):
        write_mirror(memory, "desk", folder)


def test_an_export_writes_through_no_link(mirror: Any, tmp_path: Path) -> None:
    memory, _ = mirror
    outside = tmp_path / "outside"
    outside.mkdir()
    other = tmp_path / "other"
    other.mkdir()
    (other / "recall").symlink_to(outside)
    with pytest.raises(RejectedError):
        write_mirror(memory, "desk", other)
    assert not list(outside.iterdir())


def test_what_editors_change_by_themselves_is_no_edit(mirror: Any) -> None:
    memory, folder = mirror
    memory.archive("prefers  \n tea \t\n\n", key="drink ")
    memory.core_write("human", "Dana.  \nShe sings.\t")
    write_mirror(memory, "desk", folder)
    before = state(memory)
    for path in folder.rglob("*.md"):
        lines = path.read_text(encoding="utf-8").split("\n")
        path.write_bytes("\ufeff".encode() + "\r\n".join(line.rstrip() for line in lines).rstrip().encode())
    for name in (".git/x.md", ".f1.md.swp", "facts/f0/f2.md~", "facts/#f2.md#", "README.md"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("not of a mirror")
    assert import_mirror(memory, folder) == 0
    assert state(memory) == before


@pytest.mark.parametrize("name", ["facts/f0/cats.md", "facts/cats.md", "facts/f0/f2 (copy).md", "facts/f0/F2.MD"])
@pytest.mark.parametrize("stays", [True, False])
def test_a_renamed_file_is_no_new_fact_and_ends_none(mirror: Any, name: str, stays: bool) -> None:
    memory, folder = mirror
    own = folder / "facts/f0/f2.md"
    (folder / name).write_bytes(own.read_bytes())
    if not stays:
        own.unlink()
    before = state(memory)
    with pytest.raises(RejectedError, match=r"(?i)md:2: this file was renamed or copied. The file of 'f2'"):
        import_mirror(memory, folder)
    assert state(memory) == before


@pytest.mark.parametrize(
    ("files", "error"),
    [
        (
            {"a.md": '---\nkey: "pet"\n---\na dog', "b.md": '---\nkey: " pet"\n---\na bird'},
            "b.md:1: .*a.md:1 has the key",
        ),
        ({"a.md": "<<<<<<< HEAD\na dog\n=======\na bird\n>>>>>>> other"}, "a.md:1: git left a conflict"),
        ({"a.md": '---\ntags: ["\\ud800"]\n---\na dog'}, "a.md:2: .* half a character"),
        ({"a/b/c.md": "a dog"}, "a/b is too deep"),
    ],
)
def test_what_would_read_otherwise_afterwards_is_refused(mirror: Any, files: dict[str, str], error: str) -> None:
    memory, folder = mirror
    for name, text in files.items():
        (folder / "facts" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "facts" / name).write_text(text)
    before = state(memory)
    with pytest.raises(RejectedError, match=error):
        import_mirror(memory, folder)
    assert state(memory) == before


def test_names_and_texts_as_people_type_them_are_taken_over_once(mirror: Any) -> None:
    memory, folder = mirror
    (folder / "facts/a.md").write_text('---\nkey: " cafe\u0301 "\ntags: ["u\u0308 "]\n---\na  dog \n\n')
    (folder / "facts/b.md").write_text("<<<<<<< is not a conflict\n")
    assert import_mirror(memory, folder) == 2
    assert memory.inspect.current_fact("caf\u00e9").tags == ("\u00fc",)
    assert import_mirror(memory, folder) == 0
    write_mirror(memory, "desk", folder)


@pytest.mark.parametrize("facts", [-1, 4, 10**30])
def test_a_count_that_cannot_be_ends_no_fact(mirror: Any, facts: int) -> None:
    memory, folder = mirror
    edit(folder / "mirror.md", "facts: 3", f"facts: {facts}")
    with pytest.raises(RejectedError, match=r"mirror\.md:1: it is of a memory with"):
        import_mirror(memory, folder)


EXPORT = """
import os, signal, sys
from pathlib import Path
from agents.mirror import write_mirror
from pager import MemoryReader
left = [int(sys.argv[3])]
def watch(event, args):
    if event == "os.rename":
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(watch)
with MemoryReader.open(sys.argv[1]) as reader:
    write_mirror(reader, "desk", Path(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("deadly", [1, 3, 6])
def test_an_export_that_is_killed_leaves_an_older_mirror_and_no_edit(mirror: Any, tmp_path: Path, deadly: int) -> None:
    memory, folder = mirror
    memory.core_append("human", "She sings.")
    for number in range(4):
        memory.archive(f"fact {number}")
    done = subprocess.run(
        [sys.executable, "-c", EXPORT, tmp_path / "agent", folder, str(deadly)], check=False, timeout=120
    )
    assert done.returncode == -signal.SIGKILL
    before = state(memory)
    assert import_mirror(memory, folder) == 0
    assert state(memory) == before
    write_mirror(memory, "desk", folder)
    write_mirror(memory, "desk", tmp_path / "again")
    assert {name for name in files(folder) if not name.endswith(".tmp")} == set(files(tmp_path / "again"))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60).filter(
    lambda text: text.strip("\n").strip() != ""
)
FACTS = st.lists(
    st.tuples(
        TEXTS, st.sampled_from([None, "seat", "a/../b", "\U0001f600"]), st.sampled_from([(), ("x",), ("y", "x")])
    ),
    min_size=1,
    max_size=6,
)


@given(FACTS, TEXTS, st.data())
def test_a_round_trip_changes_nothing_and_an_edit_is_the_edit(
    facts: list[Any], other: str, data: st.DataObject
) -> None:
    with TemporaryDirectory() as name, opened(Path(name)) as memory:
        for text, key, tags in facts:
            memory.archive(text, key=key, tags=tags)
            memory.record("user", text)
        folder = Path(name) / "notes"
        write_mirror(memory, "desk", folder)
        written, before = files(folder), state(memory)
        assert import_mirror(memory, folder) == 0
        assert state(memory) == before
        write_mirror(memory, "desk", folder)
        assert files(folder) == written

        current = [row.fact for row in memory.inspect.facts("current").rows]
        chosen = data.draw(st.sampled_from(current))
        path = folder / f"facts/f0/{chosen.id}.md"
        file = parse(path.read_bytes().decode().replace("\r\n", "\n").replace("\r", "\n"))
        path.write_bytes(form(file.fields, other).encode())
        import_mirror(memory, folder)
        said = {(fact.text, fact.key, fact.tags) for fact in current if fact is not chosen}
        said_now = {(row.fact.text, row.fact.key, row.fact.tags) for row in memory.inspect.facts("current").rows}
        assert len(said_now - said) <= 1
        assert any(same_text(text, other) and key == chosen.key for text, key, _ in said_now)
        assert all(same_text(text, other) and key == chosen.key for text, key, _ in said_now - said)
        assert said <= said_now
        write_mirror(memory, "desk", folder)
        again = files(folder)
        assert import_mirror(memory, folder) == 0
        write_mirror(memory, "desk", folder)
        assert files(folder) == again
        assert not memory.check()


def test_an_export_depends_on_the_memory_alone(mirror: Any, tmp_path: Path) -> None:
    memory, folder = mirror
    clock = memory._clock
    clock.set(clock.now() + timedelta(days=2))
    write_mirror(memory, "desk", tmp_path / "again")
    assert files(tmp_path / "again") == files(folder)
