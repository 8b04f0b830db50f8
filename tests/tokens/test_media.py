"""How many tokens an image or a document is likely to be."""

import base64
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pager.tokens import media
from pager.types import Json


def image(data: bytes) -> Json:
    return {"type": "image", "source": {"type": "base64", "data": base64.b64encode(data).decode()}}


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\x08\x02"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0"


def jpeg(width: int, height: int) -> bytes:
    header = b"\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0" + b"\xff\xdb\x00\x05abc"
    return b"\xff\xd8" + header + b"\xff\xc2\x00\x11\x08" + struct.pack(">HH", height, width) + b"\x03\x01\x11\x00"


def pdf(pages: int) -> Json:
    data = b"%PDF-1.7 /Type /Pages " + b"<< /Type /Page >> <</Type/Page/Parent 1>>"[: pages and None] * (
        (pages + 1) // 2
    )
    return {"type": "document", "source": {"type": "base64", "data": base64.b64encode(data).decode()}}


@pytest.mark.parametrize("make", [png, gif, jpeg])
@pytest.mark.parametrize(
    ("width", "height", "tokens"), [(1000, 750, 1000), (200, 300, 80), (10, 10, 16), (1568, 784, 1639)]
)
def test_an_image_counts_by_its_size_whatever_its_format(make: object, width: int, height: int, tokens: int) -> None:
    assert media.tokens(image(make(width, height))) == tokens  # type: ignore[operator]


def test_a_huge_image_counts_as_the_largest_one() -> None:
    assert media.tokens(image(png(25_760, 12_880))) == media.LARGE_IMAGE_TOKENS
    assert media.tokens(image(png(9_000, 9_000))) == media.LARGE_IMAGE_TOKENS
    assert media.tokens(image(png(2**32 - 1, 1))) == media.LARGE_IMAGE_TOKENS  # who knows how it is shrunk


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image"},
        {"type": "image", "source": None},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "image", "source": {"type": "file", "file_id": "f"}},
        {"type": "image", "source": {"type": "base64", "data": "no base64!"}},
        {"type": "image", "source": {"type": "base64", "data": None}},
        image(b""),
        image(b"RIFF....WEBPVP8 "),
        image(b"\xff\xd8\xff"),
    ],
)
def test_an_image_that_cannot_be_looked_into_counts_as_a_large_one(block: Json) -> None:
    assert media.tokens(block) == media.LARGE_IMAGE_TOKENS


@pytest.mark.parametrize("pages", [2, 10, 100])
def test_a_document_counts_by_its_pages(pages: int) -> None:
    assert media.tokens(pdf(pages)) == pages * media.PAGE_TOKENS


def test_a_document_whose_pages_are_hidden_counts_by_its_bytes() -> None:
    data = base64.b64encode(b"%PDF-1.7" + b"x" * 99_000).decode()
    assert media.tokens({"type": "document", "source": {"type": "base64", "data": data}}) == 5 * media.PAGE_TOKENS
    unseen = {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}}
    assert media.tokens(unseen) == media.UNSEEN_DOCUMENT_PAGES * media.PAGE_TOKENS


@given(
    st.binary(max_size=60),
    st.sampled_from([b"", b"\xff\xd8", b"\xff\xd8\xff\xe0\x00\x00", b"GIF87a", b"\x89PNG\r\n\x1a\n"]),
)
@example(b"\xff\xe0\x00\x00" * 9, b"\xff\xd8")
def test_no_bytes_fail_or_hang(data: bytes, start: bytes) -> None:
    assert 16 <= media.tokens(image(start + data)) <= 2 * media.LARGE_IMAGE_TOKENS
