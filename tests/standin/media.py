"""Images and documents that the API cannot read, refused in its own words. PNG is decoded; of others the ends count."""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from typing import Any

from tests.standin.errors import Rejected

MOST_CHARS = 5 << 20
MOST_PIXELS = 8_000
TYPES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def check_media(at: str, block: dict[str, Any]) -> None:
    """Refuse a block with a file that cannot be read, at any depth."""
    source: dict[str, Any] = block["source"] if block["type"] in {"image", "document"} else {}
    inner = block.get("content") if block["type"] == "tool_result" else source.get("content")
    for place, each in enumerate(inner if isinstance(inner, list) else ()):
        check_media(f"{at}.content.{place}", each)
    if source.get("type") == "base64":
        where = f"{at}.{'image' if block['type'] == 'image' else 'pdf'}.source.base64"
        try:
            data = base64.b64decode(source["data"], validate=True)
        except binascii.Error:
            raise Rejected(f"{where}.data: Invalid base64 data") from None
        if block["type"] == "image":
            _check_image(where, source, data)
        elif not data.startswith(b"%PDF-"):
            raise Rejected(f"{where}.data: The PDF specified was not valid.")


def _check_image(where: str, source: dict[str, Any], data: bytes) -> None:
    if not data:
        raise Rejected(f"{where}: image cannot be empty")
    if (size := len(source["data"])) > MOST_CHARS:
        raise Rejected(f"{where}: image exceeds 5 MB maximum: {size} bytes > {MOST_CHARS} bytes")
    found = next((kind for start, kind in TYPES.items() if data.startswith(start)), None)
    if found is None or not _is_whole(found, data):
        raise Rejected("Could not process image")
    if found != source["media_type"]:
        raise Rejected(f"{where}: The image was specified using the {source['media_type']} media type, but is {found}")
    if found == "image/png" and max(struct.unpack(">II", data[16:24])) > MOST_PIXELS:
        raise Rejected(f"{where}.data: At least one of the image dimensions exceed max allowed size: 8000 pixels")


def _is_whole(kind: str, data: bytes) -> bool:
    ends = {"image/jpeg": b"\xff\xd9", "image/gif": b";"}
    if kind != "image/png":
        return data.endswith(ends.get(kind, b"")) and len(data) > 20
    place, pixels, last = 8, b"", b""
    while place + 12 <= len(data):
        length, last = int.from_bytes(data[place : place + 4], "big"), data[place + 4 : place + 8]
        body = data[place + 8 : place + 8 + length]
        if zlib.crc32(last + body).to_bytes(4, "big") != data[place + 8 + length : place + 12 + length]:
            return False
        pixels += body if last == b"IDAT" else b""
        place += 12 + length
    try:
        width, height, depth, color = struct.unpack(">IIBB", data[16:26])
        rows = len(zlib.decompress(pixels))
    except (struct.error, zlib.error):
        return False
    return last == b"IEND" and 0 < rows == (1 + (width * depth * CHANNELS.get(color, 1) + 7) // 8) * height
