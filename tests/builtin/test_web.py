"""Pages of the web as Markdown: what is read, what is told, and what is fetched only once."""

from pathlib import Path
from textwrap import dedent

import pytest

from agents.assembly import own_tools
from agents.builtin import documents, http, web
from agents.builtin.web import Web
from agents.config import load
from agents.config.errors import ConfigError
from agents.tools.functions import Sourced, ToolCallError
from tests.support import papers
from tests.support.web import Page, page, redirect, site

HTML = """<html><head><title>Hats &amp;
 caps</title><script>alert(1)</script></head><body><h1>Hats</h1><p>Our <a href="/red">red</a> <b>hats</b>.</p>
<table><tr><th>size<th>price</tr><tr><td>S<td>7</tr></table><div hidden>unseen</div></body></html>"""


def fetch(pages: dict[str, Page], path: str = "/", **options: object) -> Sourced:
    with site(pages) as at:
        return Web([at.here], **options).fetch_page(at.url + path)  # type: ignore[arg-type]


def text_of(body: str | bytes, kind: str, *headers: str) -> str:
    return fetch({"/": page(body, kind, *headers)}).content.partition("\n\n")[2]


def test_a_page_is_read_as_markdown_with_its_title_absolute_links_and_no_hidden_text() -> None:
    with site({"/a/b": page(HTML)}) as at:
        found = Web([at.here]).fetch_page(f"{at.url}/a/b#part")
    assert found.source == "web:127.0.0.1"
    assert found.content.splitlines()[:2] == [f"{at.url}/a/b", "Title: Hats & caps"]
    assert f"Our [red]({at.url}/red) **hats**." in found.content
    assert "| size | price |" in found.content
    assert "unseen" not in found.content
    assert "alert" not in found.content


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ('{"a": 1}', "application/json", '{"a": 1}'),
        ("<a/>", "application/atom+xml", "<a/>"),
        ("a,b", "text/csv", "a,b"),
        ("plain", "", "plain"),
        ("<!DOCTYPE html><p>x <b>y</b>", "", "x **y**"),
        ("", "text/plain", "(no text)"),
        ("für".encode("latin-1"), "text/plain; charset=iso-8859-1", "für"),
        ("für".encode("latin-1"), "text/plain", "für"),
        ("für".encode("utf-16"), "text/plain", "für"),
        ("für".encode(), "text/plain; charset=no-such-thing", "für"),
        ("für".encode(), "text/plain; charset=punycode", "für"),
        ("f\xfcr".encode(), "text/plain; charset=utf-8", "für"),
        ('<meta charset="iso-8859-7"><p>Ωδη'.encode("iso-8859-7"), "text/html", "Ωδη"),
        (b"\xff\xfe\xfd", "text/plain; charset=utf-8", "\ufffd"),
    ],
)
def test_text_is_read_in_its_own_encoding(body: str | bytes, kind: str, text: str) -> None:
    assert text_of(body, kind).startswith(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "body", "kind", "text"),
    [
        ("/1", papers.pdf("It sails at nine."), "application/pdf", "It sails at nine."),
        ("/a.PDF", papers.pdf("It sails at nine."), "application/octet-stream", "It sails at nine."),
        ("/1", papers.docx("One", "two"), documents.KINDS[".docx"], "One\n\ntwo"),
        ("/1", papers.xlsx(("hat", 7)), documents.KINDS[".xlsx"], "## Stock\n\n| hat | 7 |"),
    ],
)
def test_documents_are_read_as_files_reads_them(path: str, body: bytes, kind: str, text: str) -> None:
    found = fetch({path: page(body, kind)}, path).content
    head, _, shown = found.partition("\n\n")
    assert shown.startswith(text)
    assert head.endswith(" as text)")


def test_a_document_is_told_where_it_cannot_be_read_or_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    body = papers.pdf("It sails at nine.")
    with pytest.raises(ToolCallError, match="is a file of the type application/octet-stream"):
        fetch({"/a.bin": page(body, "application/octet-stream")}, "/a.bin")
    monkeypatch.setattr(http, "MAX_DOCUMENT_BYTES", len(body) - 1)
    with pytest.raises(ToolCallError, match=rf"of {len(body)} bytes; at most {len(body) - 1} bytes of a document are"):
        fetch({"/": page(body, "application/pdf")})
    monkeypatch.setattr(documents, "can_read", lambda: False)
    with pytest.raises(ToolCallError, match=r"pip install 'selfpager\[documents\]'"):
        fetch({"/": page(body, "application/pdf")})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (page(b"\x89PNG", "image/png"), r"is a file of the type image/png of 4 bytes\. HTML, text, JSON"),
        (page(b"%PDF-1.7", "application/pdf"), "is not read as pdf: "),
        (page(b"PK", "application/msword"), r"is a file of the type application/msword of 2 bytes\. HTML, text, JSON"),
        (page(b"a\0b", "text/plain"), "is no text, though it says text/plain"),
        (page("x", status=404), r"was answered with 404 \(Not Found\)"),
        (page("x", status=599), r"was answered with 599 \(unknown status\)"),
        (b"nonsense\r\n\r\n", "the connection to .* failed"),
        (b"", "the connection to .* failed"),
        (page(b"no gzip", "text/plain", "Content-Encoding: gzip"), "cannot be decompressed"),
    ],
)
def test_what_cannot_be_read_is_told(answer: bytes, said: str) -> None:
    with pytest.raises(ToolCallError, match=said):
        fetch({"/": answer})


def test_a_redirect_is_followed_and_the_address_that_answered_is_named() -> None:
    with site({"/old": redirect("new"), "/new": page("<p>here")}) as at:
        assert Web([at.here]).fetch_page(f"{at.url}/old").content.splitlines()[0] == f"{at.url}/new"


def test_a_page_is_fetched_once_in_an_hour_and_errors_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(web, "CACHED_PAGES", 2)
    with site({"/a": page("a"), "/b": page("b"), "/c": page("c")}) as at:
        fetched = Web([at.here], now=lambda: now)
        first = fetched.fetch_page(f"{at.url}/a")
        assert fetched.fetch_page(f" {at.url}/a#there") is first
        for _ in range(2):
            with pytest.raises(ToolCallError, match="404"):
                fetched.fetch_page(f"{at.url}/none")
        assert at.paths == ["/a", "/none", "/none"]
        now = web.CACHED_SECONDS
        for path in ("/a", "/b", "/c", "/a"):  # of three, the oldest is gone
            fetched.fetch_page(at.url + path)
        assert at.paths[3:] == ["/a", "/b", "/c", "/a"]


AGENT = """
    name: reader
    model: {{id: m, api_key: k}}
    tools:
      - {{builtin: web, {}}}
"""


def written(directory: Path, options: str) -> Path:
    file = directory / "reader.yaml"
    file.write_text(dedent(AGENT).format(options))
    return file


def test_an_agent_that_names_it_has_it(tmp_path: Path) -> None:
    with site({"/": page("<p>hello")}) as at:
        config = load(written(tmp_path, f'allow_private: ["{at.here}"], approve: always, timeout_seconds: 7'), {})
        [tool] = own_tools(config)
        assert (tool.name, tool.approve, tool.source) == ("fetch_page", "always", "tool:fetch_page")
        assert tool.idempotent
        assert tool.timeout_seconds > 7
        text, sources = tool.run_limited({"url": at.url})
    assert "hello" in text
    assert sources == {"web:127.0.0.1"}


def test_a_host_that_is_an_address_is_refused_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'http://x/' is not allowed: give a host, or host:port"):
        load(written(tmp_path, "allow_private: ['http://x/']"), {})


def test_without_its_library_the_file_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web.markdown, "is_installed", lambda: False)
    with pytest.raises(ConfigError, match=r"reader.yaml:5:.*pip install 'selfpager\[web\]'"):
        own_tools(load(written(tmp_path, "approve: never"), {}))
