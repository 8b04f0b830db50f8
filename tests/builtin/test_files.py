"""`builtin: files`: what is listed, read, written and edited, and what is said about it."""

import os
import stat
from pathlib import Path

import pytest

from agents.builtin import documents
from agents.config.errors import ConfigError
from tests.support import papers
from tests.support.builtins import BuiltIns

FILES = "builtin: files, root: notes"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (tmp_path / "notes" / "plans").mkdir(parents=True)
    return tmp_path / "notes"


@pytest.fixture
def files(notes: Path) -> BuiltIns:
    return BuiltIns(notes.parent, f"{FILES}, write: true")


def test_a_directory_is_listed_with_kinds_and_sizes(notes: Path, files: BuiltIns) -> None:
    (notes / "may.md").write_bytes(b"x" * 1_234)
    os.utime(notes / "may.md", (0, 0))
    (notes / "way").symlink_to("plans")
    text, sources = files.sourced("list_files")
    assert text.splitlines() == [
        "the root has 3 entries:", "plans/", "may.md (1,234 bytes, 1970-01-01)", "way (a link, which is not followed)"
    ]  # fmt: skip
    assert sources == {"file:."}
    assert "plans has 0 entries" in files("list_files", path="plans")
    assert "there is no nowhere" in files("list_files", path="nowhere")


def test_a_file_is_read_page_by_page_to_its_end(notes: Path, files: BuiltIns) -> None:
    lines = [f"line {number} of the plan" for number in range(1, 1_001)]
    (notes / "plans" / "long.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    read, line = list[str](), 1
    while line:
        text, sources = files.sourced("read_file", path="./plans//x/../long.txt", line=line)
        assert sources == {"file:plans/long.txt"}
        head, *page = text.splitlines()
        read += page
        assert f"lines {line} to {len(read)} of 1000" in head
        line = int(head.split("read on with line ")[1].rstrip(":")) if "read on" in head else 0
    assert read == lines
    assert "has the lines 1 to 1,000" in files("read_file", path="plans/long.txt", line=1_001)
    assert "has the lines 1 to 1,000" in files("read_file", path="plans/long.txt", line=0)


def test_a_line_longer_than_a_page_is_given_whole(notes: Path, files: BuiltIns) -> None:
    (notes / "one.json").write_text("a\n" + "0123456789" * 50_000 + "\nz", encoding="utf-8")
    assert files("read_file", path="one.json").splitlines() == [
        "one.json, lines 1 to 1 of 3; read on with line 2:",
        "a",
    ]
    head, line = files("read_file", path="one.json", line=2).splitlines()
    assert (head, len(line)) == ("one.json, lines 2 to 2 of 3; read on with line 3:", 500_000)
    (notes / "one.json").write_text("0" * 1_000_001, encoding="utf-8")
    head, line = files("read_file", path="one.json").splitlines()
    assert "is cut after 1,000,000" in head
    assert len(line) == 1_000_000


@pytest.mark.parametrize(
    ("raw", "text", "said"),
    [
        ("é\r\nü".encode(), "é\nü", "lines 1 to 2 of 2:"),
        ("é".encode("utf-16"), "é", "UTF-16"),
        ("é".encode("utf-8-sig"), "é", "UTF-8 with a byte order mark"),
        ("é".encode("utf-32"), "é", "UTF-32"),
        ("é".encode("cp1252"), "é", "not UTF-8, read as Windows-1252"),
        (b"one\x0ctwo\x1b[0m", "one\x0ctwo\x1b[0m", "lines 1 to 1 of 1:"),
    ],
)
def test_encodings_are_told(notes: Path, files: BuiltIns, raw: bytes, text: str, said: str) -> None:
    (notes / "a.txt").write_bytes(raw)
    head, _, read = files("read_file", path="a.txt").partition("\n")
    assert read == text
    assert said in head


@pytest.mark.parametrize("raw", [b"\x7fELF\x02\x01\x01\0\0", b"\x89PNG\r\n\x1a\n\0\0", bytes(range(32)) * 9])
def test_a_binary_is_told_and_not_read(notes: Path, files: BuiltIns, raw: bytes) -> None:
    (notes / "a").write_bytes(raw)
    text = files("read_file", path="a")
    assert f"is binary ({len(raw)} bytes, the first {raw[:16].hex(' ')})" in text


def test_an_empty_file_is_told(notes: Path, files: BuiltIns) -> None:
    (notes / "a").touch()
    assert files("read_file", path="a") == "a is empty."


def test_a_file_is_written_whole_with_its_directories_and_keeps_its_mode(notes: Path, files: BuiltIns) -> None:
    assert files("write_file", path="a/b/c.sh", text="one\n") == "Written: a/b/c.sh has 1 lines, 4 bytes."
    (notes / "a/b/c.sh").chmod(0o750)
    for _ in range(2):  # as after a crash
        files("write_file", path="a/b/c.sh", text="née\n")
    assert (notes / "a/b/c.sh").read_text(encoding="utf-8") == "née\n"
    assert stat.S_IMODE((notes / "a/b/c.sh").stat().st_mode) == 0o750
    assert [each.name for each in (notes / "a/b").iterdir()] == ["c.sh"]
    assert "plans is a directory" in files("write_file", path="plans", text="x")


def test_what_a_crash_left_of_a_write_is_in_nobodys_way(
    notes: Path, files: BuiltIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / "a").write_text("before", encoding="utf-8")

    def dies(*_: object, **__: object) -> None:
        raise SystemExit

    def leaves(*_: object, **__: object) -> None:
        raise FileNotFoundError

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", dies)
        patched.setattr(os, "unlink", leaves)
        assert "SystemExit" in files("write_file", path="a", text="after")
    assert (notes / "a").read_text(encoding="utf-8") == "before"
    assert len([*notes.iterdir()]) == 3
    files("write_file", path="a", text="after")
    assert {each.name for each in notes.iterdir()} == {"a", "plans"}


def test_an_edit_is_exact_and_unique(notes: Path, files: BuiltIns) -> None:
    (notes / "a").write_bytes(b"one\r\ntwo two\r\n")
    assert "stands 2 times in a" in files("edit_file", path="a", old_text="two", new_text="x")
    assert "does not stand in a" in files("edit_file", path="a", old_text="three", new_text="x")
    assert "does not stand in a" in files("edit_file", path="a", old_text="", new_text="x")
    assert (notes / "a").read_bytes() == b"one\r\ntwo two\r\n"
    done = files("edit_file", path="a", old_text="one\ntwo ", new_text="1\n2\n")
    assert done == "Replaced in line 1 of a, which has 3 lines now."
    assert (notes / "a").read_bytes() == b"1\r\n2\r\ntwo\r\n"
    assert "Deleted in line 3" in files("edit_file", path="a", old_text="two\n", new_text="")
    (notes / "a").write_bytes("é".encode("utf-16"))
    assert "its encoding is UTF-16" in files("edit_file", path="a", old_text="é", new_text="e")


def test_only_with_write_there_are_tools_that_write(notes: Path) -> None:
    read, write = (BuiltIns(notes.parent, f"{FILES}, write: {flag}").tools for flag in ("false", "true"))
    assert [*read] == ["list_files", "read_file", "search_files"]
    assert {name: tool.idempotent for name, tool in write.items()} == {
        **dict.fromkeys(read, True), "write_file": True, "edit_file": False
    }  # fmt: skip


def test_trusted_files_have_no_source(notes: Path) -> None:
    files = BuiltIns(notes.parent, f"{FILES}, trust: trusted")
    (notes / "a").write_text("one", encoding="utf-8")
    assert [files.sourced(*call)[1] for call in (("list_files",),)] == [set()]
    assert files.sourced("read_file", path="a")[1] == files.sourced("search_files", pattern="o")[1] == set()
    assert {tool.error_source for tool in files.tools.values()} == {None}


def test_a_root_that_is_not_there_is_an_error_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"x\.yaml:3:.*there is no directory .*notes"):
        BuiltIns(tmp_path, FILES)


def test_the_same_tools_twice_are_one_error_that_says_what_to_do(notes: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        BuiltIns(notes.parent, f"{FILES}}}\n  - {{builtin: files, root: .")
    [problem] = caught.value.problems
    tools = "'list_files' and 'read_file' and 'search_files'"
    way = "Name as its root the directory above both, or give the other one to a helper"
    assert problem.message.startswith(f"there is a tool {tools} already; an agent has one 'builtin: files'. {way}")


PAGE = b"<h1>Ferries</h1><p>It sails at <b>nine</b>.</p><script>evil()</script>"


@pytest.mark.slow
def test_pages_and_documents_are_read_as_text(notes: Path) -> None:
    (notes / "a.html").write_bytes(PAGE)
    files = BuiltIns(notes.parent, FILES)
    text = files("read_file", path="a.html")
    assert text.startswith("a.html, lines 1 to 3 of 3 (as text):\n# Ferries\n")
    assert "evil" not in text
    for name, document, lines in (
        ("b.pdf", papers.pdf("It sails at nine.", "On page 2: café."), ["It sails at nine.", "", "On page 2: café."]),
        ("b.docx", papers.docx("It sails at nine.", "für"), ["It sails at nine.", "", "für"]),
        ("b.xlsx", papers.xlsx(("hat", "count"), ("red", 7)), ["## Stock", "", "| hat | count |", "| --- | --- |"]),
    ):
        (notes / name).write_bytes(document)
        head, *text = files("read_file", path=name).splitlines()
        assert (head.partition(",")[0], "(as text)" in head, text[: len(lines)]) == (name, True, lines)
        (notes / name).write_bytes(document[: len(document) // 2])
        assert f"{name} is not read as {name[2:]}: " in files("read_file", path=name)
    (notes / "b.pdf").write_bytes(papers.pdf(""))  # as one of pictures alone
    assert "b.pdf has no text. What is written in its pictures" in files("read_file", path="b.pdf")
    (notes / "a.pdf").write_bytes(b"%PDF-1.7 but no more")
    assert "a.pdf is not read as pdf: " in files("read_file", path="a.pdf")
    (notes / "a.xlsx").write_bytes(b"PK\x03\x04")
    assert "a.xlsx is not read as xlsx: " in files("read_file", path="a.xlsx")


def test_who_edits_a_page_reads_its_source(notes: Path, files: BuiltIns) -> None:
    (notes / "a.html").write_bytes(PAGE)
    assert PAGE.decode() in files("read_file", path="a.html")


def test_without_the_extra_it_is_named(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "can_read", lambda: False)
    files = BuiltIns(notes.parent, FILES)
    (notes / "a.pdf").write_bytes(b"%PDF-1.7")
    (notes / "a.html").write_bytes(PAGE)
    assert "pip install 'selfpager[documents]'" in files("read_file", path="a.pdf")
    assert PAGE.decode() in files("read_file", path="a.html")
