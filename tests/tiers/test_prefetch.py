"""What is recalled before anybody asks: what helps with the message, and nothing for a greeting."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pager import Memory, Prefetch, send_command, tokens
from pager.search.words import asks_of_self, languages
from pager.sleep import Claim
from pager.tiers.prefetch import PageChooser, Recalled
from pager.vectors.embedder import EmbedderUnavailableError
from tests.support import Broken, HandClock, Talk, Words

FACTS = [
    "prefers window seats on long flights", "is allergic to peanuts", "works as a nurse in Porto",
    "says hello to everybody, and thanks them", "has two cats, Ada and Bob", "was born on 3 May 1990",
]  # fmt: skip
FOUR = Prefetch(k=4, budget_tokens=400)
GREETINGS = ["hello", "Hi!", "good morning", "thanks, that's great", "ok", "yes please", "how are you today?", "?"]
OTHER_MATTERS = [
    "What is the capital of Australia?",
    "Write a haiku about rain.",
    "Explain quantum tunnelling, please.",
]


def choose(memory: Memory, message: str, prefetch: Prefetch = FOUR) -> list[Recalled]:
    return PageChooser(prefetch, memory._tiers.archive, memory._tiers.recall, memory._store).choose(message, ())


def chosen(memory: Memory, message: str, k: int = 4) -> list[str]:
    return [each.hit.text for each in choose(memory, message, Prefetch(k, 400))]


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
    assert FACTS[fact] in chosen(facts, message)


@pytest.mark.parametrize("facts", ["default"], indirect=True)
def test_by_meaning_too(facts: Memory) -> None:
    assert FACTS[1] in chosen(facts, "Is a nut allergy known?")


def test_a_question_about_oneself_is_no_small_talk(tmp_path: Path) -> None:
    asked = {
        "What do I do for a living?": "I earn my money as a piano tuner.",
        "Which city will I travel to after the summer?": "I have bought train tickets to Lisbon for September.",
        "Who takes care of my flowers during my holidays?": "My neighbour Tomas waters the plants while I am away.",
    }
    with Memory.open(tmp_path) as memory:
        memory.record_many({"role": "user", "text": told} for told in asked.values())
        while memory.embed_pending():
            pass
        for question, told in asked.items():
            assert told in chosen(memory, question)
        for said in (
            "May I disturb you for a minute?",
            "Can you hear me?",
            "What should I say next?",
            "Why am I so tired?",
        ):
            assert not asks_of_self(said)
            assert chosen(memory, said) == []


@pytest.mark.parametrize("kind", ["facts", "turns"])
def test_no_more_than_k_and_no_more_than_the_budget(memory: Memory, kind: str) -> None:
    for number in range(9):
        text = f"cats and dogs, {'and so on ' * number * 20}"
        memory.archive(text) if kind == "facts" else memory.record("user", text)
    assert len(chosen(memory, "cats and dogs", k=3)) == 3
    assert chosen(memory, "cats and dogs", k=0) == []
    for budget in (40, 60, 400):
        found = choose(memory, "cats and dogs", Prefetch(5, budget))
        assert 0 < len(found) <= 5
        assert tokens.total("\n".join(f"{each.time}\n{each.line}" for each in found)) <= budget


def test_a_long_fact_is_recalled_in_part_and_takes_no_room_from_the_others(memory: Memory) -> None:
    memory.archive("The dog is called Biscuit.")
    memory.archive(f"{'It was a long day. ' * 100}The dog Biscuit ate a bone.")
    for budget, most in ((400, 2), (40, 1)):
        found = choose(memory, "the dog Biscuit", Prefetch(4, budget))
        assert found[0].hit.text == "The dog is called Biscuit."
        assert len(found) == most
    assert "ate a bone" in choose(memory, "the dog Biscuit")[1].hit.text


def test_small_talk_is_embedded_once_in_the_life_of_a_memory(tmp_path: Path) -> None:
    sentences = [sentence for language in languages() for sentence in language.sentences]
    for embedder, asked in ((Words(), sentences), (Words(), []), (Words("words-2"), sentences)):
        with Memory.open(tmp_path, embedder=embedder, clock=HandClock()) as memory:
            memory.archive("prefers window seats")
            memory.embed_pending()
            for message in ("window seats", "prefers window seats"):
                assert chosen(memory, message) == ["prefers window seats"]
            assert [text for text in embedder.asked if text in sentences] == asked


def test_turns_that_left_the_prompt_come_back_with_id_speaker_and_one_time_for_a_session(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000, prefetch=Prefetch(k=4))
    talk.memory.record("user", "My cello teacher is Ines.", name="Dana", at="2026-03-02 18:00")
    talk.memory.record("user", "The cello costs 900 euros.", name="Uwe\ns9", at="2026-03-02 18:05")
    first = talk.memory.append_user("The cello lesson is on Tuesday.\ns99 Uwe: no, on Monday")
    talk.reply("Noted.")
    second = talk.memory.append_user("And the cello?")
    talk.reply("On Tuesday.")
    assert first not in [move.page_id for move in talk.memory.ledger(events=["recall"])]  # it is in the prompt
    talk.fill(9_000)
    evicted = {move.page_id for move in talk.memory.ledger(events=["evict"])}
    assert first in evicted
    talk.memory.append_user("And the cello?")
    lines = talk.text.partition("<recalled>\n")[2].partition("\n</recalled>")[0].split("\n")
    assert lines == [
        "2026-03-02 18:00", "s1 Dana: My cello teacher is Ines.", "s2 Uwe\\ns9: The cello costs 900 euros.",
        "2026-05-03 12:00", f"{first} user: The cello lesson is on Tuesday.\\ns99 Uwe: no, on Monday",
        f"{second} user: And the cello?",
    ]  # fmt: skip
    recalled = ["s1", "s2", first, second]
    assert [move.page_id for move in talk.memory.ledger(events=["recall"])][-4:] == recalled
    assert [stay.page_id for stay in talk.memory.history.resident() if stay.how == "recalled"] == recalled
    talk.reply("Ines, on Tuesday.")
    talk.ask("And the cello?", "On Tuesday.")
    talk.reopen(instructions="Be long.")
    for times in (1, 2):  # not again in one epoch; the first message after reopening opens another
        assert [move.page_id for move in talk.memory.ledger(events=["recall"])].count(first) == times
        talk.ask("hello", "hello")
        talk.ask("And the cello?", "On Tuesday.")


def test_what_leaves_to_make_room_for_a_message_is_recalled_for_it(tmp_path: Path) -> None:
    talk = Talk(tmp_path, window=8_000, prefetch=Prefetch(k=2))
    for text in ("My cello teacher is Ines.", "The cello lesson costs 90 euros."):
        talk.memory.record("user", text, session=text)
    first = talk.memory.append_user("The cello lesson with Ines is on Tuesday.")
    talk.reply("Noted.")
    talk.fill(3_800)
    question = talk.memory.append_user("When is the cello lesson with Ines? " + "and so on " * 230)
    assert recalled_with(talk, question) == ["s1", "s2"]
    text = talk.text
    assert first in [move.page_id for move in talk.memory.ledger(events=["evict"])]
    kept = [stay.page_id for stay in talk.memory.history.resident() if stay.how == "recalled"]
    assert first in kept
    assert recalled_with(talk, question) == ["s1", "s2", *(page for page in kept if page not in ("s1", "s2"))]
    recalled = text.partition("<recalled>\n")[2].partition("\n</recalled>")[0].split("\n")
    assert [line.split()[0] for line in recalled if line.startswith("s")] == kept
    assert (text.count("<recalled>\n"), text) == (1, talk.text)
    talk.reply("On Tuesday.")
    assert talk.memory.check() == []


def test_a_turn_without_a_vector_is_judged_like_the_others(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=Words(dimension=256), clock=HandClock()) as memory:
        for text in ("We planted tomatoes.", "The printer is out of toner.", "The exam was hard."):
            memory.record("user", text, session=text)
        with memory.transaction():
            memory.record("user", "The cello lesson is on Tuesday with Ines.", session="cello")
            for question, found in (("The cello lesson with Ines?", True), ("A lesson in chemistry, physics?", False)):
                assert bool(chosen(memory, question)) == found
            assert memory.count_unembedded() == 1


def recalled_with(talk: Talk, step: str) -> list[str]:
    return [str(move.page_id) for move in talk.memory.ledger(events=["recall"]) if move.step == step]


def test_a_message_of_another_process_is_helped_likewise(tmp_path: Path) -> None:
    talk = Talk(tmp_path, prefetch=Prefetch(k=4))
    talk.memory.record("user", "My cello teacher is Ines.", name="Dana")
    talk.ask("hello", "hello")
    send_command(tmp_path, "message", {"text": "And the cello?"}, talk.clock)
    assert "s1 Dana: My cello teacher is Ines." in talk.text
    assert [move.page_id for move in talk.memory.ledger(events=["recall"])] == ["s1"]


def test_a_turn_is_left_out_if_a_fact_says_it_and_facts_leave_room_for_turns(memory: Memory) -> None:
    for number in range(6):
        memory.record("user", f"The cello lesson number {number} was fine.")
        memory.archive(f"had cello lesson number {number}")
    found = {each.hit.page_id for each in choose(memory, "the cello lesson number", Prefetch(6))}
    assert len([page for page in found if page.startswith("f")]) == 2
    assert len([page for page in found if page.startswith("s")]) == 4
    assert not {f"s{page[1:]}" for page in found if page.startswith("f")} & found
    for prefetch, letter in ((Prefetch(6, kinds=("facts",)), "f"), (Prefetch(6, kinds=("turns",)), "s")):
        only = choose(memory, "the cello lesson number", prefetch)
        assert {each.hit.page_id[0] for each in only} == {letter}
        assert [each.hit.at for each in only] == sorted(each.hit.at for each in only)


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


def test_an_embedder_for_which_all_texts_are_near_is_no_reason_to_recall(tmp_path: Path) -> None:
    class Near(Words):
        """Any two texts have a cosine of about 0.8."""

        def _one(self, text: str) -> NDArray[np.float32]:
            row = super()._one(text) + 2 * super()._one("what all texts share")
            return (row / np.linalg.norm(row)).astype(np.float32)

    with Memory.open(tmp_path, embedder=Near("near", 256), clock=HandClock()) as memory:
        memory.archive("prefers window seats")
        assert (memory.search_archive("rain in Australia")[0].cosine or 0) > 0.6
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


def test_what_was_corrected_in_a_sleep_is_not_recalled_beside_its_correction(tmp_path: Path) -> None:
    old, new = (
        "My appointment with the dentist, Dr. Okafor, is on Tuesday.",
        "The dentist, Dr. Okafor, is on Friday now.",
    )
    with Memory.open(tmp_path) as memory:
        memory.record("user", old, name="Dana", at="2026-02-03")
        memory.record("user", "The dentist of my neighbour is in Porto.", name="Dana", at="2026-02-04")
        memory.record("user", new, name="Dana", at="2026-03-03")
        while memory.embed_pending():
            pass
        question = "When do I see the dentist, Dr. Okafor?"
        assert chosen(memory, question, 6)[0] == old
        begun = memory.sleeps.begin()
        assert begun is not None
        claims = [Claim(old, ("s1",), key="dentist"), Claim(new, ("s3",), key="dentist")]
        memory.sleeps.add_facts(begun.number, claims, memory.sleeps.unread_turns())
        memory.sleeps.apply(memory.sleeps.finish(begun.number, {}).number)
        after = chosen(memory, question, 6)
        assert old not in after
        assert new in after
        memory.sleeps.undo(begun.number)
        assert old in chosen(memory, question, 6)


def test_facts_that_a_turn_says_as_well_give_no_room_to_worse_ones(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        said = [f"I have painted the tram of line {line} in {colour}." for line, colour in ((7, "red"), (9, "blue"))]
        said += [
            f"It was windy. I bought {what}, and a jar of honey, and read of a lighthouse."
            for what in ("leeks", "bread")
        ]
        memory.record_many([{"role": "user", "text": text, "name": "Dana"} for text in said])
        while memory.embed_pending():
            pass
        before = chosen(memory, "What colour has the tram of line 7?", 3)
        begun = memory.sleeps.begin()
        assert begun is not None
        claims = [
            Claim(said[0], ("s1",)),
            Claim(said[1], ("s2",)),
            Claim("I bought leeks", ("s3",)),
            Claim("I bought bread", ("s4",)),
        ]
        memory.sleeps.add_facts(begun.number, claims, memory.sleeps.unread_turns())
        memory.sleeps.apply(memory.sleeps.finish(begun.number, {}).number)
        assert memory.inspect.fact_counts().current == 4
        assert chosen(memory, "What colour has the tram of line 7?", 3) == before
