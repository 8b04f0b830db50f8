"""Purging: afterwards no file of the agent holds the purged text.

`purge` erases in one transaction the page itself, every verbatim copy of its text, and what our own tools quoted of it.
It ends the epoch and leaves a tombstone in the ledger. `finish` rebuilds the word indexes and the vector index, and
erases freed database pages and the log. If the process dies before that, the next opening calls it.
"""

import json
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import tzinfo

from pager import checklist, markup, tokens
from pager.blocks import dump, media_in, text_block, text_of
from pager.errors import RejectedError
from pager.prompt.digest import read, write
from pager.search.words import index_text
from pager.store import Store
from pager.tiers.core import MOVED_FROM
from pager.tiers.pages import Pages
from pager.tokens.counter import count_block
from pager.types import FOREVER, Fact, Json, Movement, PageId, number_of, read_page_id
from pager.upkeep.eraser import PURGED, Eraser, media_sources
from pager.upkeep.inbox import Commands
from pager.vectors.chroma.places import Directory
from pager.vectors.embedder import EmbedderUnavailableError
from pager.vectors.embedding import AT_ONCE, mark_unembedded
from pager.vectors.facts import FactVectors

OF_ANOTHER = "the agent that this one worked for"


def due(store: Store, before: int) -> tuple[list[Fact], list[Fact]]:
    """Return the facts that were given an end before a moment, and those of them whose words a fact that is kept holds,
    too: a purge would take them out of that one."""
    expired = store.archive.expired(before)
    ids, eraser = {number_of(fact.id) for fact in expired}, Eraser([fact.text for fact in expired])
    kept = [
        text for fact, text in store.maintenance.facts_for_words() if fact not in ids and eraser.erase(text) != text
    ]
    if not kept:
        return expired, []
    alone = [(fact, Eraser([fact.text])) for fact in expired]
    held = {fact.id for fact, own in alone if any(own.erase(text) != text for text in kept)}
    return [fact for fact in expired if fact.id not in held], [fact for fact in expired if fact.id in held]


def eraser_of(store: Store, pages: Pages, page_id: str) -> Eraser:
    """Return what erases a page's text. Raise NotFoundError if there is no such page, or it is purged already."""
    page = read_page_id(page_id)
    if page.kind == "k":
        raise RejectedError(f"{page} is a skill, which is read from a file: remove it there, then open the agent anew.")
    text = pages.text(str(page))
    said: list[Json] = [json.loads(block) for _, block in _parts(store, page)]
    media = [source for block in said for item in media_in(block) for source in media_sources(item)]
    texts = [text] if page.kind == "f" else [text for block in said if (text := text_of(block))]
    texts += [text.removeprefix(checklist.FINISHED) for text in texts if text.startswith(checklist.FINISHED)]
    return Eraser(texts, media)


def purge(
    store: Store, eraser: Eraser, asked: Sequence[PageId], actor: str, zone: tzinfo, commands: Commands, reason: str
) -> int:
    """Erase pages, facts that say nothing else, and the text in pending commands. Return how many places.

    Without a page it is one of another memory, whose text stands here, too.
    """
    what = OF_ANOTHER if not asked else str(asked[0]) if len(asked) == 1 else f"{len(asked)} pages"
    files = commands.erase(eraser.erase_in_command)
    with store.transaction():
        store.settings.put("purging", what)  # from here on the ledger may be rewritten
        facts = store.maintenance.facts_for_words()
        equal = [PageId("f", fact) for fact, text in facts if eraser.erase(text) == PURGED != text]
        wanted = set(asked)
        equal = [fact for fact in equal if fact not in wanted]
        pages = [*asked, *equal]
        gone, touched = ([*around, *equal] for around in _pages_around(store, asked))
        for part in store.maintenance.asides_naming([str(each) for each in touched]):
            store.maintenance.overwrite_part(part, emptied)
        _scrub_preambles(store, touched, zone)
        store.sleeps.scrub([str(each) for each in touched], PURGED)
        for each in pages:
            if each.kind == "f":
                _scrub_links(store, str(each), eraser)
            _remove_page(store, each)
        _scrub_errors(store, files)
        changed = store.maintenance.rewrite(eraser.erase_in_column)
        if not (pages or changed or files):
            store.settings.put("purging", None)
            return 0
        store.settings.put("purges", str(int(store.settings.get("purges") or 0) + 1))
        _renew_vectors(store, changed)
        _recount(store, {row for table, row in changed if table in ("parts", "forms")})
        for block in store.core.blocks():
            store.core.recount(block.version, tokens.total(block.value))
        for each in map(str, gone):
            store.prompt.unpin(each)
            store.prompt.end_residency(each, "pinned", store.conversation.last_step(), "purged")
        store.prompt.end_epoch(store.conversation.last_step())
        places = len(pages) + len(changed) + len(files)
        more: Json = {"also": [str(each) for each in equal]} if equal else {}
        for each in asked or (None,):
            page = str(each) if each else None
            store.ledger.write("purge", page, reason=reason, actor=actor, places=places, **more)
        for each in equal:
            about = f"it said nothing but what {what} said"
            store.ledger.write("purge", str(each), reason=about, actor=actor, places=1)
    return places


def _scrub_errors(store: Store, files: set[str]) -> None:
    for row in store.ledger.movements(events=["error"]) if files else ():
        if row.detail.get("file") in files:
            store.maintenance.put("ledger", row.number, reason=PURGED)


def _scrub_links(store: Store, fact: str, eraser: Eraser) -> None:
    """Erase what the ledger says of this fact, and what its core block said if it was moved out of one."""
    for row in store.ledger.movements(page=fact):
        detail = {name: value for name, value in row.detail.items() if name not in ("key", "tags")}
        reason = PURGED if row.event == "forget" and row.reason else row.reason
        store.maintenance.put("ledger", row.number, reason=reason, detail=dump(detail))
        if row.event == "page_out" and row.reason.startswith(MOVED_FROM):
            _scrub_core(store, row.reason.removeprefix(MOVED_FROM), row, eraser)


def _scrub_core(store: Store, name: str, moved: Movement, eraser: Eraser) -> None:
    """Erase the text from a block's versions before the text was moved out of it, and from where they were shown."""
    for version in store.lists.core_versions(name):
        if version.block.at <= moved.at:
            store.maintenance.put("blocks", version.block.version, value=eraser.erase_linked(version.block.value))
    for row in store.ledger.movements(events=["core"]):
        if row.number < moved.number and row.detail.get("block") == name:
            store.maintenance.put("ledger", row.number, reason=eraser.erase_linked(row.reason))
    store.maintenance.rewrite_core_shown(name, eraser.erase_linked)


def _pages_around(store: Store, pages: Sequence[PageId]) -> tuple[list[PageId], list[PageId]]:
    """Return the pages that are purged with these, and those that may show a piece of them."""
    gone, showing = list[PageId](), list[PageId]()
    for page in pages:
        row = store.conversation.original(page.number) if page.kind == "x" else None
        gone += [page, *(PageId("x", part) for part, _ in _parts(store, page) if page.kind == "s")]
        showing += [PageId("s", row["step"])] if row else []
    return gone, [*gone, *showing]


def _parts(store: Store, page: PageId) -> list[tuple[int, str]]:
    """Return the parts of a step, or a spilled part, with their blocks; none for a fact."""
    if page.kind == "s":
        return store.maintenance.parts_in(page.number)
    row = store.conversation.original(page.number) if page.kind == "x" else None
    return [(page.number, row["block"])] if row else []


def _remove_page(store: Store, page: PageId) -> None:
    for part, _ in _parts(store, page):
        store.maintenance.overwrite_part(part, emptied)
    if page.kind == "f":
        store.maintenance.mark_fact_purged(page.number)
    elif page.kind == "s":
        store.maintenance.put("steps", page.number, purged=1, name=None, session=None)


def emptied(raw: str) -> str:
    """Return the block without its text. Its shape stays, so that calls and results still pair."""
    block: Json = json.loads(raw)
    kind = str(block.get("type"))
    kept = {name: block[name] for name in ("type", "tool_use_id", "is_error") if name in block}
    if kind.endswith("tool_use"):
        return dump({**block, "input": {}})
    if kind in ("tool_result", "mcp_tool_result"):
        return dump({**kept, "content": [text_block(PURGED)]})
    if kind.endswith("_tool_result"):
        return dump({**kept, "content": {"type": f"{kind}_error", "error_code": "unavailable"}})
    return dump(text_block(PURGED))


def _renew_vectors(store: Store, changed: Collection[tuple[str, int]]) -> None:
    """Drop the vectors that were computed from the erased text."""
    for table, row in changed:
        if table == "facts":
            store.maintenance.drop_vector(row)
            mark_unembedded(store)
        elif table == "parts":
            store.said.renew_vector(row)


def _recount(store: Store, parts: set[int]) -> None:
    rows = [row for part in sorted(parts) if (row := store.conversation.original(part))]
    for step in store.conversation.load(sorted({row["step"] for row in rows}), FOREVER):
        for part in step.parts:
            if part.id in parts and part.form:
                store.conversation.size(part.id, count_block(part.form))


def _scrub_preambles(store: Store, pages: Sequence[PageId], zone: tzinfo) -> None:
    steps = {page.number for page in pages if page.kind == "s"}
    for epoch, preamble, digest in store.maintenance.preambles():
        shown, lines = _without(json.loads(preamble), set(map(str, pages))), read(json.loads(digest))
        for place, line in enumerate(lines):
            if line.words and any(line.first <= step <= line.last for step in steps):
                lines[place] = replace(line, words=PURGED)
                text = text_block(markup.digest([each.text(zone) for each in lines]))
                shown = [text if markup.shows_digest(block) else block for block in shown]
        store.maintenance.put("epochs", epoch, preamble=dump(shown), digest=dump(write(lines)))


def _without(preamble: Sequence[Json], pages: set[str]) -> list[Json]:
    shown = list(preamble)
    is_request = False
    for index, block in enumerate(preamble):
        element = _ELEMENT.match(str(block.get("text", "")))
        if element and element["name"] == "request":
            is_request = element["page"] in pages
        elif is_request or (element and element["page"] in pages):
            shown[index] = text_block(PURGED)
    return shown


_ELEMENT = re.compile(r'<(?P<name>pinned|request) page_id="(?P<page>\w+)"')


def finish(store: Store, facts: FactVectors | None, index: Directory) -> None:
    """Rebuild what was derived from the purged text, and erase freed bytes. Safe to repeat."""
    rebuild_words(store)
    dead = set(store.maintenance.erase_freed())
    if facts is not None:
        with suppress(EmbedderUnavailableError):
            facts.embed_pending(AT_ONCE)  # facts that quoted the text were rewritten
        facts.clear("a purge")
    else:
        index.clear()  # from a time with an embedder
    for who in sorted(dead):
        why = "which has died, may have left a copy of what was purged. It is deleted when a selfpager is used there"
        store.ledger.write("error", reason=f"{who}, {why}.")
    store.settings.put("purging", None)
    store.maintenance.erase_freed()


def rebuild_words(store: Store) -> None:
    """Index the words of every fact and every searchable part again."""
    with store.transaction():
        store.maintenance.clear_words()
        for part, name, block in store.maintenance.said_for_words():
            store.conversation.index_words(part, index_text(text_of(json.loads(block)), name))
        for fact, text in store.maintenance.facts_for_words():
            store.archive.index_words(fact, index_text(text))
