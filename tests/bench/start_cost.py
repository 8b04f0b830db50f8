"""What a start costs, each in processes of its own: importing pager, and opening a large agent up to its first request.

The seconds are counted inside of the child, from before its first import of ours. Python's own start comes on top.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from pager import Memory
from tests.bench.figures import Figure
from tests.bench.grown import INSTRUCTIONS, Talk, archive_all, text_like_vectors
from tests.bench.texts import Texts

HEAVY = ("chromadb", "tiktoken", "onnxruntime", "numpy", "tokenizers")
FACTS, TURNS = 10_000, 10_000
ROUNDS = 15
PARTS = ("import", "open", "append", "request")
IMPORT = """
import json, sys, time
start = time.perf_counter()
import pager
print(json.dumps({"import": time.perf_counter() - start, "loaded": sorted(sys.modules)}))
"""
OPEN = """
import json, sys, time
moments = [time.perf_counter()]
from pager import BlockSpec, Memory
moments.append(time.perf_counter())
core = {"human": BlockSpec(description="who the user is"), "plans": BlockSpec(description="what is to be done")}
memory = Memory.open(sys.argv[1], instructions=sys.argv[2], core=core)
moments.append(time.perf_counter())
memory.append_user("Good morning. What did I plan for today?")
moments.append(time.perf_counter())
request = memory.request()
moments.append(time.perf_counter())
names = ("import", "open", "append", "request")
print(json.dumps(dict(zip(names, (end - start for start, end in zip(moments, moments[1:])))) |
    {"messages": len(request.messages)}))
memory.append_assistant("You wanted to call the dentist.")
memory.close()
"""


def figures(work: Path) -> list[Figure]:
    directory = work / "large"
    _grow(directory)
    imports = _runs(IMPORT)
    starts = _runs(OPEN, str(directory), INSTRUCTIONS)
    parts = {name: median(run[name] for run in starts) for name in PARTS}
    told = ", ".join(f"{name} {1000 * seconds:.0f} ms" for name, seconds in parts.items())
    whole = median(sum(run[name] for name in parts) for run in starts)
    loaded = [name for name in HEAVY if name in imports[0]["loaded"]]
    return [
        Figure("import pager", "", median(run["import"] for run in imports), 0.25, " s"),
        Figure("... modules among " + ", ".join(HEAVY), ", ".join(loaded) or "none loaded", len(loaded), 0, ""),
        Figure(
            "open 10,000 facts and 10,000 turns, to the first request",
            f"{told}; {starts[0]['messages']} messages",
            whole,
            0.3,
            " s",
        ),
    ]


def _grow(directory: Path) -> None:
    texts = Texts()
    facts = texts.facts(FACTS)
    with Memory.open(directory, instructions=INSTRUCTIONS, embedder=text_like_vectors(facts)) as memory:
        archive_all(memory, facts)
        memory.compact()
        Talk(memory, texts).turns_in_batches(TURNS)


def _runs(program: str, *arguments: str) -> list[dict[str, Any]]:
    """What each of some processes printed. The first one only warms the disk's cache."""
    command = [sys.executable, "-c", program, *arguments]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(ROUNDS + 1)]
    return [json.loads(run.stdout) for run in runs[1:]]
