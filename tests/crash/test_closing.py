"""A reader is closed while other threads read: they are told so, and the process lives."""

import subprocess
import sys
from pathlib import Path

from pager import Memory
from tests.support.cli import ROOT, environment

READ_AND_CLOSE = """
import sys
from threading import Event, Thread
from pager import MemoryReader, StorageError

for _ in range(20):
    reading = MemoryReader.open(sys.argv[1])
    begun, told = [Event() for _ in range(3)], []

    def look(began):
        try:
            while True:
                reading.inspect.find_text("trains")
                began.set()
        except StorageError as error:
            told.append(str(error))

    threads = [Thread(target=look, args=[each]) for each in begun]
    for thread in threads:
        thread.start()
    for each in begun:
        each.wait()
    reading.close()
    for thread in threads:
        thread.join()
    assert len(told) == 3, told
"""


def test_closing_waits_for_whoever_reads(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=None) as memory:
        for number in range(300):
            memory.record("user", f"turn {number} about trains and hats")
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", READ_AND_CLOSE, str(tmp_path)], cwd=ROOT, env=environment(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
