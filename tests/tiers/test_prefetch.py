"""What is recalled before anybody asks: what helps with the message, and nothing for a greeting."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pager import Memory, Prefetch, tokens
from pager.tiers.prefetch import FactChooser, unrelated_sentences
from pager.vectors.embedder import EmbedderUnavailableError
from tests.support import Broken, HandClock, Talk, Words

FACTS = [
    "prefers window seats on long flights", "is allergic to peanuts", "works as a nurse in Porto",
    "says hello to everybody, and thanks them", "has two cats, Ada and Bob", "was born on 3 May 1990",
]  # fmt: skip
GREETINGS = ["hello", "Hi!", "good morning", "thanks, that's great", "ok", "yes please", "how are you today?", "?"]
OTHER_MATTERS = [
    "What is the capital of Australia?",
    "Write a haiku about rain.",
    "Explain quantum tunnelling, please.",
]


def chooser(memory: Memory, prefetch: Prefetch) -> FactChooser:
    return FactChooser(prefetch, memory._tiers.archive, memory._store)


def chosen(memory: Memory, message: str, k: int = 4) -> list[str]:
    return [each.hit.text for each in chooser(memory, Prefetch(k, 400)).choose(message)]


@pytest.fixture(params=["default", None], ids=["default", "words"])
def facts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path, embedder=request.param) as memory:
        for fact in FACTS:
            memory.archive(fact)
        yield memory


def test_a_word_with_its_accents_helps_as_well(memory: Memory) -> None:
    memory.archive("Αθήνα, Ёлка")
    memory.archive("nothing of it")
    assert chosen(memory, "Αθήνα") == chosen(memory, "елка") == ["Αθήνα, Ёлка"]


@pytest.mark.slow
@pytest.mark.parametrize("message", [*GREETINGS, *OTHER_MATTERS])
def test_a_greeting_or_another_matter_recalls_nothing(facts: Memory, message: str) -> None:
    assert chosen(facts, message) == []


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        ("Good morning! How are my cats, Ada and Bob?", 4),
        ("Is there any window left on the flight?", 0),
        ("peanuts?", 1),
    ],
)
def test_what_helps_is_recalled(facts: Memory, message: str, fact: int) -> None:
    assert chosen(facts, message)[:1] == [FACTS[fact]]


@pytest.mark.parametrize("facts", ["default"], indirect=True)
def test_by_meaning_too(facts: Memory) -> None:
    assert chosen(facts, "Is a nut allergy known?") == [FACTS[1]]


def test_no_more_than_k_and_no_more_than_the_budget(memory: Memory) -> None:
    for number in range(9):
        memory.archive(f"cats and dogs, {'and so on ' * number}")
    assert len(chosen(memory, "cats and dogs", k=3)) == 3
    assert chosen(memory, "cats and dogs", k=0) == []
    small = chooser(memory, Prefetch(5, 40)).choose("cats and dogs")
    assert 0 < len(small) < 5


def test_a_long_fact_is_recalled_in_part_and_takes_no_room_from_the_others(memory: Memory) -> None:
    memory.archive("The dog is called Biscuit.")
    memory.archive(f"{'It was a long day. ' * 100}The dog Biscuit ate a bone.")
    for budget, most in ((400, 2), (60, 1)):
        hits = chooser(memory, Prefetch(4, budget)).choose("the dog Biscuit")
        assert len(hits) == most
        assert sum(tokens.total(each.line) + 1 for each in hits) <= budget
    assert hits[0].hit.text == "The dog is called Biscuit."
    piece = chooser(memory, Prefetch(4, 400)).choose("the dog Biscuit")[1]
    assert "ate a bone" in piece.hit.text


def test_chance_is_asked_of_the_embedder_once(tmp_path: Path) -> None:
    embedder = Words()
    with Memory.open(tmp_path, embedder=embedder, clock=HandClock()) as memory:
        memory.archive("prefers window seats")
        fact_chooser = chooser(memory, Prefetch(4))
        for message in ("window seats", "prefers window seats"):
            assert [each.hit.text for each in fact_chooser.choose(message)] == ["prefers window seats"]
        assert [text for text in embedder.asked if text in unrelated_sentences("")] == [*unrelated_sentences("")]


def test_what_was_recalled_for_a_message_stays_until_an_epoch_opens_behind_it(tmp_path: Path) -> None:
    talk = Talk(tmp_path, prefetch=Prefetch(k=1))
    for fact in FACTS:
        talk.memory.archive(fact)
    talk.ask("hello", "hello")
    talk.memory.append_user("How are my cats, Ada and Bob?")
    for instructions, recalled in (("Be long.", ["f5"]), ("Be brief.", [])):
        talk.reopen(instructions=instructions)
        assert ("Ada and Bob</" in talk.text or "Ada and Bob\n</" in talk.text) == bool(recalled)
        assert [stay.page_id for stay in talk.memory.history.resident() if stay.how == "recalled"] == recalled
        talk.reply("They are well.")
        talk.memory.append_user("good")


SCRIPTS = {
    "привет": (
        "Где любит сидеть Дана?",
        "Дана любит сидеть за окном.",
        "Собаку зовут Бисквит.",
        "Мама живёт в Казани.",
    ),
    "你好": ("达娜喜欢靠窗还是靠走道的座位?", "达娜喜欢靠窗的座位", "狗的名字叫饼干", "假期从五月开始", "妈妈住在广州"),
    "こんにちは": ("ダナは窓側の席が好きですか", "ダナは窓側の席が好き", "犬の名前はビスケット", "休暇は五月に始まる"),
    "مرحبا": ("أين تحب دانا الجلوس؟", "دانا تحب الجلوس بجانب النافذة", "اسم الكلب بسكويت", "تبدأ العطلة في مايو"),
}


@pytest.mark.parametrize("greeting", SCRIPTS)
def test_a_greeting_of_any_script_recalls_nothing_and_a_question_does(tmp_path: Path, greeting: str) -> None:
    question, answer, *others = SCRIPTS[greeting]
    with Memory.open(tmp_path) as memory:
        for fact in (answer, *others):
            memory.archive(fact)
        assert chosen(memory, greeting) == []
        assert chosen(memory, question)[:1] == [answer]


def test_unrelated_sentences_are_of_the_script_of_most_letters() -> None:
    latin = unrelated_sentences("")
    assert latin == unrelated_sentences("42!") == unrelated_sentences("What is та called?")
    chinese, japanese = unrelated_sentences("今日"), unrelated_sentences("今日は")
    assert "鲸鱼呼吸空气。" in chinese
    assert "クジラは空気を吸う。" in japanese


def test_an_embedder_for_which_all_texts_are_near_is_no_reason_to_recall(tmp_path: Path) -> None:
    class Near(Words):
        """Any two texts have a cosine of about 0.8."""

        def _one(self, text: str) -> NDArray[np.float32]:
            row = super()._one(text) + 2 * super()._one("what all texts share")
            return (row / np.linalg.norm(row)).astype(np.float32)

    with Memory.open(tmp_path, embedder=Near("near", 256), clock=HandClock()) as memory:
        memory.archive("prefers window seats")
        assert memory.search_archive("rain in Australia")[0].parts["meaning"] > 0.6
        assert chosen(memory, "rain in Australia") == []
        assert chosen(memory, "window seats") == ["prefers window seats"]


def test_an_embedder_that_fails_leaves_the_words(tmp_path: Path) -> None:
    class FailsLater(Words):
        def embed(self, texts):  # type: ignore[no-untyped-def]
            if len(texts) > 1:
                raise EmbedderUnavailableError("gone")
            return super().embed(texts)

    for embedder in (Broken(), FailsLater()):
        with Memory.open(tmp_path / embedder.fingerprint, embedder=embedder, clock=HandClock()) as memory:
            memory.archive("prefers window seats")
            assert chosen(memory, "window seats") == ["prefers window seats"]
            assert chosen(memory, "peanuts") == []
