"""Reads a rendered request back: which steps it carries, whether they are whole, and whose words are in our markup.

Nothing here uses what pager uses to write a request. A text is *carried* when it stands there as it was said, but for
our own element names, or as its two ends around the id of a page that holds all of it.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.laws.plain import THINKING, PlainStep, blank

Json = dict[str, Any]
Page = Callable[[str], str]

NAMES = "core|block|core_update|recalled|notice|digest|pinned|request|spilled"
OWN = re.compile(rf"<\s*/?\s*(?:{NAMES})(?![\w-])", re.IGNORECASE)
_ATTRIBUTES = r'((?: [a-z_]+="[^"<]*")*)'
WHOLE = re.compile(rf"<(core_update|recalled|notice|digest|pinned|request){_ATTRIBUTES}>(.*)</\1>", re.DOTALL)
BLOCK = re.compile(rf"<block{_ATTRIBUTES}>\n(.*?)\n</block>\n?", re.DOTALL)
SPILLED = re.compile(
    r'(.*)\n<spilled page_id="(x\d+)" characters="(\d+)"(?: holds="[a-z ]+")?>The middle is not shown; '
    r"it begins at offset (\d+)\.</spilled>\n(.*)",
    re.DOTALL,
)
BARE = re.compile(
    r'(?:(.*)\n)?<spilled page_id="(x\d+)" characters="(\d+)"(?: holds="[a-z ]+")?/>', re.DOTALL
)  # a text, then an image
NO_TEXT = "(no text)"


def armed(text: str) -> str:
    """The text with our names as somebody might have written them; both ways of writing become one."""
    return text.replace("&lt;", "<")


def attributes(text: str) -> dict[str, str]:
    return dict(re.findall(r'([a-z_]+)="([^"]*)"', text))


def element(block: Json) -> tuple[str, dict[str, str], str]:
    """Return name, attributes and content of our element, when a block is one and nothing else."""
    whole = WHOLE.fullmatch(block.get("text", ""))
    if not whole:
        return "", {}, ""
    # A digest opens with a line of our own, which may name an element.
    inner = whole[3].split("\n", 2)[-1] if whole[1] == "digest" else whole[3]
    if OWN.search(inner):
        return "", {}, ""
    return whole[1], attributes(whole[2]), whole[3].removeprefix("\n").removesuffix("\n")


def body_text(block: Json) -> str:
    """Return a block as a page shows it."""
    kind = block["type"]
    if kind == "text":
        return block["text"]
    if kind == "tool_result":
        return "\n".join(filter(None, map(body_text, block.get("content", []))))
    if kind == "tool_use":
        return f"{block['name']} {json.dumps(block['input'], ensure_ascii=False)}"
    if kind == "document":
        source = block["source"]
        texts = (block.get("title"), block.get("context"), source["data"] if source["type"] == "text" else "")
        return "\n".join(text for text in texts if text)
    return ""


@dataclass
class Prompt:
    core: dict[str, str] = field(default_factory=dict)  # block -> value, with the updates that came behind
    digest: list[tuple[int, int]] = field(default_factory=list)  # ranges of steps
    pinned: dict[str, str] = field(default_factory=dict)
    requests: dict[str, list[Json]] = field(default_factory=dict)  # in the preamble
    notices: int = 0


class Witness:
    """Takes a request apart, and fails where it is not what the plain model says. `page` is `memory.page`."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def read(self, params: Json, steps: Sequence[tuple[str, PlainStep]]) -> Prompt:
        prompt = Prompt()
        assert len(params["system"]) == 1
        assert "</core>" not in params["system"][0]["text"]
        messages = [
            (message["role"], [_unmarked(block) for block in message["content"]]) for message in params["messages"]
        ]
        self._read_preamble(messages.pop(0)[1], prompt)
        for page, step in steps:
            assert messages, f"{page} is said to be resident, and the request has ended"
            role, blocks = messages.pop(0)
            assert role == step.kind, f"{page} is of the {step.kind}, and the request has {blocks}"
            if step.kind == "user":
                self._read_said(page, step.said, blocks, prompt)
                continue
            self._read_reply(page, step, blocks, prompt)
            if step.results:
                role, blocks = messages.pop(0)
                assert role == "user"
                self._read_results(page, step.results, blocks, prompt)
        assert not messages, f"nobody said {messages}"
        assert prompt.notices <= 1, "the agent was told twice in an epoch that the window fills"
        return prompt

    def _read_core(self, core: str, prompt: Prompt) -> None:
        assert core.startswith("<core>")
        assert core.endswith("</core>")
        assert core.count("<core>") == core.count("</core>") == 1
        inner = core.removeprefix("<core>").removesuffix("</core>").strip("\n")
        rest = BLOCK.sub("", inner)
        assert not rest.strip(), f"between the blocks of core stands {rest!r}"
        for head, value in BLOCK.findall(inner):
            assert not OWN.search(value), f"markup inside a core block: {value!r}"
            prompt.core[attributes(head)["name"]] = armed(value)

    def _read_preamble(self, blocks: list[Json], prompt: Prompt) -> None:
        request = ""
        self._read_core(blocks.pop(0)["text"], prompt)
        for block in blocks:
            own, given, _ = element(block)
            if own == "request":
                request = given["page_id"]
                prompt.requests[request] = []
            elif own:
                assert not request, f"{own} behind the request"
                self._read_aside(block, prompt)
            else:
                assert request, f"in the preamble stands {block}"
                prompt.requests[request].append(block)

    def _read_aside(self, block: Json, prompt: Prompt) -> None:
        own, given, inner = element(block)
        assert own, f"this is nobody's: {block}"
        if own == "digest":
            for first, last in re.findall(r"^s(\d+)(?:-s(\d+))?(?:[ :]|$)", inner, re.MULTILINE):
                prompt.digest.append((int(first), int(last or first)))
        elif own == "pinned":
            prompt.pinned[given["page_id"]] = armed(inner)
        elif own == "core_update":
            prompt.core[given["name"]] = armed(inner)
        elif own == "notice":
            prompt.notices += "The window is" in inner

    # steps

    def _read_said(self, page: str, said: list[Json], blocks: list[Json], prompt: Prompt) -> None:
        while blocks and element(blocks[0])[0]:  # all that is ours stands before what a person said
            self._read_aside(blocks.pop(0), prompt)
        assert len(blocks) >= len(said), f"of {page} only {blocks} is there"
        for original, block in zip(said, blocks, strict=False):
            self.carries(original, block)
        assert len(blocks) == len(said), f"behind what was said in {page} stands {blocks[len(said) :]}"

    def _read_reply(self, page: str, step: PlainStep, blocks: list[Json], prompt: Prompt) -> None:
        said = [block for block in step.said if block["type"] not in THINKING and not blank(block)]
        thought = [block for block in step.said if block["type"] in THINKING]
        carried = [block for block in blocks if block["type"] not in THINKING]
        kept = [block for block in blocks if block["type"] in THINKING]
        assert kept in ([], thought), f"{page} is carried with a part of its thinking"
        if not kept and not said:
            assert carried == [{"type": "text", "text": NO_TEXT}]
            return
        assert len(said) == len(carried), f"{page} said {said} and is carried as {carried}"
        for original, block in zip(said, carried, strict=True):
            if block["type"] == "tool_use":
                assert block["name"] == original["name"]
                self._carries_input(original["input"], block["input"])
            elif block != original:
                assert self._is_spilled(block), f"{page} said {original} and is carried as {block}"
                self.carries(original, block)

    def _carries_input(self, original: Any, carried: Any) -> None:
        """A tool's input, string by string; an input keeps its shape."""
        if isinstance(original, dict):
            assert original.keys() == carried.keys()
            for name, value in original.items():
                self._carries_input(value, carried[name])
        elif isinstance(original, list):
            for one, other in zip(original, carried, strict=True):
                self._carries_input(one, other)
        elif original != carried:
            ends = SPILLED.fullmatch(carried)
            assert ends or BARE.fullmatch(carried), f"{original!r} became {carried!r}"
            if ends:
                head, page, characters, offset, tail = ends.groups()
                assert int(characters) == len(original)
                assert armed(original).startswith(armed(head))
                assert armed(original).endswith(armed(tail))
                read_so_far = self._page(page)[: int(offset)]
                assert armed(read_so_far).endswith(armed(json.dumps(head, ensure_ascii=False)[1:-1]))

    def _read_results(self, page: str, results: list[Json], blocks: list[Json], prompt: Prompt) -> None:
        assert [block["tool_use_id"] for block in blocks] == [result["tool_use_id"] for result in results]
        for place, (original, block) in enumerate(zip(results, blocks, strict=True)):
            assert block.get("is_error", False) == original.get("is_error", False)
            spoken = [inner for inner in original.get("content", []) if not blank(inner)]
            if not spoken and original.get("is_error"):
                spoken = [{"type": "text", "text": NO_TEXT}]
            content = list(block.get("content", []))
            if place == len(results) - 1:
                while content and element(content[-1])[0]:
                    self._read_aside(content.pop(), prompt)
            if len(content) == 1 and self._is_spilled(content[0]) and content != spoken:
                self._carries_text(body_text(original), content[0]["text"], page)
                continue
            assert len(content) == len(spoken), f"a result of {page} is carried as {content}"
            for one, other in zip(spoken, content, strict=True):
                self.carries(one, other)

    # texts

    def _is_spilled(self, block: Json) -> bool:
        text = block.get("text", "")
        return bool(SPILLED.fullmatch(text) or BARE.fullmatch(text))

    def carries(self, original: Json, block: Json) -> None:
        """`block` is what `original` may become in a prompt."""
        if blank(original):
            assert block == {"type": "text", "text": NO_TEXT}
        elif original["type"] == "text":
            self._carries_text(original["text"], block["text"], "")
        elif block["type"] == "text" and self._is_spilled(block):
            self._carries_text(body_text(original), block["text"], "")
        else:
            shown = json.dumps(block, ensure_ascii=False)
            assert armed(json.dumps(original, ensure_ascii=False)) == armed(shown)
            assert not OWN.search(shown.replace('\\"', '"')), f"markup inside {shown:.200}"

    def _carries_text(self, original: str, carried: str, holder: str) -> None:
        if armed(original) == armed(carried):
            assert not OWN.search(carried), f"{carried!r:.200} breaks our markup"
            return
        bare = BARE.fullmatch(carried)
        if bare:
            assert not bare[1] or armed(bare[1]) == armed(original)
            assert not OWN.search(bare[1] or "")
            self._page_holds(bare[2], int(bare[3]), original)
            return
        ends = SPILLED.fullmatch(carried)
        assert ends, f"{holder} {original!r:.300} became {carried!r:.300}"
        head, page, characters, offset, tail = ends.groups()
        self._page_holds(page, int(characters), original)
        assert not OWN.search(head)
        assert not OWN.search(tail)
        assert armed(original).endswith(armed(tail))
        assert armed(original[: int(offset)]) == armed(head), f"offset {offset} is not where the head of {page} ends"

    def _page_holds(self, page: str, characters: int, original: str) -> None:
        assert self._page(page) == original
        assert characters == len(original)


def _unmarked(block: Json) -> Json:
    return {name: value for name, value in block.items() if name != "cache_control"}
