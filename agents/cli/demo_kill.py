"""The demo's chapter on kill -9: in the middle of a step, while a tool is at work."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter

from agents.cli.demo_page import Page
from agents.demo.railway import Railway
from agents.demo.stage import Json, Stage
from pager.reader import MemoryReader

TASK = """\
Find out how we get to Vigo.
1. archive(text="the 10:13 does not run in June", key="train at 10:13")
2. timetable(route="Porto - Vigo")
3. archive(text="seats are sold at the counter only", key="seats to Vigo")"""
ANSWER = "8:13 Porto Campanha, 11:33 Vigo Guixar (local time), every day. 19:15 only on weekdays."


def kill_in_the_middle(stage: Stage, page: Page) -> None:
    page.heading("4  kill -9 in the middle of a step")
    with Railway() as railway:
        _until_killed(stage, page, railway)
        with stage.reading("errand") as memory:
            before = _steps(memory)
            (left,) = memory.open_calls
            page.check(
                left.name == "timetable" and left.begun,
                f"on disk: {len(before)} steps to {list(before)[-1]}, whose call of {left.name} has begun and has no "
                "result",
            )
            done = [call_id for call_id in _calls(before)[list(before)[-1]] if call_id != left.id]
            page.check(
                len(done) == 1, "the other call of that step has its result: it marked line 1 as done in the plan"
            )
        _resumed(stage, page, railway)
    with stage.reading("errand") as memory:
        _check(page, memory, before, left.id, railway.asked)
    looked = subprocess.run(
        stage.command("check", "errand"), env=dict(stage.environ), capture_output=True, encoding="utf-8", check=False
    )
    page.command("selfpager check errand", looked.stdout.strip())
    page.check(looked.returncode == 0, "all laws hold, and both stores agree")


def _until_killed(stage: Stage, page: Page, railway: Railway) -> None:
    with stage.start("run", str(stage.file("errand")), TASK, "--json", environ=railway.environ) as run:
        page.command('selfpager run errand.yaml "Find out how ..."', f"process {run.pid}")
        page.quiet("\n".join(f"    {line}" for line in TASK.splitlines()[1:]))
        route = railway.wait()
        page.prose(f"The railway's server is slow: it was asked for {route}, and the agent waits for its answer.")
        page.command(f"kill -9 {run.pid}")
        code = run.kill()
        page.check(code == -signal.SIGKILL, f"the process ended by signal {-code}")


def _resumed(stage: Stage, page: Page, railway: Railway) -> None:
    with stage.start("run", str(stage.file("errand")), "--resume", "--json", environ=railway.environ) as run:
        page.command("selfpager run errand.yaml --resume", f"process {run.pid}")
        railway.wait()
        railway.answer(ANSWER)
        for event in run.events():
            if event["event"] == "toolfinished":
                page.result(event["name"], event["text"])
            if event["event"] == "stopped":
                page.check(event["reason"] == "done", f"it says that it is {event['reason']}")


def _check(page: Page, memory: MemoryReader, before: dict[str, list[Json]], interrupted: str, asked: int) -> None:
    after = _steps(memory)
    same = {step: held for step, held in after.items() if step in before}
    page.check(
        list(same) == list(before) and all(same[step][: len(held)] == held for step, held in before.items()),
        f"nothing is lost: {len(before)} steps from before the kill stand as they stood, {len(after) - len(before)} "
        "came after",
    )
    calls = Counter(call_id for ids in _calls(after).values() for call_id in ids)
    results = Counter(_results(after))
    asked_for = Counter(
        str((each["name"], each["input"])) for held in after.values() for each in held if "input" in each
    )
    page.check(
        not memory.open_calls and results == calls and {*calls.values(), *asked_for.values()} == {1},
        f"each of {len(calls)} calls has one result, also the one that was cut off; the reply was not asked for again",
    )
    stored = Counter(str(movement.page_id) for movement in memory.ledger(events=["archive"]))
    marked = [version for version in memory.history.core_versions("plan") if version.value.count("done 1.") > 1]
    page.check(
        len(stored) == 2 and set(stored.values()) == {1} and not marked,
        "the memory's own tools ran exactly once: two facts, each stored once, each mark in the plan once",
    )
    page.check(
        asked == 2 and any(ANSWER in str(block) for held in after.values() for block in held) and interrupted in calls,
        "timetable ran again, because its file says idempotent: true",
    )


def _steps(memory: MemoryReader) -> dict[str, list[Json]]:
    """Every step with its blocks exactly as they came."""
    last = memory.history.prompt().steps[-1].id
    return {f"s{number}": memory.history.blocks_of(f"s{number}") for number in range(1, last + 1)}


def _calls(steps: dict[str, list[Json]]) -> dict[str, list[str]]:
    return {step: [block["id"] for block in held if block["type"] == "tool_use"] for step, held in steps.items()}


def _results(steps: dict[str, list[Json]]) -> list[str]:
    return [block["tool_use_id"] for held in steps.values() for block in held if block["type"] == "tool_result"]
