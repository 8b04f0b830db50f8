"""One image or document that cannot be read ends no conversation: not one that comes in, nor one that only the provider
cannot read."""

import json
import struct
from collections.abc import Callable
from typing import Any

import pytest

from agents.events import StreamLost
from agents.models.model import ModelRefusedError
from agents.testing import http_error
from pager import RejectedError
from pager.types import Json
from tests.standin import Reply, call
from tests.support.messages import crc, image, image_of, kinds, png
from tests.support.stage import Stage, results

GOOD = png(20, 10)
# Whole by its ends, so that only who decodes it notices.
SPOILED = GOOD[:50] + bytes(byte ^ 0x55 for byte in GOOD[50:55]) + GOOD[55:]


def header(width: int, height: int) -> bytes:
    """A PNG that claims this size."""
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return GOOD[:12] + chunk + crc(chunk) + GOOD[33:]


def pdf_of(data: bytes) -> Json:
    return {**image_of(data, "application/pdf"), "type": "document"}


def raw(data: str, media_type: str = "image/png") -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


UNUSABLE: list[tuple[Json, str]] = [
    (image_of(b"not an image at all"), "it is of no type that is known here by its bytes, not image/png"),
    (image_of(b"<html>404 not found</html>", "image/jpeg"), "it is of no type that is known here by its bytes"),
    (image_of(GOOD, "image/jpeg"), "it is image/png by its bytes, not image/jpeg"),
    (image_of(b"%PDF-1.7 ...", "image/png"), "it is application/pdf by its bytes, not image/png"),
    (image_of(GOOD[:20]), "it is cut off"),
    (image_of(GOOD[:-20]), "it is cut off"),
    (image_of(b"GIF89a\x01", "image/gif"), "it is cut off before its size"),
    (image_of(b"\xff\xd8\xff\xe0", "image/jpeg"), "it is cut off before its size"),
    (image_of(header(0, 5)), "it has 0 x 5 pixels; the limit is 8000 x 8000"),
    (image_of(header(8_001, 5)), "it has 8001 x 5 pixels; the limit is 8000 x 8000"),
    (image_of(GOOD + bytes(4 << 20)), "characters in base64; the limit is 5242880"),
    (image_of(GOOD, "image/bmp"), "has the media_type 'image/bmp'; it may be image/jpeg, image/png"),
    (raw(""), "it is empty"),
    (raw("!!!!"), "it is no base64"),
    (raw("iVBORw0KGgo"), "it is no base64"),
    (pdf_of(GOOD), "it is image/png by its bytes, not application/pdf"),
    (pdf_of(b"PK\x03\x04"), "it is of no type that is known here by its bytes, not application/pdf"),
]  # fmt: skip


@pytest.mark.parametrize(("block", "why"), UNUSABLE, ids=range(len(UNUSABLE)))
def test_what_no_model_can_read_is_refused_of_a_person_and_described_in_a_result(
    stage: Stage, block: Json, why: str
) -> None:
    def look() -> list[Any]:
        """Look."""
        return [{"type": "text", "text": "here it is"}, block]

    stage.says(call("look"), "I see.", "Yes.")
    agent = stage.agent(look)
    with pytest.raises(RejectedError, match=r"block 1 of the message") as refused:
        agent.memory.append_user([{"type": "text", "text": "look"}, block])
    assert why in str(refused.value)
    assert agent.turn("What is there?").text == "I see."
    ((text, is_error),) = results(stage.last)
    assert (text.startswith("here it is("), why in text, is_error) == (True, True, False)
    assert agent.turn("Really?").text == "Yes."
    stage.assert_over()


GIF = b"GIF89a\x05\0\x05\0\0\0\0" + bytes(20) + b";"


@pytest.mark.parametrize(
    "block", [image(20), image(8_000, 1), image_of(GIF, "image/gif"), pdf_of(b"%PDF-1.7\n<</Type /Page>>")]
)
def test_what_can_be_read_is_sent_as_it_came(stage: Stage, block: Json) -> None:
    stage.says("I see.")
    agent = stage.agent()
    agent.memory.append_user([block])
    assert [event for event in agent.resume_stream() if isinstance(event, StreamLost)] == []
    sent = {name: value for name, value in stage.last[0].items() if name != "cache_control"}
    assert sent == block


def in_a_message(block: Json) -> Callable[[Stage], Any]:
    def said(stage: Stage) -> Any:
        agent = stage.agent()
        agent.memory.append_user([{"type": "text", "text": "look"}, block])
        return agent

    return said


def in_a_result(block: Json) -> Callable[[Stage], Any]:
    def look() -> list[Any]:
        """Look."""
        return [{"type": "text", "text": "here it is"}, block]

    def said(stage: Stage) -> Any:
        agent = stage.agent(look)
        agent.memory.append_user("look")
        stage.service.unsaid.appendleft(Reply(call("look")))
        return agent

    return said


def refused(stage: Stage) -> int:
    """How often the provider refused a request, or to count one, since this was asked last."""
    texts = list(stage.service.rejected)
    stage.service.rejected.clear()
    assert set(texts) <= {"Could not process image"}
    return len(texts)


@pytest.mark.parametrize(("comes", "page"), [(in_a_message, "x2"), (in_a_result, "x3")])
def test_what_only_the_provider_cannot_read_is_left_out_for_good(
    stage: Stage, comes: Callable[[Json], Callable[[Stage], Any]], page: str
) -> None:
    agent = comes(image_of(SPOILED))(stage)
    stage.says("I cannot see it.", call("page_in", {"page_id": page}), "Still not.")
    events = list(agent.resume_stream())
    (drop,) = agent.memory.ledger(events=["drop"])
    assert (drop.page_id, drop.reason) == (page, "the provider refused the image")
    why = "the provider refused the request (400): Could not process image; it is sent again without"
    assert StreamLost(f"{why} {page}", 0.0) in events
    assert f"(image {page} is not shown: the provider of the model refused it.)" in json.dumps(stage.last)
    assert refused(stage) > 0
    agent.close()
    agent = stage.agent()  # it stays so over restarts, and the model cannot bring it back
    assert agent.memory.page_in(page).media == ()
    assert agent.turn("Look at it again.").text == "Still not."
    assert "image" not in json.dumps(stage.requests[-1]["messages"]).replace("(image x", "")
    assert (refused(stage), agent.memory.check()) == (0, [])


def test_the_error_says_which_one_else_the_newest_is_tried_first(stage: Stage) -> None:
    agent = stage.agent()
    agent.memory.append_user([image(20), image_of(SPOILED), image(30), image(40)])
    stage.says("One is left.")
    assert len([event for event in agent.resume_stream() if isinstance(event, StreamLost)]) == 3
    assert refused(stage) > 0
    assert kinds(stage.requests[-1]["messages"][1:], "user") == ["image", "text", "text", "text"]
    agent.memory.append_user([image(20), image(30)])
    agent.memory.request()
    named = "messages.3.content.0.image.source.base64.data: At least one of the image dimensions exceed ..."
    first, second, third = (agent.memory.report_refused_media(named) for _ in range(3))
    assert [first, second, third] == ["x6", "x7", "x1"]
    assert agent.memory.report_refused_media(named) is None


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "Could not process media"),
        (400, "Invalid base64 image_url."),
        (404, "No endpoints found that support image input"),
        (413, "Request exceeds the maximum size"),
        (415, "Unsupported image format"),
        (422, "messages[1]: unknown variant `image_url`, expected `text` at line 1 column 90"),
        (500, "cannot identify image file <_io.BytesIO object>"),
    ],
)
def test_an_image_is_left_out_however_the_provider_words_its_refusal(stage: Stage, status: int, text: str) -> None:
    stage.says(http_error(status, text), "I cannot see it.", "Yes.", http_error(status, text))
    agent = stage.agent()
    agent.memory.append_user([image(20)])
    agent.resume()
    agent.turn("Are you there?")
    assert "image" not in kinds(stage.requests[-1]["messages"], "user")
    with pytest.raises(ModelRefusedError):  # as it is: there is no image any more
        agent.turn("And now?")
    stage.assert_over()


def test_a_refusal_is_not_repeated_when_there_is_nothing_to_leave_out(stage: Stage) -> None:
    stage.says(http_error(400, "Could not process image"), http_error(413, "Request exceeds the maximum size"))
    agent = stage.agent()
    for _ in range(2):
        with pytest.raises(ModelRefusedError):
            agent.turn("hello")
    stage.assert_over()


def test_an_answered_request_is_made_again_with_the_image_that_was_refused_later(stage: Stage) -> None:
    stage.says("I see.", http_error(400, "this model takes no images"), "Blind.")
    agent = stage.agent()
    agent.memory.append_user([image(20)])
    agent.resume()
    before = stage.requests[-1]
    agent.turn("And now?")
    assert "image" not in kinds(stage.requests[-1]["messages"], "user")
    assert agent.memory.history.rebuild("s2")["messages"] == before["messages"]
