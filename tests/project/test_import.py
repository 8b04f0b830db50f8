"""What an import costs: nothing that is foreign, and no side effect."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAVY = {"chromadb", "tiktoken", "onnxruntime", "tokenizers", "numpy", "anthropic", "hypothesis", "pytest"}


def run(code: str, cwd: Path) -> list[str]:
    script = f"import json, sys; sys.path.insert(0, {str(ROOT)!r})\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=cwd)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 1
    return json.loads(lines[0])


def roots(modules: list[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_importing_loads_nothing_heavy_and_touches_nothing(tmp_path: Path) -> None:
    modules = run("import pager", tmp_path)
    assert "pager.memory" in modules
    assert not roots(modules) & HEAVY
    assert list(tmp_path.iterdir()) == []


def test_opening_and_recording_load_no_model_and_no_index(tmp_path: Path) -> None:
    modules = run(
        "from pager import Memory\n"
        "with Memory.open('m') as memory:\n"
        "    memory.record_many([{'role': 'user', 'text': 'hello'}], embed=False)",
        tmp_path,
    )
    assert not roots(modules) & (HEAVY - {"tiktoken"})


def test_a_search_of_turns_without_an_embedder_loads_only_numpy(tmp_path: Path) -> None:
    modules = run(
        "from pager import Memory\n"
        "with Memory.open('m', embedder=None) as memory:\n"
        "    memory.record('user', 'hello'); memory.search_recall('hello')",
        tmp_path,
    )
    assert roots(modules) & (HEAVY - {"tiktoken"}) == {"numpy"}


def test_a_search_without_an_embedder_needs_no_numpy(tmp_path: Path) -> None:
    modules = run(
        "from pager import Memory\n"
        "with Memory.open('m', embedder=None) as memory:\n"
        "    memory.archive('has two cats'); memory.search_archive('cats'); memory.append_user('hi'); memory.request()",
        tmp_path,
    )
    assert not roots(modules) & (HEAVY - {"tiktoken"})


def test_a_turn_of_an_agent_without_facts_loads_no_embedder(tmp_path: Path) -> None:
    modules = run(
        "from pager import Memory, Prefetch\n"
        "with Memory.open('m', prefetch=Prefetch(k=4)) as memory:\n"
        "    memory.append_user('hello'); memory.request(); memory.append_assistant('hello')",
        tmp_path,
    )
    assert not roots(modules) & (HEAVY - {"tiktoken"})
