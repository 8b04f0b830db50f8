"""The two wheels, as somebody gets them: built, installed into a fresh environment, used and typed from there."""

import json
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.support.fresh import ROOT, build_wheels, install, run

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
FILES = ("pyproject.toml", "memory/pyproject.toml")
CLERK = "name: clerk\nmodel: {provider: scripted, script: replies.yaml}\narchival: {embedder: none}\n"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    built = build_wheels(tmp_path_factory.mktemp("wheels"))
    return {wheel.name.partition("-")[0]: wheel for wheel in built}


@pytest.fixture(scope="module")
def fresh(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fresh")
    install(wheels.values(), folder / "env")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "clerk.yaml").write_text(CLERK, encoding="utf-8")
    (folder / "replies.yaml").write_text("- {otherwise: true, say: Hello Dana.}\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("name", "top", "needed"),
    [
        ("selfpager_memory", {"pager"}, {"pager/py.typed", "pager/data/o200k_base.zlib", "pager/adapters/mem0.py"}),
        ("selfpager", {"agents", "selfpager.py"}, {"agents/py.typed", "agents/demo/guide.yaml", "selfpager.py"}),
    ],
)
def test_each_holds_its_package_with_its_data_and_nothing_else(
    wheels: dict[str, Path], name: str, top: set[str], needed: set[str]
) -> None:
    files = set(zipfile.ZipFile(wheels[name]).namelist())
    assert {file.split("/")[0] for file in files} == {*top, f"{name}-0.1.0.dist-info"}
    assert needed | {f"{name}-0.1.0.dist-info/licenses/LICENSE"} <= files
    assert not files & {"memory/pyproject.toml", "pager/README.md"}


def test_both_have_one_version_and_one_license() -> None:
    agent, memory = (tomllib.loads((ROOT / each).read_text())["project"] for each in FILES)
    assert agent["version"] == memory["version"]
    assert f"selfpager-memory=={memory['version']}" in agent["dependencies"]
    for extra in ("fleet", "encryption"):
        assert agent["optional-dependencies"][extra] == [f"selfpager-memory[{extra}]=={memory['version']}"]
    assert f"selfpager-memory[fleet]=={memory['version']}" in agent["optional-dependencies"]["demo-fleet"]
    assert (ROOT / "LICENSE").read_bytes() == (ROOT / "memory/LICENSE").read_bytes()


def test_a_package_agents_that_is_not_ours_is_told_with_the_commands_that_repair_it(fresh: Path) -> None:
    python, selfpager = fresh / "env/bin/python", fresh / "env/bin/selfpager"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])", cwd=fresh).strip())
    init, other = site / "agents" / "__init__.py", site / "openai_agents-0.24.0.dist-info"
    ours = init.read_text()
    assert run(selfpager, "--version", cwd=fresh, errors=True) == ""
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: openai-agents\nVersion: 0.24.0\n")
    (other / "RECORD").write_text("agents/__init__.py,,\n")
    try:
        told = run(selfpager, "--version", cwd=fresh, errors=True)  # it runs, and the other one does not
        assert told.startswith("selfpager has overwritten the package `agents` of openai-agents.")
        init.write_text("from openai import AsyncOpenAI\n")
        told = run(selfpager, "--version", cwd=fresh, errors=True, fails=True)
        assert told.startswith("openai-agents has overwritten the package `agents` of selfpager.")
        for command in (
            "pip uninstall -y openai-agents && pip install --force-reinstall --no-deps selfpager",
            "pip uninstall -y selfpager && pip install --force-reinstall --no-deps openai-agents",
        ):
            assert command in told
        for file in other.iterdir():
            file.unlink()
        other.rmdir()
        init.unlink()  # as an uninstalled openai-agents takes it along
        told = run(selfpager, "--version", cwd=fresh, errors=True, fails=True)
        assert told.startswith("files of selfpager's package `agents` are missing.")
    finally:
        init.write_text(ours)


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
