"""The words that selfpager itself puts into a prompt, and what keeps others from forging them.

Our markup is a handful of element names. Text that comes from outside (a user, a tool, a fact, a core
value) is carried with those names disarmed: `<core>` reads `&lt;core>`. Everything else in it stays.
"""

import re
from collections.abc import Sequence
from datetime import datetime

from pager.clock import format_minute
from pager.types import Block

OWN_ELEMENTS = ("core", "block", "core_update", "recalled", "notice", "digest", "pinned", "request", "spilled")
_OWN = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(OWN_ELEMENTS)})(?![\w-]))", re.IGNORECASE)

HOW_MEMORY_WORKS = """\
# How your memory works
You see three tiers. <core> below is always in view: keep there what every turn needs, in few words. This
conversation is the recall tier: when it grows too long its oldest steps leave the prompt, and <digest> then lists
them; nothing is lost. The archive holds facts for as long as you like.
Pages have ids: f12 is a fact, s45 a step of the conversation, x3 a part that was too long to show whole. Fetch a
page by its id, or search by words, meaning and date. When a <notice> says that the window is filling, save what you
will need. Elements such as <core_update>, <recalled> and <notice> come from the memory, never from a person."""

HOW_MEMORY_FILES_WORK = """\
# How your memory works
You see three tiers. <core> below is always in view: keep there what every turn needs, in few words; each block is the
file /memories/core/<its name>.md. This conversation is the recall tier: when it grows too long its oldest steps leave
the prompt, and <digest> then lists them; nothing is lost. The archive, /memories/archive, holds facts for as long as
you like: a file each, named by what it is about, with text that stands by itself.
Renaming a file between core and archive moves it. What has left the prompt is in /memories/recall by day
(2026-05-03.md), and any page is there by its id: s45 a step of the conversation, f12 a fact, x3 a part that was too
long to show whole. When a <notice> says that the window is filling, save what you will need. Elements such as
<core_update>, <recalled> and <notice> come from the memory, never from a person."""

NO_TEXT = "(no text)"


def disarm(text: str) -> str:
    """Return `text` with our own element names made harmless; the same object if there are none."""
    return _OWN.sub("&lt;", text) if "<" in text else text


def attribute(text: str) -> str:
    """Return `text` made safe between double quotes."""
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace("\n", " ")


def core_block(block: Block, element: str = "block") -> str:
    """Return a block as an element."""
    flag = ' read_only="true"' if block.read_only else ""
    description = f' description="{attribute(block.description)}"' if block.description else ""
    return (
        f'<{element} name="{attribute(block.name)}"{description} limit_tokens="{block.limit_tokens}" '
        f'used_tokens="{block.used_tokens}"{flag}>\n{disarm(block.value)}\n</{element}>'
    )


def core(blocks: Sequence[Block]) -> str:
    """Return all blocks as the element <core>."""
    inner = "\n".join(core_block(block) for block in blocks)
    return f"<core>\n{inner}\n</core>" if inner else "<core></core>"


def core_update(block: Block) -> str:
    """Return the message that a block was changed or removed."""
    if block.retired:
        return f'<core_update name="{attribute(block.name)}">This block was removed.</core_update>'
    return core_block(block, "core_update")


def pinned(page_id: str, text: str) -> str:
    """Return a pinned page as an element."""
    return f'<pinned page_id="{page_id}">\n{disarm(text)}\n</pinned>'


def recalled(lines: Sequence[str]) -> str:
    """Return recalled lines as an element."""
    inner = disarm("\n".join(lines))
    return f"<recalled>\n{inner}\n</recalled>"


def notice_window(used_tokens: int, usable_tokens: int, leaving: str) -> str:
    """Return the notice that the window is filling up."""
    share = round(100 * used_tokens / usable_tokens)
    return (
        f"<notice>The window is {share} % full ({used_tokens} of {usable_tokens} tokens). Soon {leaving} "
        "will leave the prompt; they stay searchable. Save what you will need: important facts into the archive, "
        "what every turn needs into core.</notice>"
    )


def digest(lines: Sequence[str]) -> str:
    """Return the lines for evicted steps as an element."""
    inner = "\n".join(lines)
    opening = "Steps that left the prompt. What they asked for is done, but for what a <request> repeats; search them."
    return f"<digest>\n{opening}\n{inner}\n</digest>"


def request_opening(step: int, at: datetime) -> str:
    """Return the element that precedes a request."""
    return f'<request page_id="s{step}" at="{format_minute(at)}">The request you are working on follows.</request>'


def spilled(head: str, tail: str, page_id: str, length: int, offset: int, holds: str = "") -> str:
    """Return the ends of a part that is too large, and where in the page to read on; `holds` names what is no text."""
    more = f' holds="{holds}"' if holds else ""
    if not head and not tail:
        return f'<spilled page_id="{page_id}" characters="{length}"{more}/>'
    return (
        f'{head}\n<spilled page_id="{page_id}" characters="{length}"{more}>The middle is not shown: '
        f"read on with the page id and offset {offset}.</spilled>\n{tail}"
    )
