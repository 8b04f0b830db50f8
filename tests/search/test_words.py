"""Words of texts and questions in any script, and two rankings made one."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pager.search.words import MOST_WORDS, count_telling, excerpt, folded, language_of, languages, telling_words, words


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("STRASSE", "Straße"),
        ("ﬁne", "fine"),
        ("\uff21\uff22\uff23\uff11", "abc1"),
        ("ｶﾞ", "ガ"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("É", "e\u0301"),
        ("İstanbul", "istanbul"),
        ("\u0131\u015f\u0131kl\u0131", "isikli"),
        ("Łódź Øresund Đà Nẵng Cœur Æsir", "lodz oresund da nang coeur aesir"),
        ("mė\u0303nuo g\u0303uarani", "menuo guarani"),
        ("ΟΔΥΣΣΕΎΣ Αθήνα ᾳδης", "οδυσσευς αθηνα αδης"),
        ("Ёлка", "елка"),
        ("שָׁלוֹם", "שלום"),
        ("مُحَمَّد", "محمد"),
        ("葛\U000e0100城", "葛城"),
    ],
)
def test_letters_that_mean_the_same_are_folded_into_one(text: str, other: str) -> None:
    assert folded(text) == folded(other)


def test_scripts_without_spaces_come_in_pieces_and_others_as_they_are() -> None:
    assert folded("東京都 is Tokyo").split() == ["東", "京", "都", "東京", "京都", "is", "tokyo"]
    assert folded("猫").split() == ["猫"]
    assert "서울" in folded("서울에서").split()
    assert set(folded("สวัสดี").split()) >= {"สว", "วส"}  # without its vowel signs
    assert folded("год 2024, öl") == "год 2024, ol"


@pytest.mark.parametrize(("word", "other"), [("が", "か"), ("ぱ", "は"), ("कि", "कु"), ("हिंदी", "हदी"), ("한", "하")])
def test_marks_that_make_another_word_stay(word: str, other: str) -> None:
    assert folded(word) != folded(other)
    assert folded(unicodedata.normalize("NFD", word)) == folded(word)


def test_a_word_with_a_mark_is_not_the_common_one_without() -> None:
    assert words("du thé vert") == ["du", "the", "vert"]
    assert telling_words("the thé") == ["the"]
    assert telling_words("j'aime le thé") == ["aime", "the"]


def test_each_picture_is_a_word() -> None:
    assert words("\U0001f389 party\U0001f389!") == ["picture127881", "party"]
    assert words("\u2764\ufe0f") == words("\u2764") == ["picture10084"]
    assert words("\U0001f44d\U0001f3fd") == words("\U0001f44d")  # whatever its colour


def test_an_excerpt_is_where_the_word_stands_however_it_is_written() -> None:
    text = "ﬃ ά e\u0301 " * 300 + "Αθήνα" + " ß İ" * 300
    assert "Αθήνα" in excerpt(text, words("αθηνα"), 60)
    assert "Αθήνα" in excerpt("a " * 300 + "Αθήνα" + " b" * 300, words("αθηνα"), 60)


@given(st.text())
def test_folding_twice_adds_no_word(text: str) -> None:
    once = folded(text)
    assert set(re.findall(r"\w+", folded(once))) == set(re.findall(r"\w+", once))


def test_common_words_are_left_out_unless_there_are_no_others() -> None:
    assert words("What did you do with the engine?") == ["engine"]
    assert words("what is it") == ["what", "is", "it"]
    assert words("it isn't Dana's") == ["dana"]
    assert len(words(" ".join(map(str, range(1_000))))) == MOST_WORDS


def test_small_talk_is_distinct_and_recognized_as_its_language() -> None:
    sentences = [sentence for language in languages() for sentence in language.sentences]
    assert len(set(sentences)) == len(sentences) >= 130
    for language in languages():
        own = [sentence for sentence in language.sentences if language_of(sentence) is language]
        assert len(own) >= len(language.sentences) - 1
        assert all(word == word.casefold().strip() != "" for word in language.empty_words)


@pytest.mark.parametrize(
    "greeting",
    [
        "Good morning, how are you?", "Guten Morgen, wie geht's dir?", "Bonjour, ça va bien ?", "Bonjour, ca va ?",
        "¡Hola! ¿Qué tal estás?", "hola, que tal", "おはようございます",
        "こんにちは、お元気ですか", "你好,最近好吗?", "早上好",
        "You made my day, shall we get more?", "Both of us should already be off, though.",
        "Das war überhaupt nicht ehrlich gesagt.", "Oui, mais presque jamais, franchement.", "Nunca, quizá después.",
    ],
)  # fmt: skip
def test_a_greeting_has_no_telling_word_in_any_of_the_languages(greeting: str) -> None:
    assert telling_words(greeting) == []


@pytest.mark.parametrize(
    ("message", "telling", "count"),
    [
        ("Was ist mit dem Hund passiert?", ["hund", "passiert"], 2),
        ("What was the war about?", ["war"], 1),
        ("Où habite ma sœur ?", ["habite", "soeur"], 2),
        ("狗的名字叫饼干", ["狗", "名", "字", "名字", "饼", "干", "饼干"], 3),
        ("Где сидит Дана?", ["где", "сидит", "дана"], 3),
        ("", [], 0),
    ],
)
def test_telling_words_are_those_of_the_messages_language(message: str, telling: list[str], count: int) -> None:
    assert telling_words(message) == telling
    assert count_telling(telling) == count
