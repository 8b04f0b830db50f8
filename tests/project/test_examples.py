"""The examples in docstrings run, and say what is true."""

import doctest
import importlib
import pkgutil
from pathlib import Path
from typing import Any

import pytest

import pager
from pager.store import Store
from tests.support import HandClock

# The adapters need frameworks that are not here, and have no examples.
FOUND = (name for _, name, _ in pkgutil.walk_packages(pager.__path__, "pager."))
MODULES = sorted(name for name in FOUND if not name.startswith("pager.adapters."))


def examples(module: Any) -> list[doctest.DocTest]:
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


def test_there_are_examples() -> None:
    found = {name for name in MODULES if examples(importlib.import_module(name))}
    rooms = {"memory", "clock", "limits", "tokens.text", "tokens.counter", "upkeep.inbox"}
    assert {f"pager.{name}" for name in rooms} <= found


OF_AGENTS = ("agents.importing.formats", "agents.importing.notes", "agents.tools.functions")


@pytest.mark.parametrize("name", ["pager", *(n for n in MODULES if examples(importlib.import_module(n))), *OF_AGENTS])
def test_the_examples_of_a_module_are_true(name: str, tmp_path: Path) -> None:
    module = importlib.import_module(name)
    globs = {**vars(pager), **vars(module), "directory": tmp_path, "clock": HandClock(), "Store": Store}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    for test in examples(module):
        test.globs = dict(globs)
        out: list[str] = []
        result = runner.run(test, out=out.append, clear_globs=False)
        for value in test.globs.values():
            if isinstance(value, pager.MemoryReader | Store):
                value.close()
        assert result.attempted
        assert not result.failed, "".join(out)
