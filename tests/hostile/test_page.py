"""Payloads in every text that reaches the debug view, in a real browser: nothing runs, nothing is asked elsewhere."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

from pager import BlockSpec, Limits, Memory, send_command
from tests.browser.looking import Viewer, viewing
from tests.browser.programs import started
from tests.support.clock import HandClock

ELSEWHERE = "http://127.0.0.1:9/"
RUN = "window.ran=(window.ran||0)+1"
PAYLOADS = [
    f"<script>{RUN}</script><script src={ELSEWHERE}a.js></script>",
    f"<img src={ELSEWHERE}b.png onerror='{RUN}'><svg onload='{RUN}'><style>*{{background:url({ELSEWHERE}c)}}</style>",
    f"\"'><iframe srcdoc='<script>parent.{RUN}</script>'></iframe><base href={ELSEWHERE}>",
    f"</textarea></title></style><a href='javascript:{RUN}' autofocus onfocus='{RUN}'>x</a><form action={ELSEWHERE}>",
    f"{{{{constructor.constructor('{RUN}')()}}}} ${{{RUN}}} `url({ELSEWHERE}d)` expression({RUN})",
    "\u202egnp.exe\u2066\u200b\U000e0041\x1b]0;x\x07 <link rel=stylesheet href=//127.0.0.1:9/e.css>",
    "__proto__ constructor toString",
]
ALL = " ".join(PAYLOADS)
WATCH = """
window.reports = [];
addEventListener("securitypolicyviolation", (event) => window.reports.push(event.blockedURI + event.violatedDirective));
for (const name of ["alert", "confirm", "prompt", "open"]) window[name] = () => { window.ran = (window.ran || 0) + 1 };
"""
TRACED = [["guide", "trace", "now", payload] for payload in PAYLOADS]
TABS = ("Request", "Core", "Turns", "Archive", "Ledger", "Searches", "Cost", "Trace")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as browser:
        yield browser


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home<img src=x onerror=x>"
    home.mkdir()
    core = {"human": BlockSpec(description=ALL, value=ALL, limit_tokens=4000)}
    tools = [
        {"name": "fetch", "description": ALL, "input_schema": {"type": "object", "properties": {ALL: {"title": ALL}}}}
    ]
    options: dict[str, Any] = {"instructions": ALL, "tools": tools, "core": core, "model": ALL, "embedder": None}
    with Memory.open(home / "guide", limits=Limits.for_window(60_000), clock=HandClock(), **options) as memory:
        for payload in PAYLOADS:
            memory.archive(payload, key=payload, tags=[payload, ALL], actor="agent")
            memory.record("user", payload, name=payload, session=payload)
            memory.search_archive(payload, tags=[ALL])
            memory.search_recall(payload)
        memory.archive(f"{ALL} again", key=PAYLOADS[0])
        memory.forget("f3", ALL)
        memory.append_user(
            [
                {"type": "text", "text": ALL},
                {"type": "document", "title": ALL, "source": {"type": "text", "media_type": "text/plain", "data": ALL}},
            ],
            name=ALL,
        )
        memory.request()
        use = {"type": "tool_use", "id": "c1", "name": "fetch", "input": {ALL: ALL}}
        reply = {"content": [{"type": "text", "text": ALL}, use], "stop_reason": "tool_use", "model": ALL}
        memory.append_assistant(reply, {"input_tokens": 900, "output_tokens": 5})
        memory.append_result("c1", ALL, is_error=True)
        memory.core_append("human", ALL, actor=f"<img src={ELSEWHERE} onerror={RUN}>"[:60])
        memory.page_in("f1", pin=True)
        memory.request()
        memory.append_assistant(ALL, {"input_tokens": 990, "output_tokens": 5})
    send_command(home / "guide", "message", {"text": ALL})
    return home


@pytest.mark.slow
def test_no_payload_runs_or_asks_elsewhere(home: Path, browser: Browser) -> None:
    with viewing(home, browser) as viewer:
        viewer.page.add_init_script(WATCH)
        for tab in TABS:
            viewer.open(f"guide/{tab.lower()}")
            _look_at_all(viewer)
        for parts in ([ALL], ["guide", ALL], ["guide", "constructor"], ["guide", "request", ALL], *TRACED):
            viewer.page.goto("about:blank")
            viewer.page.goto(f"{viewer.server.address}#{'/'.join(map(quote, parts))}")
            expect(viewer.page.locator("body[data-ready]")).to_be_attached()
            _assert_quiet(viewer)
        viewer.open("guide/trace")
        viewer.page.locator("#find-text").fill(PAYLOADS[1])
        viewer.page.keyboard.press("Enter")
        viewer.sees("onerror")
        _assert_quiet(viewer)
        viewer.complaints[:] = [each for each in viewer.complaints if "404" not in each and "400" not in each]


def _look_at_all(viewer: Viewer) -> None:
    """Open what can be opened: the details, and the pages of the first ids."""
    for summary in viewer.panel.locator("summary:visible").all()[:20]:
        summary.click()
    _assert_quiet(viewer)
    sheet = viewer.page.locator("#page")
    for chip in viewer.panel.locator("button.chip:visible").all()[:2]:
        chip.click()
        expect(sheet.locator("*").nth(3)).to_be_visible()
        _assert_quiet(viewer)
        viewer.page.keyboard.press("Escape")
        expect(sheet).to_be_hidden()


def _assert_quiet(viewer: Viewer) -> None:
    found = viewer.page.evaluate(
        """() => ({ran: window.ran || 0, reports: window.reports,
        made: document.querySelectorAll("iframe, base, object, embed, script:not([src='view.js']), [onerror], [onload], [onfocus], a[href^='javascript']").length,
        unseen: [...document.body.innerText.matchAll(/[\\u200b\\u202a-\\u202e\\u2066-\\u2069\\u001b\\u{e0041}]/gu)].length})"""  # noqa: E501
    )
    assert found == {"ran": 0, "reports": [], "made": 0, "unseen": 0}, json.dumps(found)
    assert viewer.asked_elsewhere == []
