"""What an import costs: nothing that is foreign, and no side effect."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {
    "chromadb",
    "tiktoken",
    "onnxruntime",
    "tokenizers",
    "numpy",
    "anthropic",
    "starlette",
    "uvicorn",
    "hypothesis",
    "psycopg",
    "pytest",
}


MEMORY = "from pager import Memory, Prefetch\nwith Memory.open('m', {}) as memory: "


def loaded(code: str, cwd: Path) -> set[str]:
    script = f"import json, sys; sys.path.insert(0, {str(ROOT)!r})\n{code}\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=cwd)
    assert done.stderr == ""
    [line] = done.stdout.splitlines()
    return {name.partition(".")[0] for name in json.loads(line)}


def test_importing_loads_nothing_heavy_and_touches_nothing(tmp_path: Path) -> None:
    assert loaded("import pager", tmp_path) & {*HEAVY, "pager"} == {"pager"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "actions", "needed"),
    [
        ("", "memory.record_many([{'role': 'user', 'text': 'hello'}], embed=False)", set[str]()),
        ("embedder=None", "memory.record('user', 'hello'); memory.search_recall('hello')", {"numpy"}),
        ("embedder=None", "memory.archive('two cats'); memory.search_archive('cats')", set[str]()),
        ("embedder=None", "memory.append_user('hi'); memory.request()", set[str]()),
        (
            "prefetch=Prefetch(k=4)",
            "memory.append_user('hi'); memory.request(); memory.append_assistant('hi')",
            set[str](),
        ),
    ],
    ids=["recording", "a search of messages", "a search of facts", "a request", "a turn without facts"],
)
def test_what_needs_no_model_and_no_index_loads_none(
    tmp_path: Path, options: str, actions: str, needed: set[str]
) -> None:
    assert loaded(MEMORY.format(options) + actions, tmp_path) & (HEAVY - {"tiktoken"}) == needed
