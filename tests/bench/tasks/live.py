"""Ten of the easiest tasks by a real model: find the code of a gate in one of many files, and end the task with it."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic

from agents import Agent
from agents.events import Stopped, ToolFinished
from agents.models.model import ModelError
from tests.bench.figures import grid
from tests.bench.tasks import world

YAML = """\
name: clerk
model: {{provider: {provider}, id: "{model}", base_url: "{url}", api_key: "{key}", max_output_tokens: 200,
  thinking: off}}
instructions: You are a careful clerk. Look things up with your tools.
window: {{limit_tokens: 4000}}
memory: {{tools: none}}
tools: [{{builtin: files, root: ./tree}}]
limits: {{max_steps: 8}}
"""
TASK = (
    'One of the files below reports/ has the line "The code of the gate of {site} is ...". Find it with search_files '
    "and the pattern gate of {site}, then call task_done with the code as the summary."
)
TASKS, SITES = 10, 25


def show(options: argparse.Namespace) -> None:
    """Print how many of the tasks the model does."""
    place = Path(mkdtemp(prefix="bench-tasks-"))
    sites = world.build(place / "tree", tasks=TASKS, sites=SITES)
    file = place / "clerk.yaml"
    given = {name: getattr(options, name) for name in ("provider", "model", "url", "key")}
    file.write_text(YAML.format(**given), encoding="utf-8")
    start, rows = monotonic(), [*_rows(file, place, [(site.name, site.gate) for site in sites])]
    done = sum(row[1] == "yes" for row in rows)
    print(grid([["site", "code found", "task", "calls", "failed", "last words"], *rows]))
    print(f"{done} of {TASKS} with {options.model}, {monotonic() - start:.0f} s; everything is in {place}")


def _rows(file: Path, place: Path, sites: list[tuple[str, str]]) -> Iterator[list[str]]:
    for name, code in sites:
        with Agent.load(file, home=place / "home", as_name=f"clerk-{name}", task=True) as agent:
            calls = failed = 0
            stopped, words = Stopped("answered"), ""
            try:
                for event in agent.tasks().start(TASK.format(site=name)):
                    if isinstance(event, ToolFinished):
                        calls, failed = calls + 1, failed + event.is_error
                    elif isinstance(event, Stopped):
                        stopped = event
                words = stopped.text
            except ModelError as error:
                words = str(error)
            yield [name, "yes" if code in words else "no", stopped.reason, str(calls), str(failed), words[:60]]
