"""Look into images and documents: how many tokens they are likely to be, and if a model can read them. Pure.

Images count by their size (a token for about 750 pixels), documents by their pages. An image whose size cannot be read
counts as a large one. The counter's ratio for media corrects the estimates.
"""

import base64
import binascii
import re
import struct
from contextlib import suppress
from typing import cast

from pager.types import Json

PIXELS_PER_TOKEN = 750
LARGE_IMAGE_TOKENS = 4784  # the most that any model so far makes of one image
PAGE_TOKENS = 2500
BYTES_PER_HIDDEN_PAGE = 20_000
UNSEEN_DOCUMENT_PAGES = 2  # of one that is named by its address or file id
# Limits of the Messages API. One image or document that it refuses would stand in every later request.
LARGEST_SIDE = 8000  # pixels
LARGEST = {"image": 5 << 20, "document": 32 << 20}  # characters in base64
_BEGINNINGS = (  # of the bytes of each type
    ("image/png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", re.compile(rb"\xff\xd8\xff")),
    ("image/gif", re.compile(rb"GIF8[79]a")),
    ("image/webp", re.compile(rb"RIFF.{4}WEBP", re.DOTALL)),
    ("application/pdf", re.compile(rb"%PDF-")),
)
_PDF_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def tokens(block: Json) -> int:
    """Return the estimated tokens of an image or a document block."""
    source, data = cast(Json, block.get("source") or {}), b""
    if source.get("type") == "base64":
        with suppress(ValueError):
            data = base64.b64decode(str(source.get("data", "")))
    if block.get("type") == "image":
        width, height = _dimensions(data) or (LARGE_IMAGE_TOKENS, PIXELS_PER_TOKEN)
        return max(16, min(LARGE_IMAGE_TOKENS, width * height // PIXELS_PER_TOKEN))
    if not data:
        return UNSEEN_DOCUMENT_PAGES * PAGE_TOKENS
    pages = len(_PDF_PAGE.findall(data)) or 1 + len(data) // BYTES_PER_HIDDEN_PAGE
    return pages * PAGE_TOKENS


def defect(kind: str, media_type: str, data: str) -> str:
    """Return why no model can read an image or a document (`kind`) in base64; an empty text if nothing is found."""
    if len(data) > LARGEST[kind]:
        return f"has {len(data)} characters in base64; the limit is {LARGEST[kind]}"
    try:
        raw = binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        return "is no base64"
    if not raw:
        return "is empty"
    found = next((name for name, begins in _BEGINNINGS if begins.match(raw)), "of no type that is known here")
    if found != media_type:
        return f"is {found} by its bytes, not {media_type}"
    if found == "image/png" and not (b"IDAT" in raw and b"IEND" in raw[-64:]):
        return "is cut off"
    size = _dimensions(raw)
    if size is None and found in ("image/png", "image/jpeg", "image/gif"):
        return "is cut off before its size"
    if size is not None and not 0 < min(size) <= max(size) <= LARGEST_SIDE:
        return f"has {size[0]} x {size[1]} pixels; the limit is {LARGEST_SIDE} x {LARGEST_SIDE}"
    return ""


def _dimensions(data: bytes) -> tuple[int, int] | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return struct.unpack(">II", data[16:24])
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        return struct.unpack("<HH", data[6:10])
    place = 2 if data.startswith(b"\xff\xd8") else len(data)  # JPEG has its size in a frame
    while place + 9 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack(">HH", data[place + 5 : place + 9])
            return width, height
        place += 2 + int(struct.unpack(">H", data[place + 2 : place + 4])[0])
    return None
