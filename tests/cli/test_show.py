"""`selfpager show` as a person and as a program see it: what it says, not where it stands."""

import json
import subprocess
import unicodedata
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from agents import palette
from agents.cli.common import Shared
from agents.cli.drawing import MARK, bar_cells, bar_marks
from agents.cli.main import cli
from agents.cli.terminal import as_json
from agents.cli.visible import UNSEEN_LETTERS, Harmless, visible
from agents.explain.json_form import to_json
from agents.explain.snapshot import take
from pager import BlockSpec, Memory, MemoryReader
from pager.inspect import PARTS, Thresholds, WindowPart, WindowUse
from tests.standin import call, thinking
from tests.support import Talk, Words
from tests.support.cli import COMMAND, Running, Terminal, command_line, environment

HOSTILE = (
    "[bold]not bold[/bold] [/] [link=x]y :smile: \x1b[2J\x1b]0;title\x07\x9b31m\u202eevil\u2066"
    "\r\b\0\x7f\U000e0041 ünï 👩\u200d👩\u200d👧 日本"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three agents: anna with a past, hana with hostile texts everywhere, nobody with nothing."""
    home = tmp_path_factory.mktemp("home")
    blocks = {"human": BlockSpec(limit_tokens=200), "rules": BlockSpec(value="be kind", read_only=True)}
    anna = Talk(home / "anna", window=6_000, core=blocks, embedder=Words())
    for number in range(12):
        anna.ask(f"story {number} " + "and so it went on " * 30, thinking("hm"), call("weather", {"city": "Porto"}))
        anna.answer("sunny")
        anna.memory.core_append("human", f"likes story {number}")
        anna.reply("It is sunny.")
    anna.memory.archive("prefers window seats", key="seat")
    anna.memory.archive("prefers aisle seats", key="seat")
    anna.memory.archive("lives in Porto")
    anna.memory.search_archive("aisle", limit=1)
    anna.memory.page_in("f3", pin=True)
    anna.ask("and now?", "It is late.")
    anna.memory.close()
    hana = Talk(home / "hana", core={"human": BlockSpec(value=HOSTILE, description=HOSTILE)}, model=f"m{HOSTILE}")
    hana.memory.append_user(HOSTILE, name=f"\x1b[{HOSTILE}")
    hana.reply(HOSTILE, call("weather", {"city": HOSTILE}))
    hana.answer(HOSTILE)
    hana.reply("ok")
    fact = hana.memory.archive(HOSTILE, key=HOSTILE, tags=[HOSTILE], actor=HOSTILE)
    hana.memory.search_archive(HOSTILE)
    hana.memory.forget(fact.id, HOSTILE)
    hana.memory.close()
    Memory.open(home / "nobody", embedder=None).close()
    return home


def shown(home: Path, *arguments: str, env: dict[str, str] | None = None) -> str:
    known = {"COLUMNS": "80", "NO_COLOR": None, "FORCE_COLOR": None, "TTY_COMPATIBLE": None, **(env or {})}
    command = ["show", *arguments, "--home", str(home)]
    result = CliRunner(env=known).invoke(cli, command, obj=Shared(), standalone_mode=False)
    assert result.exception is None
    assert not result.return_value
    return result.stdout


def test_it_says_what_the_snapshot_knows(home: Path) -> None:
    text = shown(home, "anna")
    with MemoryReader.open(home / "anna") as reading:
        now = take(reading)
    window, marks = now.window, now.window.thresholds
    assert marks
    expected = [
        f"{window.used_tokens:,} of {window.usable_tokens:,} tokens",
        f"epoch {window.epoch}",
        *(f" {tokens:,}" for tokens in (marks.notify_at, marks.evict_at, marks.evict_to)),
        *(f"{one.used_tokens:,}/{one.limit_tokens:,} v{one.version} · {one.actor}" for one in now.core.blocks),
        *("read-only", "likes story 0", "f3 pinned", "3 facts, 2 current, 0 never used", "superseded by f2"),
        *("1x seat: prefers aisle seats", "search", "aisle"),
        *(f"{step.page_id} " for step in now.steps[-12:]),
        *(step.words[:20] for step in now.steps[-12:]),
        *(fact.text for fact in now.archive.newest),
        *(f" {movement.event} " for movement in now.movements),
    ]
    assert [words for words in expected if words not in text] == []
    for part in window.parts:
        assert (f"{part.name} {part.tokens:,}" in text) == (part.tokens > 0)


def test_at_a_step_it_says_what_was(home: Path) -> None:
    with MemoryReader.open(home / "anna") as reading:
        then, answered = take(reading, "s9"), reading.inspect.requests(0, 1, "s9").rows[0]
        sent = json.dumps(reading.history.rebuild("s9"))
    text = shown(home, "anna", "--at", "s9")
    assert answered.usage
    assert "the request that s9 answered" in text
    assert f"{answered.usage.whole_input:,} of " in text
    for where in (sent, text):
        assert ("likes story 1" in where, "likes story 3" in where) == (True, False)
    assert all(f"{resident.page_id} " in text for resident in then.steps)
    assert "No fact was archived by then" in text
    assert shown(home, "anna", "--at", "s4") == shown(home, "anna", "--at", "s5")  # s4 is no reply
    assert json.loads(shown(home, "anna", "--at", "s9", "--json")) == {"agent": "anna", **to_json(then)}


def test_json_is_one_line_with_everything(home: Path) -> None:
    line = shown(home, "anna", "--json")
    assert line.count("\n") == 1
    with MemoryReader.open(home / "anna") as reading:
        assert json.loads(line) == {"agent": "anna", **to_json(take(reading))}
    empty = json.loads(shown(home, "nobody", "--json"))
    assert (empty["window"]["usable_tokens"], empty["core"]["blocks"], empty["archive"]["total"]) == (None, [], 0)


def test_where_nothing_is_it_says_what_to_do(home: Path) -> None:
    text = " ".join(shown(home, "nobody").split())
    hints = [
        "selfpager chat",
        "core.blocks",
        "What is said next",
        "agent stores facts as it talks",
        "Nothing has moved yet",
    ]
    assert [hint for hint in hints if hint not in text] == []


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("nobody --at s1", 1, "nothing was sent yet"),
        ("anna --at s99", 1, "no request was answered after s99; the last one was answered by s"),
        ("anna --at f1", 1, "is not a step"),
        ("anna --at soon", 1, "is not a page id"),
        ("anna --at s3 --watch", 2, "leave out --watch"),
    ],
)
def test_wrong_questions_are_answered_with_the_way_out(home: Path, line: str, code: int, message: str) -> None:
    done = command_line("show", *line.split(), "--home", home)
    assert (done.code, message in done.err) == (code, True)


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(home: Path, columns: int) -> None:
    for name in ("anna", "hana", "nobody"):
        for line in shown(home, name, env={"COLUMNS": str(columns)}).splitlines():
            assert cell_len(line) <= columns


def test_colours_are_those_of_the_palette_and_only_where_they_are_wanted(home: Path) -> None:
    # In a process of its own: rich keeps the codes of a style as they were when this one first drew it.
    wanted = {"NO_COLOR": "", "FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color"}
    command = [*COMMAND, "show", "anna", "--home", home]
    text = subprocess.run(command, env=environment(**wanted), capture_output=True, text=True, check=True).stdout
    for colour in palette.TIERS.values():
        red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
        assert f"38;2;{red};{green};{blue}m" in text
    assert "\x1b" not in shown(home, "anna")
    assert "38;2" not in shown(home, "anna", env={**wanted, "NO_COLOR": "1"})


def test_without_colours_each_part_has_a_letter_of_its_own(home: Path) -> None:
    assert len({paint.letter for paint in palette.WINDOW.values()}) == len(PARTS) + 1
    lines = shown(home, "anna").splitlines()
    drawn = next(line for line in lines if line.count("#") > 10).strip()
    with MemoryReader.open(home / "anna") as reading:
        cells = bar_cells(take(reading).window, len(drawn))
    assert drawn == "".join(palette.WINDOW[name].letter * count for name, count in cells)


def test_hostile_texts_are_shown_as_text(home: Path) -> None:
    wide = {"COLUMNS": "400"}
    for arguments in (("hana",), ("hana", "--at", "s3")):
        text = shown(home, *arguments, env=wide)
        assert not [each for each in text if each != "\n" and _obeyed(each)]
        assert text.count("[bold]not bold[/bold] [/] [link=x]y :smile: ␛[2J␛]0;title␇\\u009b31m\\u202eevil\\u2066") >= 4
        assert "ünï 👩\u200d👩\u200d👧 日本" in text
    coloured = shown(home, "hana", env={"FORCE_COLOR": "1", "TERM": "xterm-256color", **wide})
    assert not [after for after in coloured.split("\x1b")[1:] if not after.startswith("[") or after.startswith("[2J")]


def _obeyed(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character != "\u200d"


@given(st.text())
@example(HOSTILE)
def test_visible_leaves_nothing_to_obey_and_everything_to_read(text: str) -> None:
    seen = visible(text)
    assert not any(_obeyed(each) for each in seen if each != "\u200c")
    shown = {each for each in text if each.isprintable() and unicodedata.category(each) != "Mn"}
    assert all(visible(each) == each for each in shown.difference(UNSEEN_LETTERS))
    assert visible(seen) == seen


@given(st.text())
@example(HOSTILE)
@example("two\n\tlines \x9b31m \x7f \r")
def test_what_is_printed_as_it_is_and_as_json_orders_nothing(text: str) -> None:
    shown = Harmless().feed(text)
    assert not any(unicodedata.category(each) == "Cc" for each in shown if each not in "\n\t")
    assert len(shown) >= len(text)
    plain = "".join(each for each in text if each in "\n\t" or unicodedata.category(each)[0] in "LNPS")
    plain = plain.translate(dict.fromkeys(map(ord, UNSEEN_LETTERS)))
    assert Harmless().feed(plain) == plain
    line = as_json({"text": text})
    assert not any(unicodedata.category(each) == "Cc" for each in line)
    assert json.loads(line) == {"text": text}


# --- the bar

WINDOWS = st.builds(
    lambda tokens, usable, shares: WindowUse(
        tuple(map(WindowPart, PARTS, tokens)), sum(tokens), True, usable, usable + 10, 10,
        Thresholds(*(int(usable * share / 100) for share in shares)), "", 1, "", False, False, usable,
    ),
    st.lists(st.integers(0, 50_000), min_size=8, max_size=8),
    st.integers(100, 200_000),
    st.tuples(*[st.integers(1, 100)] * 3),
)  # fmt: skip


@given(WINDOWS, st.integers(18, 200))
def test_the_bar_is_as_wide_as_it_is_told_and_true_to_a_cell(window: WindowUse, width: int) -> None:
    cells = bar_cells(window, width)
    assert [name for name, _ in cells] == [*PARTS, "free"]
    assert sum(count for _, count in cells) == width
    assert all(count >= 0 for _, count in cells)
    whole = max(window.usable_tokens or 0, window.used_tokens)
    for part, (_, count) in zip(window.parts, cells, strict=False):
        assert abs(count - width * part.tokens / whole) <= 1


@given(WINDOWS, st.integers(18, 200))
def test_every_threshold_has_its_mark(window: WindowUse, width: int) -> None:
    line, limits = bar_marks(window, width), window.thresholds
    assert limits
    whole = max(window.usable_tokens or 0, window.used_tokens)
    thresholds = (limits.notify_at, limits.evict_at, limits.evict_to)
    places = {min(width - 1, round(width * tokens / whole)) for tokens in thresholds}
    assert {place for place, character in enumerate(line) if character == MARK} == places


def test_watching_prints_a_line_for_each_change_of_another_process_and_nothing_else(tmp_path: Path) -> None:
    talk = Talk(tmp_path / "live")
    with Running("show", "live", "--watch", "--json", "--home", tmp_path) as running:
        for number in range(3):
            words = [step["words"] for step in json.loads(running.line())["steps"]]
            assert words[::2] == [f"turn {earlier}" for earlier in range(number)]
            if number < 2:
                with talk.memory.transaction():
                    talk.ask(f"turn {number}")
        running.interrupt()
        done = running.end()
    assert (done.code, done.out) == (0, "")


def test_watching_on_a_terminal_draws_the_screen_anew_until_interrupted(tmp_path: Path) -> None:
    talk = Talk(tmp_path / "live")
    screen = {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "60"}
    with Terminal("show", "live", "--watch", "--home", tmp_path, cwd=tmp_path, **screen) as terminal:
        first = terminal.until("Nothing was sent")
        talk.ask("a word that was not there before")
        terminal.until("a word that was not there before")
        terminal.type("\x03")
        code, rest = terminal.end()
    talk.memory.close()
    assert code == 0
    assert "\x1b[?1049h" in first  # the alternate screen: what was there before comes back
    assert "Traceback" not in rest
