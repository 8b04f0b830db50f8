"""Puts our session in the place of SQLiteSession before the SDK's tests import that."""

import tempfile
from typing import Any

from agents.memory import session_settings as settings_of  # pyright: ignore -- the SDK's, not ours

import agents as theirs
from pager import Memory
from pager.adapters.openai_agents import PagerSession

opened: dict[Any, Memory] = {}  # by the path of the database that a test names


class Session(PagerSession):
    """Our session, made as SQLiteSession is."""

    def __init__(self, session_id: str, db_path: Any = ":memory:", *_: Any, session_settings: Any = None) -> None:
        key = object() if str(db_path) == ":memory:" else str(db_path)
        opened[key] = opened.get(key) or Memory.open(tempfile.mkdtemp(), embedder=None)
        given = {} if session_settings is None else session_settings
        super().__init__(session_id, opened[key], session_settings=settings_of.coerce_session_settings(given))

    def close(self) -> None:
        pass


setattr(theirs, "SQLiteSession", Session)  # noqa: B010 - `agents` is ours for the type checker
