"""PDF, Office and HTML as text, for `files` and `web`: the only file that knows kreuzberg (the extra `documents`).

It runs in a child process, which is this file as a program: a document of others may make any converter run for ever,
fill the memory or crash. The child reads the document on its standard input and writes the text. Nothing is cached on
disk, no text is recognized in pictures, and no network is asked.

Chosen by trying: of a plain PDF kreuzberg and pypdf keep the spaces between words, which markitdown lost; kreuzberg is
one file without dependencies, and reads Office and HTML, too.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Any

MISSING = "PDF, Office and HTML files are read with the extra 'documents': pip install 'selfpager[documents]'."
TIMEOUT_SECONDS = 60
MEMORY_BYTES = 4 << 30  # of addresses; what a converter maps is far more than what it fills
MAX_TEXT_BYTES = 16 << 20
_OFFICE = "application/vnd.openxmlformats-officedocument."
KINDS = {
    ".pdf": "application/pdf",
    ".docx": f"{_OFFICE}wordprocessingml.document",
    ".pptx": f"{_OFFICE}presentationml.presentation",
    ".xlsx": f"{_OFFICE}spreadsheetml.sheet",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "text/html",
}


_SAYS_NOTHING = frozenset({"application/octet-stream", "binary/octet-stream", "application/zip"})


def ending_of(content_type: str, path: str) -> str:
    """Return the ending for `text_of` of a PDF or Office document that a server sent, by its type or, where that says
    nothing, by its path; "" for anything else."""
    from agents.builtin.texts import DOCUMENTS

    if content_type in _SAYS_NOTHING:
        ending = PurePosixPath(path).suffix.casefold()
        return ending if ending in DOCUMENTS else ""
    return next((ending for ending in DOCUMENTS if KINDS[ending] == content_type), "")


def can_read() -> bool:
    """Return True if the extra is installed."""
    return find_spec("kreuzberg") is not None


def text_of(raw: bytes, ending: str, path: str, seconds: float = TIMEOUT_SECONDS) -> str:
    """Return the text of a document. Raise ToolCallError if it cannot be read, or has none."""
    from agents.builtin.markdown import ENVIRONMENT
    from agents.builtin.texts import DOCUMENTS
    from agents.tools.functions import ToolCallError

    if not can_read():
        raise ToolCallError(f"{path} is not read. {MISSING}")
    command = [sys.executable, "-P", __file__, ending, str(max(1, int(seconds)))]
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    try:
        done = subprocess.run(
            command, input=raw, capture_output=True, timeout=seconds, check=False, env=environment,
            start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ToolCallError(f"{path} is not read: converting it took longer than {seconds:.0f} s.") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = lines[-1][:300] if lines else f"the converter ended with {done.returncode}"
        raise ToolCallError(f"{path} is not read as {ending[1:]}: {why}")
    text = done.stdout.decode("utf-8", "replace")
    if not text.strip() and ending in DOCUMENTS:
        raise ToolCallError(f"{path} has no text. What is written in its pictures, if it has any, is not recognized.")
    return text


def _main(ending: str, seconds: str) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    import kreuzberg

    library: Any = kreuzberg
    settings = library.ExtractionConfig(use_cache=False, disable_ocr=True, output_format="markdown")
    text = library.extract_bytes_sync(sys.stdin.buffer.read(), KINDS[ending], config=settings).content
    sys.stdout.buffer.write(text.encode("utf-8", "replace")[:MAX_TEXT_BYTES])


if __name__ == "__main__":
    try:
        _main(*sys.argv[1:])
    except Exception as error:  # noqa: BLE001 - the parent says it
        kind, why = type(error).__name__, " ".join(str(error).split())
        sys.exit(why if why.startswith(kind) else f"{kind}: {why}")
