"""Open the page in a browser without its token on a command line, where every user of the machine could read it.

The browser gets the name of a file that only this user can read. The file leads on to the address, and is deleted once
the page was opened.
"""

import os
import webbrowser
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from agents.view.serving import ViewServer

WAIT_SECONDS = 60.0  # for a browser that has to start first
PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={address}">
<title>selfpager</title>
<p><a href="{address}">Open the debug view</a></p>
"""


def open_in_browser(server: ViewServer, address: str) -> None:
    """Open `address` of `server` in the user's browser. Return when it was requested, or after a minute."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")  # cleared by the system when the user leaves
    folder = runtime if Path(runtime).is_dir() and os.access(runtime, os.W_OK) else None
    with TemporaryDirectory(prefix="selfpager-", dir=folder or None) as private:  # its mode is 0700
        page = Path(private) / "view.html"
        page.touch(mode=0o600)
        page.write_text(PAGE.format(address=escape(address)), encoding="utf-8")
        if webbrowser.open(page.as_uri()):
            server.was_opened.wait(WAIT_SECONDS)
