"""HTML to Markdown, in a child process with limits of time and memory.

A few kilobytes of HTML can describe gigabytes of Markdown (quotes in quotes, a long base address), and native code ends
its process when it gets no memory. So this file is also a program: HTML on its input, JSON on its output.

    python -P markdown.py ADDRESS_OF_THE_PAGE SECONDS
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec

READABLE = "HTML, text, JSON, XML, PDF and Office documents are read."
MISSING = "this needs the package html-to-markdown: pip install 'selfpager[web]'."
MAX_TEXT_CHARS = 5_000_000
MAX_MEMORY_BYTES = 1 << 30
MAX_DEPTH = 500
HEAD_CHARS = 100_000  # its title is in these
ENVIRONMENT = ("PATH", "LANG", "LD_LIBRARY_PATH", "PYTHONPATH", "SYSTEMROOT")  # no keys: what runs there is untrusted


@dataclass(frozen=True, slots=True)
class Markdown:
    """The text of an HTML page. `remarks` say what is not in it."""

    title: str
    text: str
    remarks: tuple[str, ...]


class ConversionError(Exception):
    """HTML cannot be converted; the text says why."""


def is_installed() -> bool:
    """Return True if the library is there."""
    return find_spec("html_to_markdown") is not None


def convert(html: str, url: str, seconds: float) -> Markdown:
    """Return an HTML page as Markdown, with absolute links. Raise ConversionError."""
    command = [sys.executable, "-P", __file__, url, str(max(1, int(seconds)))]
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    try:
        done = subprocess.run(
            command, input=html.encode(errors="replace"), capture_output=True, timeout=seconds, check=False,
            env=environment, start_new_session=True,
        )  # fmt: skip
        found = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise ConversionError(f"converting its HTML took longer than {seconds:.0f} s") from error
    except ValueError as error:
        raise ConversionError(f"its HTML needs more than {MAX_MEMORY_BYTES >> 20} MB or cannot be parsed") from error
    return Markdown(found["title"], found["text"], tuple(found["remarks"]))


def _main(url: str, seconds: str) -> None:
    _limit(int(seconds))
    from html_to_markdown import ConversionOptions, convert

    html = sys.stdin.buffer.read().decode()
    options = ConversionOptions(
        base_url=url, max_depth=MAX_DEPTH, inline_data_media="alt_text_only", extract_metadata=False
    )
    found, head = convert(html, options), convert(html[:HEAD_CHARS])
    text, about = found.content or "", head.metadata.document if head.metadata else None
    remarks = [warning.message for warning in found.warnings][:3]
    if len(text) > MAX_TEXT_CHARS:
        remarks.append(f"cut after {MAX_TEXT_CHARS:,} of {len(text):,} characters")
    answer = {"title": (about and about.title) or "", "text": text[:MAX_TEXT_CHARS], "remarks": remarks}
    sys.stdout.write(json.dumps(answer))


def _limit(seconds: int) -> None:
    try:
        import resource
    except ImportError:  # a system without such limits: the caller's time limit holds
        return
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _main(*sys.argv[1:])
