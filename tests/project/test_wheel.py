"""The wheel, as somebody gets it: built, installed into a fresh environment, used from there and typed from there."""

import json
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.fresh import build_wheel, install, run

pytestmark = pytest.mark.slow
PROGRAM = """\
from anthropic import Anthropic

from agents import Agent
from pager import BlockSpec, Fact, Hit, Memory
from pager.memory_tool.runner import TieredMemoryTool

with Memory.open("state", core={"human": BlockSpec(limit_tokens=100)}) as memory:
    fact: Fact = memory.archive("prefers aisle seats", key="seat", tags=["travel"])
    hits: list[Hit] = memory.search_archive("where does she like to sit?")
    memory.append_user("Which seat?")
    params: dict[str, object] = dict(memory.request().params)
    runner = Anthropic(api_key="none").beta.messages.tool_runner(
        model="m", max_tokens=100, thread=False, tools=[TieredMemoryTool(memory)], messages=[]
    )
print([hit.text for hit in hits], fact.id, sorted(params))
with Agent.load("clerk.yaml", home="home") as agent:
    text: str = agent.turn("My name is Dana.").text
"""
CLERK = "name: clerk\nmodel: {provider: scripted, script: replies.yaml}\narchival: {embedder: none}\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fresh")
    install(wheel, folder / "env")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "clerk.yaml").write_text(CLERK, encoding="utf-8")
    (folder / "replies.yaml").write_text("- {otherwise: true, say: Hello Dana.}\n", encoding="utf-8")
    return folder


def test_it_holds_both_packages_with_their_data_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} - {"agents", "pager"} == {"selfpager-0.1.0.dist-info"}
    for needed in ("pager/py.typed", "agents/py.typed", "pager/data/o200k_base.zlib", "agents/demo/guide.yaml"):
        assert needed in names


def test_it_works_where_there_is_no_repository(fresh: Path) -> None:
    python = fresh / "env" / "bin" / "python"
    where = run(python, "-c", "import pager, agents; print(pager.__file__, agents.__file__)", cwd=fresh).split()
    assert all(Path(each).is_relative_to(fresh) for each in where)
    assert run(python, "program.py", cwd=fresh) == "['prefers aisle seats'] f1 ['max_tokens', 'messages', 'system']\n"
    selfpager = fresh / "env" / "bin" / "selfpager"
    assert "0.1.0" in run(selfpager, "--version", cwd=fresh)
    assert run(selfpager, "check", "clerk", "--home", "home", cwd=fresh) == "clerk: no problems found.\n"


def test_strict_types_hold_from_the_outside(fresh: Path) -> None:
    settings = {"typeCheckingMode": "strict", "venvPath": str(fresh), "venv": "env", "pythonVersion": "3.11"}
    settings |= {"include": ["program.py", "wrong.py"]}
    (fresh / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    (fresh / "wrong.py").write_text("", encoding="utf-8")
    pyright = Path(sys.executable).with_name("pyright")
    assert run(pyright, cwd=fresh).startswith("0 errors")
    wrong = "from pager import Memory\n\nwith Memory.open('m') as memory:\n    memory.archive(7)\n"
    (fresh / "wrong.py").write_text(wrong, encoding="utf-8")
    assert "reportArgumentType" in run(pyright, cwd=fresh, fails=True)
