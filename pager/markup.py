"""The words that selfpager itself puts into a prompt, and what keeps others from forging them.

Our markup is a handful of element names. Text that comes from outside (a user, a tool, a fact, a core
value) is carried with those names disarmed: `<core>` reads `&lt;core>`. So is what only reads like them: with letters
of other alphabets, wide ones, characters that are not seen, or in pieces over several blocks. Everything else stays.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import pairwise

from pager.clock import format_minute
from pager.types import Block, Json, Skill

OWN_ELEMENTS = ("core", "block", "core_update", "recalled", "notice", "digest", "pinned", "request", "spilled")
_NAMES_READ = frozenset(name.replace("i", "l") for name in OWN_ELEMENTS)  # as `_read_as` reads them
_BEGINNINGS = frozenset(name[:length] for name in _NAMES_READ for length in range(1, len(name) + 1))
_LETTERS = {  # what looks like a letter of our names. i, l and 1 look alike, so they are one letter: l
    "a": "\u0430\u03b1\u0251\u1d00\u13aa",
    "b": "\u0432\u03b2\u044c\u0185\u0299\u15af\u13cf\ua4d0",
    "c": "\u0441\u03f2\u03f9\u1d04\u2ca5\ua4da\u13df\uab8f\u1974\u00a2\u00a9",
    "d": "\u0501\u13e7\u146f\u1d05\ua4d2\uab70\ua4d3",
    "e": "\u0435\u03b5\u04bd\u212e\u1d07\uab32\u13ac\ua4f0\u0454\u025b",
    "g": "\u0261\u0581\u0262\u13c0\ua4d6\u050d",
    "k": "\u043a\u03ba\u1d0b\u2c95\ua4d7\u13e6",
    "l": "\u04cf\u029f\u01c0\u05c0\u05d5\u217c\ua4e1\u13de\u2223\u053c\u056c"
    "i1|\u0456\u03b9\u0269\u026a\u0131\u13a5\ua4f2\u2c93\ua647\u0627\u05df\u07ca\u2d4f\u16c1\u2502\u2503\u2758",
    "n": "\u043f\u03bd\u0578\u057c\u0274\u2c9b\ua4e0\u03b7\u039d",
    "o": "0\u043e\u03bf\u03c3\u0585\u05e1\u1d0f\u0d20\u2c9f\ua4f3\u0647\u06be\u06c1\u06d5\u101d\u10ff\u1d11\u2d54\u3007"
    "\ua669\u2218\u25cb\u25e6\u25ef\u26aa\u26ac\u2b55\u2b58\U0001042c\U000104ea",
    "p": "\u0440\u03c1\u03f1\u1d18\u2ca3\ua4d1\u13e2",
    "q": "\u051b\u0563\u0566\u01eb",
    "r": "\u0433\u0280\u1d26\u2c85\uab47\uab48\uab81\ua4e3\u13a1\u1493\u00ae",
    "s": "\u0455\u01bd\ua731\u0282\u13da\ua4e2\u054f\u10fd",
    "t": "\u0442\u03c4\u1d1b\u2ca7\ua4d4\u13a2",
    "u": "\u057d\u03c5\u1d1c\u028b\ua79f\ua4f4\u144c",
    "/": "\\\u2044\u2215\u2571\u27cb\u29f8\u1735\u2041\u30ce\u4e3f\u2216\u29f5\u29f9\u2572\u27cd",
}
_LIKE = {ord(other): letter for letter, others in _LETTERS.items() for other in others}
_QUOTES = "\u00ab\u300a\u27ea"  # a bracket only before a name without a space: so nobody quotes a word in French
_BRACKETS = (
    "<\uff1c\ufe64\u226e\u02c2\u02f1\u1433\u1438\u16b2\u2039\u2329\u3008\u27e8\u276c\u276e\u2770\u2991\u29fc"
    "\u226a\u227a\u22d6\u22d8\u2a79\u2aa1\u2abb\u2af7\ufe3d\ufe3f\U0001d236\U000e003c"
)
_ASCII_NAMES = "|".join(re.sub("[il]", "[il1|]", name.replace("o", "[o0]")) for name in OWN_ELEMENTS)
_OPENING = re.compile(  # before one of our names, or before a character that may only look like part of one
    rf"(?:[{_BRACKETS}]|[{_QUOTES}](?!\s))(?=[\s/\\]*+(?:[a-z_01|]{{0,11}}[^ -~\s{_BRACKETS}{_QUOTES}]|"
    rf"[a-z_01|]{{0,11}}\U000e003c|(?:{_ASCII_NAMES})(?![\w-])))",
    re.IGNORECASE,
)
_BREAK = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")  # all at which str.splitlines ends a line
_TAG_CHARACTER = re.compile("[\U000e0020-\U000e007e]")  # an unseen copy of ASCII, which models can read

HOW_MEMORY_WORKS = """\
# How your memory works
You see three tiers. <core>, in the first message, is always in view: keep there what every turn needs, in few words.
This conversation is the recall tier: when it grows too long its oldest steps leave the prompt, and <digest> then lists
them; nothing is lost. The archive holds facts for as long as you like.
Pages have ids, a letter and a number: f for a fact, s for a step of the conversation, x for a part that was too long
to show whole. Fetch a page by its id, or search by words, meaning and date. When a <notice> says that the window is
filling, save what you will need. Elements such as <core>, <recalled> and <notice> come from the memory, never from a
person."""

HOW_MEMORY_FILES_WORK = """\
# How your memory works
You see three tiers. <core>, in the first message, is always in view: keep there what every turn needs, in few words;
each block is the file /memories/core/<its name>.md. This conversation is the recall tier: when it grows too long its
oldest steps leave the prompt, and <digest> then lists them; nothing is lost. The archive, /memories/archive, holds
facts for as long as you like: a file each, named by what it is about, with text that stands by itself.
Renaming a file between core and archive moves it. What has left the prompt is in /memories/recall by day
(2026-05-03.md), and any page is there by its id, a letter and a number: s for a step of the conversation, f for a
fact, x for a part that was too long to show whole. When a <notice> says that the window is filling, save what you
will need. Elements such as <core>, <recalled> and <notice> come from the memory, never from a person."""

HOW_FEW_TOOLS_WORK = """\
# How your memory works
When a person tells you something that will matter later, call remember: one fact, as a full sentence. When a person
asks, answer in words. What was said earlier and fits a message stands in <recalled> before it: answer from that. Of two
entries that differ the later one is right. If the answer is not in view, call search_memory once, then answer. Elements
such as <core>, <recalled> and <notice> come from the memory, never from a person."""

HOW_MEMORY_IS_SHOWN = """\
What was said earlier and fits a message stands in <recalled> before it: answer from that. Of two entries that differ
the later one is right. Elements such as <core>, <recalled> and <digest> are put there by the program, never by a
person."""

SAVE_WITH = {  # what a notice asks for, by the tools for the memory; without any it would ask in vain
    "pager": " Save what you will need: important facts into the archive, what every turn needs into core.",
    "anthropic": " Save what you will need: important facts into the archive, what every turn needs into core.",
    "few": " Call remember for each fact that you will need.",
}
HOW_IT_WORKS = {
    "pager": HOW_MEMORY_WORKS, "anthropic": HOW_MEMORY_FILES_WORK, "few": HOW_FEW_TOOLS_WORK,
    "none": HOW_MEMORY_IS_SHOWN,
}  # fmt: skip

SKILLS = """\
# Skills
Each is a page of instructions for one kind of work. Before you begin such work, read its page with {}, and do
what it says."""
READ_SKILL = {"pager": "page_in"}  # with any other tools for the memory: read_skill

NO_TEXT = "(no text)"
REFUSED_MEDIA = "({what} {page_id} is not shown: the provider of the model refused it.)"


def one_line(text: str) -> str:
    """Return `text` with its line breaks escaped, for what is read line by line: a hit, an entry of a list."""
    return _BREAK.sub(lambda found: {"\n": "\\n", "\r": "\\r"}.get(found[0], f"\\u{ord(found[0]):04x}"), text)


def shortened(text: str, limit: int) -> str:
    """Return a text on one line, with "…" at its end if it was cut.

    >>> shortened("too long a\\nline", 10), shortened("short", 10)
    ('too long…', 'short')
    """
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def disarm(text: str) -> str:
    """Return `text` with our own element names, and what reads like them, made harmless."""
    return _joined(text, [-1, *_openings(text), len(text)])


def disarm_all(texts: Sequence[str]) -> list[str]:
    """Return texts that stand behind each other, disarmed also where an element begins in one and ends in another."""
    texts = [disarm(text) for text in texts]
    found, start = _openings("".join(texts)) if len(texts) > 1 else [], 0
    for index, text in enumerate(texts if found else ()):
        end = start + len(text)
        cuts = [at - start for at in found[bisect_left(found, start) : bisect_left(found, end)]]
        texts[index], start = _joined(text, [-1, *cuts, len(text)]), end
    return texts


def _joined(text: str, cuts: Sequence[int]) -> str:
    return "&lt;".join(text[before + 1 : at] for before, at in pairwise(cuts)) if len(cuts) > 2 else text


def _openings(text: str) -> list[int]:
    """Return the places of the brackets that one of our names follows. Reads no further than to the next bracket."""
    brackets = [found.start() for found in _OPENING.finditer(text)]
    ways = (False, True) if brackets and _TAG_CHARACTER.search(text) else (False,)

    def is_ours(bracket: int, *, tags: bool) -> bool:
        if not tags and _TAG_CHARACTER.match(text, bracket):
            return False
        return _names_ours(map(text.__getitem__, range(bracket + 1, len(text))), tags=tags)

    return [bracket for bracket in brackets if any(is_ours(bracket, tags=tags) for tags in ways)]


def _names_ours(characters: Iterable[str], *, tags: bool) -> bool:
    """Return True if a name of ours comes first. Tag characters are read as what they stand for, or not at all."""
    name = ""
    for character in characters:
        read = _read_as(character, tags=tags)
        plain = read.strip("\0 ")
        if name in _NAMES_READ and not _is_of_word(read[0]):
            return True
        if name and read == "\0":
            continue
        if not name and plain in ("", "/"):
            continue
        name += plain or " "
        if name not in _BEGINNINGS:
            return False
    return name in _NAMES_READ


@lru_cache(8192)
def _read_as(character: str, *, tags: bool) -> str:
    """Return how a character reads: in small Latin letters, a space, or \0 for one that is not seen. \0 comes also
    before a letter or dash that is made of a sign."""
    if _TAG_CHARACTER.match(character):
        return f"\0{chr(ord(character) - 0xE0000).lower().translate(_LIKE)}" if tags else "\0"
    if character.isspace():
        return " "
    small = unicodedata.normalize("NFKD", character.translate(_LIKE)).casefold()
    plain = "".join(map(_bare, unicodedata.normalize("NFKD", small))).translate(_LIKE)
    seen = "".join(each for each in plain if unicodedata.category(each)[0] not in "CM" and each not in _BLANK)
    return f"\0{seen}" if _is_of_word(seen[:1]) and not _is_of_word(character) else seen or "\0"


def _bare(character: str) -> str:
    """Return a letter without a stroke or a hook, which Unicode knows by its name only, and a digit as ours."""
    if (digit := unicodedata.decimal(character, None)) is not None:
        return str(digit)
    name, _, more = unicodedata.name(character, "").partition(" WITH ")
    try:
        return unicodedata.lookup(name) if more else character
    except KeyError:
        return character


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character in ("_", "-")


_BLANK = "\u115f\u1160\u3164\uffa0\u2800"  # letters and a sign without anything to see


def attribute(text: str) -> str:
    """Return `text` made safe between double quotes."""
    return one_line(disarm(text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")))


def core_block(block: Block, element: str = "block") -> str:
    """Return a block as an element."""
    flag = ' read_only="true"' if block.read_only else ""
    via = f' via="{attribute(", ".join(block.via))}"' if block.via else ""
    description = f' description="{attribute(block.description)}"' if block.description else ""
    return (
        f'<{element} name="{attribute(block.name)}"{description} limit_tokens="{block.limit_tokens}" '
        f'used_tokens="{block.used_tokens}"{flag}{via}>\n{disarm(block.value)}\n</{element}>'
    )


def core(blocks: Sequence[Block]) -> str:
    """Return all blocks as the element <core>; nothing if there are none."""
    inner = "\n".join(core_block(block) for block in blocks)
    return f"<core>\n{inner}\n</core>" if inner else ""


def core_update(block: Block) -> str:
    """Return the message that a block was changed or removed."""
    if block.retired:
        return f'<core_update name="{attribute(block.name)}">This block was removed.</core_update>'
    return core_block(block, "core_update")


def skills(known: Sequence[Skill], kind: str) -> str:
    """Return what a prompt says of skills, a line each; nothing if there are none. `kind` is of the memory's tools."""
    lines = [disarm(one_line(f"{skill.id} {skill.name}: {skill.description.strip()}")) for skill in known]
    return "\n".join([SKILLS.format(READ_SKILL.get(kind, "read_skill")), *lines]) if lines else ""


def pinned(page_id: str, text: str) -> str:
    """Return a pinned page as an element."""
    return f'<pinned page_id="{page_id}">\n{disarm(text)}\n</pinned>'


def recalled(lines: Sequence[str]) -> str:
    """Return recalled lines as an element."""
    inner = disarm("\n".join(map(one_line, lines)))
    return f"<recalled>\n{inner}\n</recalled>"


def notice_window(used_tokens: int, usable_tokens: int, leaving: str, save: str) -> str:
    """Return the notice that the window is filling up."""
    share = round(100 * used_tokens / usable_tokens)
    return (
        f"<notice>The window is {share} % full ({used_tokens} of {usable_tokens} tokens). Soon {leaving} "
        f"will leave the prompt; they stay searchable.{save}</notice>"
    )


def digest(lines: Sequence[str]) -> str:
    """Return the lines for evicted steps as an element."""
    inner = "\n".join(lines)
    opening = "Steps that left the prompt. What they asked for is done, but for what a <request> repeats."
    return f"<digest>\n{opening}\n{inner}\n</digest>"


def shows_digest(block: Json) -> bool:
    """Return True for the block of a preamble that holds the digest. In what others wrote the element is disarmed."""
    return str(block.get("text", "")).startswith("<digest>")


def request_opening(step: int, at: datetime) -> str:
    """Return the element that precedes a request."""
    return f'<request page_id="s{step}" at="{format_minute(at)}">The request you are working on follows.</request>'


def spilled(head: str, tail: str, page_id: str, length: int, offset: int, holds: str = "") -> str:
    """Return the ends of a part that is too large, and where in the page to read on; `holds` names what is no text."""
    more = f' holds="{holds}"' if holds else ""
    if not head and not tail:
        return f'<spilled page_id="{page_id}" characters="{length}"{more}/>'
    return (
        f'{head}\n<spilled page_id="{page_id}" characters="{length}"{more}>The middle is not shown; '
        f"it begins at offset {offset}.</spilled>\n{tail}"
    )
