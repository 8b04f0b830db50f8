"""Storage interfaces of other frameworks over one `Memory`: import the one you need by its name.

- `langgraph`: LangGraph's `BaseStore`
- `claude_agent`: the Claude Agent SDK's `SessionStore`
- `openai_agents`: the OpenAI Agents SDK's `Session`
- `pydantic_ai`: the memory store of PydanticAI's harness, searchable
- `pydantic_ai_conversations`: PydanticAI's `ConversationStore`
- `mem0`, `mem0_async`: mem0's calls, for who moves over, and the same as coroutines
- `hermes`: a memory provider of Hermes

Each stores through the facade alone: facts, messages from elsewhere, core. None adds a dependency: who uses an adapter
has its framework. An adapter may share its memory with an agent of ours and with other adapters: each lists its own
keys and sessions, and the agent finds what all of them stored.
"""

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def require(module: str, distribution: str) -> Any:
    """Return a module of a framework. Raises ImportError that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        way = f"pip install {distribution}"
        raise ImportError(f"this adapter needs {module}, which cannot be imported ({error}): {way}") from error


async def in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a call of the memory in a thread. Cancelled meanwhile, it ends first: what it stores is stored by then."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
