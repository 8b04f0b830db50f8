"""The tool that answers too much. For every side's interpreter: it needs nothing but the standard library."""

TOOL_MB = 10


def read_everything() -> str:
    """Reads everything there is."""
    return "one line of a long log, with a number 123456\n" * (TOOL_MB * 1_000_000 // 45)
