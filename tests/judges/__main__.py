"""Run the judges: `python -m tests.judges [NAME ...]`. Exit 1 if a test fails that `projects.toml` does not name."""

import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.judges.conformance import judge_mcp

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
PLACE = ROOT / "build" / "judges"
CACHE = ROOT / "build" / "judges-cache"  # of packages: it stays for the next time
TOOLS = PLACE / "tools"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
Row = tuple[str, int, int, list[str]]  # name, passed, failed as listed, problems


def run(*command: str | Path, cwd: Path = PLACE, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command without our environment. Return what it printed."""
    plain = {"PATH": "/usr/bin:/bin", "HOME": str(CACHE), "PYTHONDONTWRITEBYTECODE": "1", **_settings(), **environ}
    return subprocess.run(
        list(map(str, command)), cwd=cwd, env=plain, capture_output=True, text=True, check=False, timeout=500
    )


def _settings() -> dict[str, str]:
    """Return what says from where packages come."""
    import os

    names = ("PIP_", "UV_", "SSL_", "REQUESTS_", "HTTP", "http", "NPM_", "npm_", "NODE_EXTRA", "no_proxy", "NO_PROXY")
    return {name: value for name, value in os.environ.items() if name.startswith(names)}


def need(*command: str | Path, cwd: Path = PLACE) -> str:
    """Run a command that has to succeed."""
    done = run(*command, cwd=cwd)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))[:300]}\n{done.stdout}{done.stderr}")
    return done.stdout


def environment(name: str, packages: list[str]) -> Path:
    """Make an environment with these packages and our wheels. Return its Python."""
    place = PLACE / name
    python = place / "bin" / "python"
    need(TOOLS / "bin" / "uv", "venv", "--quiet", "--clear", "--python", sys.executable, place)
    wheel = next((ROOT / "dist").glob("selfpager_memory-*.whl"))
    need(TOOLS / "bin" / "uv", "pip", "install", "--quiet", "--python", python, wheel, *packages)
    return python


def source(requirement: str) -> Path:
    """Download and unpack the source of a project."""
    folder = PLACE / "sources" / requirement.partition("==")[0]
    folder.mkdir(parents=True)
    need(*PIP, "download", "--no-deps", "--no-binary", ":all:", "--dest", folder, requirement)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir())


def judge(suite: dict[str, Any], pythons: dict[str, Path], sources: dict[str, Path]) -> Row:
    """Run one suite. Return how many tests passed and failed as listed, and what else went wrong."""
    report = PLACE / f"{abs(hash(suite['name']))}.xml"
    theirs = suite.get("source")
    folder, plugin = sources[theirs] if theirs else ROOT, suite.get("plugin")
    options = ["-p", plugin, "-o", "asyncio_mode=auto", *suite.get("options", ())] if plugin else []
    command = [pythons[suite["environment"]], "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    done = run(*command, *options, *suite["tests"], cwd=folder, PYTHONPATH=str(HERE / "plugins"))
    if not report.exists():
        return suite["name"], 0, 0, [f"nothing ran: {done.stdout[-2000:]}{done.stderr[-2000:]}"]
    cases = list(ElementTree.parse(report).iter("testcase"))
    # Two classes may have tests of the same name.
    names = {f"{case.attrib.get('classname')} {case.attrib['name']}": case for case in cases}
    failed = {
        name for name, case in names.items() if case.find("failure") is not None or case.find("error") is not None
    }
    skipped = sum(case.find("skipped") is not None for case in cases)
    patterns = [pattern for listed in suite.get("fails", ()) for pattern in listed["tests"]]
    expected = {name for name, case in names.items() if any(fnmatch(case.attrib["name"], each) for each in patterns)}
    problems = [f"fails and is not listed: {name}" for name in sorted(failed - expected)]
    problems += [f"is listed and passes: {name}" for name in sorted(expected - failed)]
    problems += [] if cases else ["no test ran"]
    return suite["name"], len(cases) - len(failed) - skipped, len(failed & expected), problems


def overwritten() -> Row:
    """Install both our wheels, and openai-agents over them: `selfpager` has to say how to repair that."""
    place = PLACE / "overwritten"
    uv, python = TOOLS / "bin" / "uv", place / "bin" / "python"
    need(uv, "venv", "--quiet", "--clear", "--python", sys.executable, place)
    install = (uv, "pip", "install", "--quiet", "--no-deps", "--python", python)
    need(*install, *(ROOT / "dist").glob("*.whl"))
    need(*install, "openai-agents==0.24.0")
    told = run(place / "bin" / "selfpager", "--version")
    repaired = "pip uninstall -y openai-agents && pip install --force-reinstall --no-deps selfpager"
    passed = told.returncode == 1 and repaired in told.stderr
    return (
        "selfpager below openai-agents: the command says how to repair it",
        int(passed),
        0,
        ([] if passed else [told.stdout + told.stderr]),
    )


def together(python: Path) -> Row:
    """Use all frameworks and our memory in one process."""
    done = run(python, HERE / "together.py")
    problems = [done.stdout + done.stderr] if done.returncode else []
    told = done.stdout.strip().splitlines()
    return told[-1] if told else "works together", int(not problems), 0, problems


def main() -> int:
    began = time.monotonic()
    settings = tomllib.loads((HERE / "projects.toml").read_text(encoding="utf-8"))
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    CACHE.mkdir(exist_ok=True)
    need(sys.executable, "-m", "venv", TOOLS)
    need(TOOLS / "bin" / "python", "-m", "pip", "--quiet", "install", f"uv=={settings['uv']}")
    with ThreadPoolExecutor(3) as pool:  # one of them often sleeps, or waits for a network
        made = {name: pool.submit(environment, name, wanted) for name, wanted in settings["environments"].items()}
        fetched = {name: pool.submit(source, wanted) for name, wanted in settings["sources"].items()}
        listed = [scenario for each in settings["mcp"]["fails"] for scenario in each["scenarios"]]
        mcp = pool.submit(judge_mcp, PLACE / "mcp", settings["mcp"]["conformance"], listed)
        pythons = {name: future.result() for name, future in made.items()}
        sources = {name: future.result() for name, future in fetched.items()}
        rows = list(pool.map(lambda suite: judge(suite, pythons, sources), settings["judge"]))
        rows += [together(pythons["together"]), overwritten(), *mcp.result()]
    print("| judge | passed | fails, as listed |\n| --- | --- | --- |")
    for name, passed, listed, _ in rows:
        print(f"| {name} | {passed} | {listed} |")
    problems = [f"{name}: {problem}" for name, _, _, found in rows for problem in found]
    print(*problems, f"{time.monotonic() - began:.0f} s", sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
