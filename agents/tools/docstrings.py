"""Docstrings of tools: a function's description and that of its arguments. Only this file knows docstring_parser."""

from __future__ import annotations

from dataclasses import dataclass

from docstring_parser import parse


@dataclass(frozen=True, slots=True)
class Doc:
    """What a docstring says."""

    description: str
    arguments: dict[str, str]


def read_docstring(text: str) -> Doc:
    """Return the description without the sections, and a line for each argument that is described."""
    parsed = parse(text)
    long = (parsed.long_description or "").strip()
    description = "\n".join(filter(None, ((parsed.short_description or "").strip(), long)))
    arguments = {item.arg_name: " ".join((item.description or "").split()) for item in parsed.params}
    return Doc(description, {name: text for name, text in arguments.items() if text})
