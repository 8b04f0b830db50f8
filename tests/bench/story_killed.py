"""The second part of `make bench-story`: a `run` over five notes that is killed with SIGKILL and resumed.

Each note should be read once, and the task should end by `task_done` with a summary that names what the notes say.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from agents import tasks
from pager import MemoryReader

TASK = (
    "There are five notes, with the numbers 1 to 5. Read each of them once with read_note. "
    "Then call task_done with a summary that names the city of every note."
)
CITIES = ("Ghent", "Turin", "Malmo", "Porto", "Graz")
YAML = """\
name: killed
model: {{provider: {provider}, id: "{model}", base_url: "{url}", api_key: "{key}", max_output_tokens: 200,
  thinking: off}}
instructions: You are a careful assistant.
window: {{limit_tokens: 3000}}
memory: {{tools: none}}
archival: {{prefetch: {{k: 0}}}}
tools: [{{use: "story_notes:read_note"}}]
limits: {{max_steps: 24}}
"""
NOTES = f'''\
from pathlib import Path

CITIES = {CITIES!r}


def read_note(number: int) -> str:
    """Read a note by its number, from 1 to 5."""
    city = CITIES[number - 1]
    with Path(__file__).with_name("reads.log").open("a") as log:
        log.write(f"{{number}}\\n")
    return f"Note {{number}}: the warehouse in {{city}} has room for {{number * 100}} boxes."
'''
KILLED_AFTER = 3  # notes
PATIENCE_SECONDS = 1_800.0


def run_killed(folder: Path, **model: str) -> list[str]:
    """Start the task, kill it in the middle, resume it. Return the row of the table."""
    folder.mkdir(parents=True)
    (folder / "story_notes.py").write_text(NOTES, encoding="utf-8")
    file, log = folder / "killed.yaml", folder / "reads.log"
    file.write_text(YAML.format(**model), encoding="utf-8")
    command = [sys.executable, "-m", "agents", "--home", str(folder / "home"), "run", str(file)]
    with (folder / "output.txt").open("w", encoding="utf-8") as output:
        first = subprocess.Popen([*command, TASK], stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        begun = time.monotonic()
        while first.poll() is None and len(_lines(log)) < KILLED_AFTER and time.monotonic() - begun < PATIENCE_SECONDS:
            time.sleep(0.2)
        if was_killed := first.poll() is None:
            os.kill(first.pid, signal.SIGKILL)
        first.wait()
        again = [*command, "--resume"]
        done = subprocess.run(again, stdout=output, stderr=output, stdin=subprocess.DEVNULL, check=False)
    with MemoryReader.open(folder / "home" / "killed") as reader:
        text = reader.load_value(tasks.STORED_AS)
    task = tasks.Task(**json.loads(text)) if text else None
    reads = _lines(log)
    once = sum(reads.count(str(number)) == 1 for number in range(1, 6))
    named = sum(city in (task.summary if task else "") for city in CITIES)
    return [
        "killed" if was_killed else "ended before the kill", f"{once} of 5", str(len(reads)),
        task.state if task else "none", f"{named} of 5", str(done.returncode),
    ]  # fmt: skip


HEAD: list[str] = ["run over five notes", "read once", "reads", "task", "cities in the summary", "exit code"]


def _lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8").split() if log.exists() else []
