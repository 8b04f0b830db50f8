"""The exceptions of selfpager. Every text names the value, the limit and the way out.

`RejectedError` and its children are answers to a wrong request: the same text serves a model (as an error
result) and a person (as an exception), and nothing was changed. The others tell a person about the
machine or the files.
"""

LONGEST = 3000


class PagerError(Exception):
    """Whatever selfpager raises on purpose."""


class RejectedError(PagerError):
    """A rule or a limit says no; nothing was changed. A text that quotes a large value shows its beginning and end."""

    def __init__(self, text: str = "") -> None:
        long = len(text) > LONGEST
        super().__init__(f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}" if long else text)


class NotFoundError(RejectedError):
    """No page, block or call has that name."""


class NoAgentError(NotFoundError):
    """There is no such agent. The text is for whoever may see all agents of the home: it may name them."""


class NeedsApprovalError(RejectedError):
    """A change that a person has to approve first, and why. `Memory.transaction(approved=True)` carries it out."""

    def __init__(self, text: str = "", why: str = "") -> None:
        super().__init__(text)
        self.why = why


class BlockFullError(RejectedError):
    """A core block, or core as a whole, would hold more than its limit."""


class OpenCallsError(RejectedError):
    """Tool calls wait for their results, so nothing else may follow yet."""


class WindowTooSmallError(PagerError):
    """The required parts of the prompt do not fit into the window and cannot be made smaller."""


class InUseError(PagerError):
    """Another process holds this agent's directory."""


class StorageError(PagerError):
    """The disk or the database refused; the last committed state is kept."""


class UnavailableError(StorageError):
    """The home cannot be used now. `reason` says why in a few words that name no place. If `is_refused`, nothing was
    stored; else nobody knows."""

    def __init__(self, text: str, reason: str = "it cannot be reached", *, is_refused: bool = False) -> None:
        super().__init__(text)
        self.reason = reason
        self.is_refused = is_refused


class AgentLostError(StorageError):
    """This process does not own the agent any more, or cannot know. What was acknowledged is stored; open it again."""


class NewerFormatError(StorageError):
    """The database was written by a newer selfpager."""


class OlderFormatError(StorageError):
    """The database cannot be read before it was opened for writing, which brings it up to this format."""


def brief(value: object, limit: int = 100) -> str:
    """Return a value as an error shows it, with "…" at its end if it was cut.

    >>> brief("seat"), brief("a" * 9, 6)
    ("'seat'", "'aaaa…")
    """
    shown = repr(value)
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"
