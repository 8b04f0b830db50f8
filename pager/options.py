"""The values with which a memory is opened: refused by name before anything is opened."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from pager.arguments import require_text
from pager.clock import Clock
from pager.conversation.content import check_tools
from pager.errors import RejectedError, brief
from pager.limits import Limits
from pager.markup import HOW_IT_WORKS
from pager.tiers import is_embedder
from pager.tiers.prefetch import Prefetch
from pager.types import SkillSpec
from pager.vectors.index import ChromaServer

FUNCTION = cast("type[Any]", Callable)  # a type of values, as far as `isinstance` is concerned
KINDS: Mapping[str, tuple[type[Any], str]] = {
    "limits": (Limits, "Limits"),
    "prefetch": (Prefetch, "a Prefetch"),
    "index": (ChromaServer, "a ChromaServer"),
    "clock": (Clock, "a Clock"),
    "count_tokens": (FUNCTION, "a function"),
    "summarize": (FUNCTION, "a function"),
}


def check_options(given: Mapping[str, Any]) -> None:
    """Raise RejectedError, or TypeError as `require_text` does, for arguments of `Memory.open` that cannot be."""
    for name in ("instructions", "model", "thinking"):
        require_text(given[name], name)
    check_tools(given["tools"])
    core, embedder = given["core"], given["embedder"]
    skills: Any = given["skills"] or ()
    if core is not None and not isinstance(core, Mapping):
        raise RejectedError(f"core is {brief(core)}; give a dict of BlockSpec by name.")
    if not (
        isinstance(skills, list | tuple) and all(isinstance(each, SkillSpec) for each in cast("list[Any]", skills))
    ):
        raise RejectedError(f"skills is {brief(given['skills'])}; give a list of SkillSpec.")
    if given["cache_ttl"] not in (None, "5m", "1h"):
        raise RejectedError(f"cache_ttl is {brief(given['cache_ttl'])}; give '5m', '1h' or None.")
    if given["memory_tools"] not in HOW_IT_WORKS:
        raise RejectedError(f"memory_tools is {brief(given['memory_tools'])}; give one of {', '.join(HOW_IT_WORKS)}.")
    if embedder not in (None, "default") and not is_embedder(embedder):
        raise RejectedError(f"embedder is {brief(embedder)}; give 'default', None or an Embedder.")
    for name, (kind, what) in KINDS.items():
        if given[name] is not None and not isinstance(given[name], kind):
            raise RejectedError(f"{name} is {brief(given[name])}; give {what}, or leave it out.")
