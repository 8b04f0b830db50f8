"""`agents` exports whatever a caller of an agent needs: what goes in, what comes out, and what is raised."""

from __future__ import annotations

import inspect
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import agents
import pager
from agents import Agent, Event, TaskRunner


def named(hint: Any) -> set[type]:
    """The classes of ours in a type hint."""
    found = {hint} if inspect.isclass(hint) and get_origin(hint) is None and not isinstance(hint, UnionType) else set()
    found |= {one for part in get_args(hint) if not isinstance(part, list) for one in named(part)}
    return {one for one in found if one.__module__.startswith(("agents", "pager"))}


@pytest.mark.parametrize("kind", [Agent, TaskRunner])
def test_every_type_of_a_public_signature_is_exported(kind: type) -> None:
    methods = [member for name, member in inspect.getmembers(kind, callable) if not name.startswith("_")]
    hints = [hint for method in methods for hint in get_type_hints(method).values()]
    public = {getattr(module, name) for module in (agents, pager) for name in module.__all__ if name != "Event"}
    assert not [one for hint in hints for one in named(hint) if one not in public and one is not kind]


def test_every_event_and_every_name_is_there() -> None:
    assert all(getattr(agents, event.__name__) is event for event in get_args(Event))
    assert all(getattr(agents, name) for name in agents.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Agnet'"):
        _ = agents.Agnet
