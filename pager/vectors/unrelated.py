"""Sentences that have nothing to do with each other, in the script of a message: how near an embedder finds those is
what nearness by chance is. To one that knows little of a language all its texts are near. Pure.

    >>> sentences("What do I like?")[5]
    'Whales breathe air.'
"""

from __future__ import annotations

import re

LATIN = (
    "The train to the coast leaves at nine.",
    "Boil the potatoes until they are soft.",
    "Her brother plays the violin.",
    "The server crashed after the update.",
    "Interest rates rose again last month.",
    "Whales breathe air.",
    "He repaired the roof before winter.",
    "The court ruled against the company.",
)
# The letters of a script, and sentences in it.
_OTHERS = (
    (
        re.compile("[\u0400-\u052f]"),  # Cyrillic
        (
            "Поезд к морю уходит в девять.",
            "Варите картофель до мягкости.",
            "Её брат играет на скрипке.",
            "Сервер упал после обновления.",
            "Процентные ставки снова выросли.",
            "Киты дышат воздухом.",
        ),
    ),
    (
        re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),  # Greek
        (
            "Το τρένο για τη θάλασσα φεύγει στις εννέα.",
            "Βράστε τις πατάτες μέχρι να μαλακώσουν.",
            "Ο αδελφός της παίζει βιολί.",
            "Τα επιτόκια ανέβηκαν ξανά.",
            "Οι φάλαινες αναπνέουν αέρα.",
        ),
    ),
    (
        re.compile("[\u0590-\u05ff]"),  # Hebrew
        (
            "הרכבת לחוף יוצאת בתשע.",
            "בשלו את תפוחי האדמה עד שיתרככו.",
            "אחיה מנגן בכינור.",
            "הריבית עלתה שוב.",
            "לווייתנים נושמים אוויר.",
        ),
    ),
    (
        re.compile("[\u0600-\u06ff\u0750-\u077f]"),  # Arabic
        (
            "يغادر القطار إلى الساحل في التاسعة.",
            "اسلق البطاطس حتى تنضج.",
            "أخوها يعزف على الكمان.",
            "ارتفعت أسعار الفائدة مرة أخرى.",
            "الحيتان تتنفس الهواء.",
        ),
    ),
    (
        re.compile("[\u0900-\u097f]"),  # Devanagari
        (
            "समुद्र तट की ट्रेन नौ बजे जाती है।",
            "आलू नरम होने तक उबालें।",
            "उसका भाई वायलिन बजाता है।",
            "ब्याज दरें फिर बढ़ गईं।",
            "व्हेल हवा में साँस लेती हैं।",
        ),
    ),
    (
        re.compile("[\u0e00-\u0e7f]"),  # Thai
        (
            "รถไฟไปชายทะเลออกตอนเก้าโมง",
            "ต้มมันฝรั่งจนนุ่ม",
            "พี่ชายของเธอเล่นไวโอลิน",
            "อัตราดอกเบี้ยขึ้นอีกแล้ว",
            "วาฬหายใจด้วยอากาศ",
        ),
    ),
    (
        re.compile("[\u1100-\u11ff\uac00-\ud7a3]"),  # Hangul
        (
            "해안으로 가는 기차는 아홉 시에 떠난다.",
            "감자가 부드러워질 때까지 삶으세요.",
            "그녀의 오빠는 바이올린을 켠다.",
            "금리가 또 올랐다.",
            "고래는 공기를 마신다.",
        ),
    ),
    (
        re.compile("[\u3040-\u30ff]"),  # kana
        (
            "海へ行く列車は九時に出ます。",
            "じゃがいもを柔らかくなるまで茹でてください。",
            "彼女の兄はバイオリンを弾く。",
            "金利がまた上がった。",
            "クジラは空気を吸う。",
        ),
    ),
    (
        re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"),  # Chinese characters
        (
            "去海边的火车九点开。",
            "把土豆煮到变软。",
            "她的哥哥拉小提琴。",
            "利率上个月又上涨了。",
            "鲸鱼呼吸空气。",
            "他在冬天前修好了屋顶。",
        ),
    ),
)


def sentences(message: str) -> tuple[str, ...]:
    """Those of the script that most letters of a message are of; of kana, if some stand among Chinese characters."""
    letters = sum(map(str.isalpha, message))
    found = {told: len(script.findall(message)) for script, told in _OTHERS}
    kana, chinese = (told for _, told in _OTHERS[-2:])
    if found[kana]:
        found[kana] += found.pop(chinese)
    told = max(found, key=found.__getitem__)
    return told if 0 < letters <= 2 * found[told] else LATIN
