"""What a docstring says about a function and its arguments. The only file that knows docstring_parser."""

from __future__ import annotations

from dataclasses import dataclass

from docstring_parser import parse


@dataclass(frozen=True, slots=True)
class Doc:
    description: str
    arguments: dict[str, str]


def read_docstring(text: str) -> Doc:
    """The description without the sections, and a line for each argument that is described."""
    parsed = parse(text)
    long = (parsed.long_description or "").strip()
    description = "\n".join(filter(None, ((parsed.short_description or "").strip(), long)))
    arguments = {item.arg_name: " ".join((item.description or "").split()) for item in parsed.params}
    return Doc(description, {name: told for name, told in arguments.items() if told})
