"""Placeholders: symbols that stand in some training pairs for, or beside, a word that both sides have alike.

A model that has seen them knows what to do with one: it writes it where that belongs. So a translation can show it a
placeholder for what is to stay as it is, a number, a name, or an address (Post et al. 2019, who put them for words, not
beside them; beside a word they part what is not alike). Those of a sentence are numbered in the order of the source:

    A man in New York          Ein Mann in New York
    A man in ⟦1⟧ New York      Ein Mann in ⟦1⟧ New York

It knows lines; it knows no subword models and no files.
"""

import re
from collections import Counter
from random import Random

from nmt.config.schema import MOST_PLACEHOLDERS, Placeholders

PLACEHOLDERS = tuple(f"⟦{number}⟧" for number in range(1, MOST_PLACEHOLDERS + 1))
_SIGNS = r".,;:!?…\"'“”„‘’«»()\[\]"
_WORD = re.compile(rf"(?<!\S)[^\s{_SIGNS}]\S*?(?=[{_SIGNS}]*(?!\S))")  # without the signs behind it


def with_placeholders(source: str, target: str, settings: Placeholders) -> tuple[str, str]:
    """The pair, or, of a share of those that have words which stand once on either side, the pair with placeholders.

    The placeholder of a word takes its place, or stands before it or behind it, on both sides. What is drawn depends
    on the text of the pair alone, so that it is the same in every epoch and in every run.
    """
    draw = Random(f"{source}\t{target}")
    if draw.random() >= settings.share:
        return source, target
    words, others = (Counter(_WORD.findall(text)) for text in (source, target))
    alike = [word for word, count in words.items() if count == others[word] == 1]
    most = min(len(alike), settings.count)
    chosen = sorted(draw.sample(range(len(alike)), draw.randint(min(most, 1), most)))
    for place, symbol in zip(chosen, PLACEHOLDERS, strict=False):
        word = alike[place]
        instead = draw.choice((symbol, f"{symbol} {word}", f"{word} {symbol}"))
        source, target = (_replaced(text, word, instead) for text in (source, target))
    return source, target


def _replaced(text: str, word: str, instead: str) -> str:
    return _WORD.sub(lambda match: instead if match[0] == word else match[0], text)
