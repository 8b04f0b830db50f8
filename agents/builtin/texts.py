"""The text in the bytes of a file: its encoding, told or guessed, and what is no text at all."""

import codecs

from agents.tools.functions import ToolCallError

MAX_TEXT_BYTES = 32 << 20
DOCUMENTS = (".pdf", ".docx", ".pptx", ".xlsx")  # read with the extra `documents`
PAGES = (".html", ".htm", ".xhtml")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "UTF-8 with a byte order mark"),
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)  # UTF-32's mark begins with that of UTF-16
_CONTROL = bytes({*range(0x20)} - {*b"\t\n\v\f\r\x1b\b"}) + b"\x7f"
_SAMPLE = 8 << 10


def decode(raw: bytes, path: str) -> tuple[str, str]:
    """Return the text of a file, and how it is encoded if that is not plain UTF-8. Raise ToolCallError for a binary."""
    for mark, codec, name in _MARKS:
        if raw.startswith(mark):
            return raw.decode(codec, "replace"), name
    sample = raw[:_SAMPLE]
    strange = len(sample) - len(sample.translate(None, _CONTROL))
    if b"\0" in sample or strange > len(sample) // 10:
        begins = f"{len(raw):,} bytes, the first {raw[:16].hex(' ')}"
        raise ToolCallError(f"{path} is binary ({begins}); only text is read.")
    try:
        return raw.decode("utf-8"), ""
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace"), "not UTF-8, read as Windows-1252, which may be wrong"


def as_utf8(raw: bytes) -> bytes | None:
    """Return the text of a file as UTF-8 to search in; None for a binary."""
    try:
        text, encoding = decode(raw, "")
    except ToolCallError:
        return None
    return (text.encode("utf-8", "replace") if encoding else raw).replace(b"\r\n", b"\n")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their ends. Only \\n and \\r\\n end lines, as editors count them."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines
