"""nmt-translate and nmt-score give exactly the alignment that a model was made with, for every decoder and every scope.

No weight is off by one step or one position: each window is as narrow as the alignment allows, and the alignment goes
back and forth.
"""

import json
from itertools import cycle
from pathlib import Path

import pytest

from nmt.cli import score, translate
from nmt.models.decoders import DECODERS as TYPES
from nmt.models.scopes import SCOPES
from tests.cli.conftest import lines
from tests.known_model import ATTENTIONS, DECODERS, save_known_model

WORDS = (["today", "she", "reads", "the", "old", "book", "."], ["heute", "liest", "sie", "alte", "Bücher", "."])
LINKS = [(0, 0), (2, 1), (1, 2), (4, 3), (5, 4), (6, 5)]

# Three words of two, three and one piece; the last target word has two pieces that look at the first source word and
# one that looks at the second.
LETTERS = (["ab", "cde", "f"], ["gh", "k", "lmn"])
LETTER_LINKS = [(2, 0), (3, 1), (5, 2), (1, 3), (0, 4), (4, 5)]
MERGED = [[0, 1, 0, 0], [0, 0, 1, 0], [2 / 3, 1 / 3, 0, 0]]  # the last column is the end's


def test_every_member_of_both_families_takes_part() -> None:
    assert {settings["type"] for settings in DECODERS.values()} == set(TYPES)
    assert {settings.get("scope", "global") for settings in ATTENTIONS.values()} == set(SCOPES)


@pytest.mark.parametrize(
    ("attention", "decoder", "split"),
    [
        *(("global", decoder, split) for decoder, split in zip(DECODERS, cycle([False, True]))),
        *((attention, "luong", attention == "local-p") for attention in ATTENTIONS if attention != "global"),
    ],
)
def test_the_alignment_is_the_one_it_was_made_with(attention: str, decoder: str, split: bool, here: Path) -> None:
    """Of words, or of words that are `split` into pieces."""
    (source, target), links = (LETTERS, LETTER_LINKS) if split else (WORDS, LINKS)
    save_known_model(here / "model", source, target, links, decoder=decoder, attention=attention, split=split)
    for name, words in (("source", source), ("target", target)):
        Path(name).write_text(f"{' '.join(words)}\n\n{'  '.join(words)}\n", encoding="utf-8")
    expected = "1-0 2-1 0-2" if split else " ".join(f"{place}-{word}" for place, word in links)

    arguments = ["--model", "model", "--device", "cpu", "--output", "out"]
    arguments += ["--alignments", "hard", "--soft-alignments", "soft"]
    ways = {translate.main: ["--input", "source"], score.main: ["--source", "source", "--target", "target"]}
    for main, more in ways.items():
        assert main([*arguments, *more]) == 0
        if main is translate.main:
            assert lines("out") == [" ".join(target), "", " ".join(target)]
        assert lines("hard") == [expected, "", expected]
        first, _, last = (json.loads(line) for line in lines("soft"))
        assert first == last
        if split:
            for row, merged in zip(first["attention"], MERGED, strict=True):
                assert row == pytest.approx(merged, abs=0.01)
