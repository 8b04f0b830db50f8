"""The tool `fetch_page` (`builtin: web`): a page of the web as Markdown.

What it brings is untrusted, with the host that answered as its source. A page that was fetched is served from memory
for an hour: an agent that reads on, or looks again, asks no server twice.
"""

import codecs
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from threading import Lock
from typing import TYPE_CHECKING, Any

from agents.builtin import documents, markdown
from agents.builtin.addresses import Resolve, resolved
from agents.tools.functions import Sourced, Tool, ToolCallError, ToolConfigError

if TYPE_CHECKING:
    from agents.builtin.http import Answer

HTML = frozenset({"text/html", "application/xhtml+xml"})
CACHED_PAGES, CACHED_CHARS, CACHED_SECONDS = 64, 20_000_000, 3600.0
GRACE_SECONDS = 5.0  # the tool's own limit comes after ours, which can say more
MAX_TITLE_CHARS = 300
SNIFFED_BYTES = 2048
_BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_META_CHARSET = re.compile(rb"<meta[^<>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_ODD_CODECS = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf_7"})


class Web:
    """Fetches pages, each once. `allow_private` names hosts (or host:port) that need not be public."""

    def __init__(
        self, allow_private: Collection[str] = (), *, seconds: float = 60.0, resolve: Resolve = resolved,
        now: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._allowed = frozenset(name.lower() for name in allow_private)
        self._seconds, self._resolve, self._now = seconds, resolve, now
        self._cache: OrderedDict[str, tuple[float, Sourced]] = OrderedDict()
        self._lock = Lock()  # a call that took too long may still be running beside the next one

    def tools(self, **options: Any) -> list[Tool]:
        """Return the tool. Raise ToolConfigError if the library for HTML is not there."""
        if not markdown.is_installed():
            raise ToolConfigError(f"web: {markdown.MISSING}")
        more = {"idempotent": True, "trust": "untrusted", "timeout_seconds": self._seconds + GRACE_SECONDS}
        return [Tool.of(self.fetch_page, **more, **options)]

    def fetch_page(self, url: str) -> Sourced:
        """Fetch a page or document of the web, by http or https, and return its text as Markdown. HTML, text, JSON, PDF
        and Office documents are read.

        Args:
            url: The address, such as https://example.org/page.
        """
        from agents.builtin import http  # the HTTP library takes a tenth of a second to load

        began = self._now()
        wanted = str(http.checked_url(url.strip()))
        with self._lock:
            at, cached = self._cache.get(wanted, (0.0, None))
        if cached and began - at < CACHED_SECONDS:
            return cached
        answer = http.get(wanted, self._allowed, seconds=self._seconds, resolve=self._resolve)
        left = self._seconds - (self._now() - began)
        page = Sourced(f"web:{answer.host}", as_text(answer, max(1.0, left)))
        self._store(wanted, began, page)
        return page

    def _store(self, url: str, at: float, page: Sourced) -> None:
        with self._lock:
            self._cache[url] = at, page
            self._cache.move_to_end(url)
            chars = sum(len(each.content) for _, each in self._cache.values())
            while len(self._cache) > CACHED_PAGES or chars > CACHED_CHARS:
                _, (_, oldest) = self._cache.popitem(last=False)
                chars -= len(oldest.content)


def as_text(answer: "Answer", seconds: float) -> str:
    """Return what the model is shown of an answer. Raise ToolCallError for what is no text."""
    if answer.document:
        text = documents.text_of(answer.body, answer.document, answer.url, seconds)
        return _shown(answer, text, "", [f"{answer.document[1:].upper()} as text"])
    text, kind = decoded(answer), answer.content_type
    is_html = kind in HTML or (not kind and re.match(r"\s*<(!doctype|html)", text, re.IGNORECASE) is not None)
    if b"\0" in answer.body[:SNIFFED_BYTES] and "\0" in text[:SNIFFED_BYTES]:
        said = f"though it says {kind}" if kind else "and says nothing of its type"
        raise ToolCallError(f"{answer.url} is no text, {said}. {markdown.READABLE}")
    title, remarks = "", [f"cut after {len(answer.body):,} bytes"] if answer.is_cut else []
    if is_html:
        try:
            page = markdown.convert(text, answer.url, seconds)
        except markdown.ConversionError as error:
            raise ToolCallError(f"{answer.url} cannot be read: {error}. Try another page.") from error
        text, title, remarks = page.text, " ".join(page.title.split())[:MAX_TITLE_CHARS], [*remarks, *page.remarks]
    return _shown(answer, text, title, remarks)


def _shown(answer: "Answer", text: str, title: str, remarks: list[str]) -> str:
    if len(text) > markdown.MAX_TEXT_CHARS:
        remarks = [*remarks, f"cut after {markdown.MAX_TEXT_CHARS:,} of {len(text):,} characters"]
        text = text[: markdown.MAX_TEXT_CHARS]
    head = [answer.url, *([f"Title: {title}"] if title else []), *(f"({remark})" for remark in remarks)]
    return "\n".join(head) + "\n\n" + (text.strip() or "(no text)")


def decoded(answer: "Answer") -> str:
    """Return the body as text: in the encoding that it declares, else as UTF-8, else as Windows-1252."""
    body = answer.body
    for mark, name in _BYTE_ORDER_MARKS.items():
        if body.startswith(mark):
            return body.decode(name, "replace")
    in_page = _META_CHARSET.search(body[:SNIFFED_BYTES])
    for name in (answer.charset, in_page[1].decode() if in_page else "", "utf-8"):
        try:
            if name and codecs.lookup(name).name.replace("-", "_") not in _ODD_CODECS:
                return body.decode(name, "replace" if name == answer.charset or answer.is_cut else "strict")
        except (LookupError, ValueError):
            continue
    return body.decode("windows-1252", "replace")
