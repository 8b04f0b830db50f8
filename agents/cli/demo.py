"""`selfpager demo`: the whole story, offline, with the real machinery; each claim is looked up before it is printed.

The agents are processes of this command line, with their state in a home that stays for you to look at. When
something is not as it should be, the demo says what and ends with exit code 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from agents.cli.common import DONE, Shared, common
from agents.cli.demo_kill import kill_in_the_middle
from agents.cli.demo_memory import OPENING, answers, facts_over_restarts
from agents.cli.demo_page import Page
from agents.cli.demo_window import eighty_turns, savings
from agents.demo.stage import DemoFailed, Process, Stage, Turn, text_of, trip

CONFIG = Path("configs/assistant.yaml")


@click.command("demo", short_help="The whole story offline: no key, no network, real machinery.")
@common
@click.pass_obj
def demo_command(shared: Shared) -> int:
    """Tell the whole story in half a minute: facts over restarts, a window that fills, kill -9, what it saves.

    No key and no network are needed. The agents stay in the directory that --home names (a fresh one), else in a
    temporary one, for `selfpager show`.
    """
    if shared.as_name:
        raise click.UsageError("the demo has agents of its own; leave out --as.")
    home = shared.home_path or Path(tempfile.mkdtemp(prefix="selfpager-demo-"))
    page = Page()
    stage = Stage.make(home, os.environ)
    _opening(page, home)
    # At the same time, or the demo would take longer than need be.
    with ThreadPoolExecutor(1, "everything") as beside, stage.chat("everything") as another:
        other = beside.submit(_with_everything_in_the_prompt, another)
        facts_over_restarts(stage, page)
        with stage.chat("guide") as talk:
            answers(page, stage, talk)
            turns = eighty_turns(stage, page, talk)
        kill_in_the_middle(stage, page)
        savings(stage, page, turns, other.result())
    _look(stage, page, turns)
    _go_on(stage, page)
    return DONE


def _with_everything_in_the_prompt(talk: Process) -> list[Turn]:
    """The eighty turns with an agent from which nothing ever leaves, after the same beginning."""
    turns = [talk.say(text) for text in (*OPENING, *trip())]
    return turns[len(OPENING) :]


def _opening(page: Page, home: Path) -> None:
    page.heading("selfpager: an agent whose memory works like an operating system's")
    page.prose(
        "Everything here is real: processes of this command line (with --json, to read along), restarts, SQLite and "
        "Chroma on disk, requests over HTTP. Only the model is not: rules play it, so that no key is needed. What a "
        "line with \u2713 says was looked up in the agent's state."
    )
    page.whole_line(f"\nHome of its agents:  {home}")
    page.put("guide.yaml is the whole agent:", "")
    page.file(text_of("guide.yaml"))


def _look(stage: Stage, page: Page, turns: list[Turn]) -> None:
    page.heading("6  Look at it")
    moment = _when_a_page_came_back(turns)
    show = stage.command("show", "guide", "--at", moment)
    page.command(f"{_program()} show guide --home {stage.home}", "now; --watch follows it live")
    page.command(f"{_program()} show guide --home {stage.home} --at {moment}", "when a page had come back:")
    page.put("")
    shown = subprocess.run(show, env={**stage.environ, "COLUMNS": str(page.width)}, check=False)
    page.check(shown.returncode == 0, f"that was the request which {moment} answered")


def _when_a_page_came_back(turns: list[Turn]) -> str:
    """The reply that had it in view."""
    for turn in turns:
        if any(call.name == "page_in" for call in turn.calls):
            return turn.usages[-1][0]
    raise DemoFailed("no page was paged in again.")


def _go_on(stage: Stage, page: Page) -> None:
    page.heading("Go on")
    page.prose("With a real model, and a memory of its own (the key is for Anthropic, or for any server like it):")
    page.command("export ANTHROPIC_API_KEY=...")
    page.command(f"{_program()} chat {CONFIG if CONFIG.is_file() else 'AGENT.yaml'}")
    page.prose("Or let it take over Dana's conversation, as it stands:")
    page.command(f"export SELFPAGER_HOME={stage.home}")
    page.command("export GUIDE_PROVIDER=anthropic GUIDE_MODEL=claude-sonnet-5-5")
    page.command(f"{_program()} chat $SELFPAGER_HOME/guide.yaml")
    page.whole_line(f"\nThe agents stay in {stage.home} until you delete it.")


def _program() -> str:
    """How this command line can be called again."""
    script = Path(sys.executable).parent / "selfpager"
    if not script.is_file():
        return f"{sys.executable} -m agents"
    if shutil.which("selfpager") == str(script):
        return "selfpager"
    return str(script.relative_to(Path.cwd())) if script.is_relative_to(Path.cwd()) else str(script)
