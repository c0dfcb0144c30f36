#!/usr/bin/env python3
"""Cut lines of the Canadian Hansards into words, as the gold alignments of Mihalcea & Pedersen (2003) have them.

    python scripts/hansards_words.py en < hansard.en > train.en
    python scripts/hansards_words.py fr < hansard.fr > train.fr

Lowercase and without accents; punctuation stands by itself, except in numbers, and in "mr.", "m.", "hon.", "st.", and
"p.m.". In French, what elision and contraction hide is written out: "l'eau" is "le eau", and "du" is "de le". English
has its endings by themselves: "speaker 's". A line stays a line.
"""

import re
import sys
import unicodedata
from collections.abc import Sequence

_ENDINGS = r"'(?:s|re|ve|ll|d|m|t)\b"
_WORD = re.compile(rf"--|\.\.\.|(?:mr|m|hon|st|[ap]\.m)\.|[a-z0-9]+(?:[.,]\d+)*(?:'(?=[a-z]))?|{_ENDINGS}|\S")
_ELISION = re.compile(r"\b(qu|[cdjlmnst])'\s*")
_CONTRACTED = {"du": "de le", "des": "de les", "au": "a le", "aux": "a les"}


def words(line: str, language: str) -> list[str]:
    """The words of a line, where `language` is en or fr."""
    decomposed = unicodedata.normalize("NFD", line)
    text = "".join(character for character in decomposed if not unicodedata.combining(character)).lower()
    if language == "fr":
        text = _ELISION.sub(r"\1e ", text)
        text = re.sub(r"\b(?:du|des|aux?)\b", lambda found: _CONTRACTED[found[0]], text)
    else:
        text = re.sub(rf"({_ENDINGS})", r" \1", text)
    return _WORD.findall(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read standard input, and write standard output; returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if len(given) != 1 or given[0] not in ("en", "fr"):
        print(
            "hansards_words: error: give the language, en or fr; the text is read from standard input", file=sys.stderr
        )
        return 2
    for line in sys.stdin:
        print(*words(line, given[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
