"""40 long tasks over a tree of 5,000 files, killed 50 times, then asked about from memory: `make bench-tasks`

A perfect worker (`tests.bench.tasks.policy`) sees only its prompt. It reads 40 reports for each task, keeps what it
learns, and later corrects it. Then the files are gone, and each task's question is asked. The same worker with memory
switched off shows how many questions need one. It ends with exit code 1 if a question with memory is not answered, or
if one of its three notes of a site is wrong. Then it keeps the directory and prints what the worker saw.

deepagents and PydanticAI do the same tasks with the same worker over the same wire, each with its file tools, in which
the worker keeps its notes. They come from the package index into environments of their own, and nobody kills them.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from time import monotonic

from agents import Agent
from agents.explain.costs import costs
from pager import MemoryReader
from tests.bench.figures import grid
from tests.bench.tasks import live, notes, peers, world
from tests.bench.tasks.world import Site

YAML = """\
name: worker
model: {{provider: scripted, script: "tests.bench.tasks.policy:reply", max_output_tokens: 1500}}
instructions: You work through reports. Keep what you find out.
window: {{limit_tokens: {window}}}
memory: {{tools: {tools}}}
core: {{limit_tokens: 1500, blocks: {{work: {{description: The line of work., limit_tokens: 700}}}}}}
archival: {{prefetch: {{k: {k}}}}}
tools: [{{builtin: files, root: ./tree}}]
limits: {{max_steps: 120}}
prices: {{input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75}}
"""
ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "agents", "run", "--json"]
HEAD = [
    "window", "memory", "answered", "calls", "kills", "repeated", "tokens sent", "dollars", "largest", "evictions", "s"
]  # fmt: skip


@dataclass(slots=True)
class Outcome:
    """One life of the worker."""

    answered: int = 0
    kills: int = 0
    calls: Counter[str] = field(default_factory=Counter[str])  # by their ids: how often each was begun
    wrong: list[str] = field(default_factory=list[str])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_tasks")
    parser.add_argument("--quick", action="store_true", help="four tasks, two kills, one small window, no peers")
    parser.add_argument("--only", choices=("ours", "peers", "memory"), help="a part of it")
    parser.add_argument("--window", type=int, help="this one alone")
    parser.add_argument("--seed", type=int, default=50, help="when the kills fall")
    for name, default in (("url", ""), ("model", "local"), ("provider", "anthropic"), ("key", "none")):
        parser.add_argument(f"--{name}", default=default, help="a real model does ten of the easiest tasks instead")
    options = parser.parse_args()
    if options.url:
        live.show(options)
        return 0
    tasks, sites, kills, windows = (4, 8, 2, (8_000,)) if options.quick else (40, 125, 50, (8_000, 32_000))
    windows = (options.window,) if options.window else windows
    failed = False
    if options.only != "peers":
        rows = list[list[str]]()
        for window in windows:
            for has_memory in (True,) if options.only == "memory" else (True, False):
                place, start, killed = Path(mkdtemp(prefix="bench-tasks-")), monotonic(), kills if has_memory else 0
                outcome = one_life(place, window, tasks, sites, kills=killed, memory=has_memory, seed=options.seed)
                rows.append(_row(place, window, outcome, tasks, monotonic() - start, memory=has_memory))
                if has_memory and outcome.wrong:
                    failed = True
                    print(*outcome.wrong, f"All is in {place}.", sep="\n", file=sys.stderr)
                else:
                    shutil.rmtree(place)
        print(grid([HEAD, *rows]))
    if not options.quick and options.only in (None, "peers"):
        print(grid([peers.HEAD, *peers.rows(windows, tasks, sites)]))
    return 1 if failed else 0


def one_life(folder: Path, window: int, tasks: int, sites: int, *, kills: int, memory: bool, seed: int) -> Outcome:
    """Let the worker do all tasks and answer all questions."""
    todo = world.build(folder / "tree", tasks=tasks, sites=sites)
    file = folder / "worker.yaml"
    file.write_text(
        YAML.format(window=window, tools="pager" if memory else "none", k=12 if memory else 0), encoding="utf-8"
    )
    outcome, random = Outcome(), Random(seed)
    due = Counter(random.randrange(tasks + 1) for _ in range(kills))
    for number, site in enumerate(todo):
        if number == tasks // 2:
            world.publish_updates(folder / "tree", todo)
            _run(file, world.UPDATE_TASK, outcome, random, due[tasks])
        _run(file, site.task, outcome, random, due[number])
    shutil.rmtree(folder / "tree")
    (folder / "tree").mkdir()
    if memory:
        outcome.wrong += notes.wrong(folder / "home" / "worker", todo)
    _ask(file, todo, outcome)
    return outcome


def _run(file: Path, task: str, outcome: Outcome, random: Random, kills: int) -> None:
    """Run one task to its end, killed so often on its way."""
    arguments = [task, "--new"]
    while True:
        fatal = random.randrange(2, 16) if kills else None
        process = subprocess.Popen(
            [*COMMAND, str(file), *arguments, "--home", str(file.parent / "home")],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        with process:
            for started in _started(process):
                outcome.calls[started] += 1
                fatal = fatal and fatal - 1
                if fatal == 0:
                    os.kill(process.pid, signal.SIGKILL)
                    break
            error = process.stderr.read() if process.stderr else ""
        if process.returncode != -signal.SIGKILL:
            if process.returncode not in (0, 3):
                raise SystemExit(f"the run ended with {process.returncode}: {error[-2000:]}")
            return
        kills, outcome.kills, arguments = kills - 1, outcome.kills + 1, ["--resume"]


def _started(process: "subprocess.Popen[str]") -> Iterator[str]:
    for line in process.stdout or ():
        event = json.loads(line)
        if event["event"] == "toolstarted":
            yield event["call_id"]


def _ask(file: Path, todo: list[Site], outcome: Outcome) -> None:
    with Agent.load(file, home=file.parent / "home") as agent:
        if agent.memory.turn_is_open:
            agent.memory.leave_turn("the task was dropped")
        for site in todo:
            text = agent.turn(site.question).text
            if site.answer in text:
                outcome.answered += 1
            else:
                outcome.wrong.append(f"{site.question} {text!r}, and it is {site.answer}")


def _row(folder: Path, window: int, outcome: Outcome, tasks: int, seconds: float, *, memory: bool) -> list[str]:
    with MemoryReader.open(folder / "home" / "worker") as reader:
        spent, epochs = costs(reader), reader.inspect.events().get("epoch", 0)
        largest, offset = 0, 0
        while rows := reader.inspect.requests(offset, 1000).rows:
            largest, offset = max(largest, *(row.usage.whole_input for row in rows if row.usage)), offset + len(rows)
        usable = reader.limits.usable_tokens
    repeated = sum(count - 1 for count in outcome.calls.values())
    return [
        f"{window:,}", "on" if memory else "off", f"{outcome.answered} of {tasks}", f"{len(outcome.calls):,}",
        str(outcome.kills), str(repeated), f"{spent.total.whole_input:,}", f"${spent.usd or 0:.2f}",
        f"{largest:,} of {usable:,}", str(epochs - 1), f"{seconds:.0f}",
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
