"""`search_files`: what is found, in which files, and what is said of the rest."""

import os
import re
import resource
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.builtin import search
from agents.builtin.search import Pattern, Search
from tests.support.builtins import BuiltIns

FILES = "builtin: files, root: ."


@pytest.fixture
def files(tmp_path: Path) -> BuiltIns:
    return BuiltIns(tmp_path, FILES)


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_lines_are_found_with_their_places_and_sources(tmp_path: Path, files: BuiltIns) -> None:
    write(tmp_path, a_md="the ferry\nno\nThe ferries", b__c_md="ferr\r\nfer", d_md="nothing")
    text, sources = files.sourced("search_files", pattern="(?i)the ferr|^ferr$")
    assert text.splitlines() == [
        "3 hits in 2 files (4 files searched):", "a.md:1: the ferry", "a.md:3: The ferries", "b/c.md:1: ferr"
    ]  # fmt: skip
    assert sources == {"file:a.md", "file:b/c.md"}
    assert files("search_files", pattern="fer", path="b").splitlines()[1:] == ["b/c.md:1: ferr", "b/c.md:2: fer"]
    assert files("search_files", pattern="fer", path="b/c.md").splitlines()[1:] == ["b/c.md:1: ferr", "b/c.md:2: fer"]
    assert files("search_files", pattern="c[.]md").splitlines()[1:] == ["b/c.md:(its name)"]
    assert files("search_files", pattern="absent").startswith("Nothing matches (4 files searched).")


def test_what_git_ignores_and_what_is_hidden_is_left_out(tmp_path: Path, files: BuiltIns) -> None:
    write(tmp_path, a_txt="hit", build__b_txt="hit", keep__build__c_txt="hit", keep__d_log="hit", keep__e_log="hit")
    (tmp_path / ".gitignore").write_text("/build/\n*.log\n[z-a]\n\\\n", encoding="utf-8")
    (tmp_path / "keep" / ".gitignore").write_text("!e.log\n", encoding="utf-8")
    (tmp_path / ".secret").mkdir()
    (tmp_path / ".secret" / "f").write_text("hit", encoding="utf-8")
    head, *lines = files("search_files", pattern="^hit").splitlines()
    assert lines == ["a.txt:1: hit", "keep/build/c.txt:1: hit", "keep/e.log:1: hit"]
    assert "3 hidden, 2 ignored" in head
    assert "keep/d.log" not in files("search_files", pattern="^hit", path="keep")  # rules of above hold below
    assert files("search_files", pattern="^hit", path="build/b.txt").endswith("build/b.txt:1: hit")  # it was named


def test_binaries_documents_links_and_pipes_are_left_out_and_said(tmp_path: Path, files: BuiltIns) -> None:
    (tmp_path / "a.bin").write_bytes(b"hit\0hit")
    (tmp_path / "b.pdf").write_bytes(b"hit")
    (tmp_path / "c").symlink_to("x.yaml")
    os.mkfifo(tmp_path / "d")
    (tmp_path / "e.txt").write_bytes("hit".encode("utf-16"))
    head, *lines = files("search_files", pattern="^hit").splitlines()
    assert lines == ["e.txt:1: hit"]
    for part in ("1 PDF and Office (read_file reads them)", "1 binary", "2 links, pipes and devices"):
        assert part in head


@pytest.mark.parametrize(
    ("pattern", "why"), [("(a", "missing )"), (r"(?=a)", "RE2 knows no look-ahead"), ("a" * 1_001, "1,001 characters")]
)
def test_a_pattern_that_cannot_be_used_says_why(files: BuiltIns, pattern: str, why: str) -> None:
    assert why in files("search_files", pattern=pattern)


def test_hits_are_bounded_and_it_is_said(tmp_path: Path, files: BuiltIns) -> None:
    write(tmp_path, a_txt="hit\n" * 1_000)
    head, *lines, last = files("search_files", pattern="hit").splitlines()
    assert (len(lines), lines[-1]) == (200, "a.txt:200: hit")
    assert head.startswith("200 hits in 1 files")
    assert "stopped after 200 hits, in a.txt" in last


def test_files_and_time_are_bounded_and_it_is_said(
    tmp_path: Path, files: BuiltIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, a_txt="hit", b_txt="hit", c_txt="hit")
    monkeypatch.setattr(search, "MAX_FILES", 2)
    assert "stopped after 2 files" in files("search_files", pattern="^hit")
    monkeypatch.setattr(search.time, "monotonic", iter(range(1, 10_000_000, 50)).__next__)
    assert "its time was over" in files("search_files", pattern="^hit")


def test_a_long_line_is_shown_around_its_match(tmp_path: Path, files: BuiltIns) -> None:
    write(tmp_path, a_txt="é" * 30_000 + "needle" + "ü" * 90_000)
    [line] = files("search_files", pattern="needle").splitlines()[1:]
    assert "needle" in line
    assert len(line) < 400
    assert line.startswith("a.txt:1: …é")
    assert line.endswith("ü…")


@given(st.text(alphabet="ab\n", max_size=60), st.sampled_from(["a", "^b", "b$", "^$", "a+b", "^a*$", "(ab)+", "b*"]))
def test_the_lines_are_those_that_match_one_by_one(text: str, pattern: str) -> None:
    found = Search(None, Pattern(pattern), float("inf"))._matches(text.encode())  # pyright: ignore[reportArgumentType]
    lines = text.split("\n")[: None if text[-1:] != "\n" else -1] if text else []
    assert [number for number, _ in found] == [n for n, line in enumerate(lines, 1) if re.search(pattern, line)]


def test_what_stands_across_the_pieces_of_a_long_line_is_found_and_told_once(tmp_path: Path, files: BuiltIns) -> None:
    for at in range(search.BLOCK_BYTES - 5, search.BLOCK_BYTES + 5):
        write(tmp_path, a_json="x" * at + "needle" + "y" * 300_000 + "needle\nneedle\nend")
        told = files("search_files", pattern="needle").splitlines()
        assert told[0].startswith("2 hits in 1 files")
        assert [line.partition(": ")[0] for line in told[1:]] == ["a.json:1", "a.json:2"]


@contextmanager
def only(left: int) -> Generator[None]:
    """Let this process open so many more files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.dup(0)]
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (max(int(each.name) for each in Path("/proc/self/fd").iterdir()) + 9, before[1])
    )
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        for each in taken[:left]:
            os.close(each)
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for each in taken[left:]:
            os.close(each)


@pytest.mark.parametrize("left", range(6))
def test_a_machine_that_opens_no_more_files_hides_none(tmp_path: Path, left: int) -> None:
    (tmp_path / "below").mkdir()
    for name in ("a", "below/b"):
        (tmp_path / name).write_text("hit", encoding="utf-8")
    files = BuiltIns(tmp_path, "builtin: files, root: .")
    with only(left):
        try:
            answer = files("search_files", pattern="^hit")
        except OSError as error:
            answer = str(error)
    assert "Too many open files" in answer or "2 hits in 2 files" in answer
