"""A memory provider of Hermes over a `Memory`: what was said is recall, what it is told to remember are facts.

Hermes loads it from `$HERMES_HOME/plugins/selfpager/__init__.py`:

    from pager.adapters.hermes import register_memory_provider as register

and uses it once `config.yaml` has `memory: {provider: selfpager}`. Before a message it puts what fits from earlier
sessions and facts. The model has tools to search, store and end facts, and what Hermes' own memory tool writes becomes
a fact, too. The memory is `$HERMES_HOME/selfpager`; one process at a time has it open.
"""

import json
from pathlib import Path
from typing import Any

from pager import Memory, PagerError
from pager.adapters import require

base: Any = require("agent.memory_provider", "hermes-agent")
NAME = "selfpager"
ACTOR = "hermes"
PROMPT = (
    "What earlier sessions and stored facts have for a message stands in <recalled> beside it. Use selfpager_search "
    "for anything else that was said or stored, and selfpager_store for what should be known in later sessions: one "
    "statement, with a key when it may change, so that the newer one supersedes the older."
)
TEXT = {"type": "string"}
TOOLS: dict[str, tuple[str, dict[str, Any], list[str]]] = {  # name -> what it does, its arguments, the required ones
    "selfpager_search": ("Search all sessions and facts, by words and by meaning.", {"query": TEXT}, ["query"]),
    "selfpager_store": (
        "Store one fact. A fact with the same key supersedes the older one.", {"text": TEXT, "key": TEXT}, ["text"]
    ),
    "selfpager_forget": (
        "End a fact that is no longer true, by its id such as f12.", {"id": TEXT, "reason": TEXT}, ["id", "reason"]
    ),
}  # fmt: skip


class PagerProvider(base.MemoryProvider):
    """A provider with a memory of its own, open from `initialize` to `shutdown`."""

    def __init__(self, directory: str | Path | None = None) -> None:
        self._directory = directory
        self._memory: Memory | None = None
        self._session = ""
        self._writes = True

    @property
    def name(self) -> str:
        """Return how the configuration calls it."""
        return NAME

    def is_available(self) -> bool:
        """Return True: it needs no key and no network."""
        return True

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Open the memory. Only the primary agent of a session writes what was said."""
        self._session, self._writes = session_id, kwargs.get("agent_context", "primary") == "primary"
        self._memory = self._memory or Memory.open(self._directory or Path(kwargs["hermes_home"]) / NAME)

    def shutdown(self) -> None:
        """Close the memory."""
        if self._memory is not None:
            self._memory.close()
            self._memory = None

    def system_prompt_block(self) -> str:
        """Return how the model uses it."""
        return PROMPT

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Return what fits a message; "" for small talk and where there is nothing."""
        return self._memory.prefetch(query, actor=ACTOR) if self._memory else ""

    def sync_turn(
        self, user_content: str, assistant_content: str, *, session_id: str = "", messages: Any = None
    ) -> None:
        """Store what was said in a turn."""
        if self._memory is not None and self._writes:
            said = {"session": f"{ACTOR}/{session_id or self._session}"}
            turn = (("user", user_content), ("assistant", assistant_content))
            self._memory.record_many([{**said, "role": role, "text": text} for role, text in turn if text.strip()])

    def on_session_switch(self, new_session_id: str, **_: Any) -> None:
        """Write to another session from now on."""
        self._session = new_session_id

    def on_memory_write(self, action: str, target: str, content: str, metadata: Any = None) -> None:
        """Store what Hermes' own memory tool writes."""
        if self._memory is not None and self._writes and action in ("add", "replace") and content.strip():
            self._memory.archive(content, tags=[f"{ACTOR}:{target}"], actor=ACTOR, source=f"program:{ACTOR}")

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the tools of the model."""
        return [
            {
                "name": name,
                "description": about,
                "parameters": {"type": "object", "properties": given, "required": need},
            }
            for name, (about, given, need) in TOOLS.items()
        ]

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **_: Any) -> str:
        """Carry out a tool call. Return its result as JSON."""
        try:
            return json.dumps(self._carry_out(tool_name, args), ensure_ascii=False)
        except (PagerError, KeyError) as error:
            return json.dumps({"error": str(error)}, ensure_ascii=False)

    def _carry_out(self, tool_name: str, args: dict[str, Any]) -> dict[str, Any]:
        if self._memory is None:
            return {"error": "the memory is not open; Hermes opens it with a session."}
        if tool_name == "selfpager_search":
            hits = self._memory.search(args["query"], actor=ACTOR)
            found = [{"id": hit.page_id, "at": hit.at.isoformat(), "text": hit.text, "via": hit.via} for hit in hits]
            return {"found": found}
        if tool_name == "selfpager_store":
            fact = self._memory.archive(args["text"], key=args.get("key") or None, actor=ACTOR, source="agent")
            return {"stored": fact.id, "supersedes": fact.supersedes}
        return {"ended": self._memory.forget(args["id"], args["reason"], actor=ACTOR).id}


def register_memory_provider(context: Any) -> None:
    """Register the provider, as Hermes' plugins do."""
    context.register_memory_provider(PagerProvider())
