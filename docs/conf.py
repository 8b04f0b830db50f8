"""How `make docs` builds the site: Markdown by MyST, the theme Furo, and nothing that a page fetches from elsewhere."""

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

project = "selfpager"
html_title = "selfpager"
extensions = ["myst_parser"]
exclude_patterns = ["keys.py"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 3  # links to headings work as on a forge, and those that lead nowhere are errors
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {"footer_icons": []}

ELSEWHERE = re.compile(
    r"""<(?:script|img|iframe|source|audio|video)\b[^>]*\bsrc(?:set)?=["']?(?:https?:)?//[^>]*>"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preload|preconnect|icon|modulepreload))[^>]*\bhref=["']?(?:https?:)?//[^>]*>"""
    r"""|@import\s+(?:url\()?["']?(?:https?:)?//[^;]*|url\(["']?(?:https?:)?//[^)]*\)"""
)


def fetches_nothing(app: Sphinx, exception: Exception | None) -> None:
    """Raise if a page or a style sheet of the built site loads something from another server."""
    if exception:
        return
    for path in sorted(Path(app.outdir).rglob("*")):
        if path.suffix in (".html", ".css") and (found := ELSEWHERE.search(path.read_text(encoding="utf-8"))):
            raise ExtensionError(f"{path.relative_to(app.outdir)} loads something from elsewhere: {found[0]}")


def setup(app: Sphinx) -> None:
    """Look at the site once it is built."""
    app.connect("build-finished", fetches_nothing)
