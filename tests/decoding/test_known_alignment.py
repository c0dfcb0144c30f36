"""Alignments of a model whose right alignment is known, for every type of decoder: a weight off by one would show.

No weight is off by one step or one position: each window is as narrow as the alignment allows, and the alignment goes
back and forth.
"""

from itertools import cycle
from pathlib import Path

import pytest

from nmt.decoding import translator as translator_module
from nmt.decoding.options import TranslationOptions
from nmt.decoding.runtime import RuntimeScorer
from nmt.decoding.scorer import Scorer
from nmt.decoding.scoring import score
from nmt.decoding.translator import Translator
from nmt.models.decoders import DECODERS as TYPES
from nmt.models.scopes import SCOPES
from tests.known_model import ATTENTIONS, DECODERS, save_known_model
from tests.translating import translate

SOURCE = ["today", "she", "reads", "the", "old", "book", "."]
TARGET = ["heute", "liest", "sie", "alte", "Bücher", "."]
LINKS = [(0, 0), (2, 1), (1, 2), (4, 3), (5, 4), (6, 5)]  # two words change places, and one has no translation

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
def test_the_alignment_is_the_one_it_was_made_with(attention: str, decoder: str, split: bool, tmp_path: Path) -> None:
    """By PyTorch; of words, or of words that are `split` into pieces."""
    (source, target), links = (LETTERS, LETTER_LINKS) if split else ((SOURCE, TARGET), LINKS)
    save_known_model(tmp_path / "model", source, target, links, decoder=decoder, attention=attention, split=split)
    translator, lines = Translator.load(tmp_path / "model"), [" ".join(source), "", "  ".join(source)]
    assert isinstance(translator.scorer, Scorer)
    found = [best for best, *_ in translator.translate(lines, alignments=True)]
    assert [best.text for best in found] == [" ".join(target), "", " ".join(target)]
    pairs = zip(lines, [best.text for best in found], strict=True)
    scored = score(translator, pairs, TranslationOptions(alignments=True))
    expected = [(1, 0), (2, 1), (0, 2)] if split else links
    for way in ([best.soft_alignment for best in found], [one.alignment for one in scored]):
        assert [alignment and alignment.links for alignment in way] == [expected, [], expected]
        for alignment in way[::2] if split else []:
            assert alignment is not None
            assert alignment.weights.tolist() == [pytest.approx(row, abs=0.01) for row in MERGED]


@pytest.fixture(params=DECODERS)
def translator(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Translator:
    """By ONNX Runtime."""
    monkeypatch.setattr(translator_module, "WORTH_EXPORTING", 1)
    save_known_model(tmp_path / "model", SOURCE, TARGET, LINKS, decoder=request.param)
    return Translator.load(tmp_path / "model")


def test_the_attention_of_the_step_after_a_word(translator: Translator) -> None:
    """It is at what the next word stands for; after the last word it is at the end of the source, which has no word."""
    assert isinstance(translator.scorer, RuntimeScorer)
    lines, options = [" ".join(SOURCE), ""], {"alignments": True, "alignment_step": "next"}
    (best,), (blank,) = translate(translator, lines, beam_size=1, **options)
    assert best.soft_alignment is not None
    (scored,) = score(translator, [(lines[0], best.text)], TranslationOptions(**options))
    assert scored.alignment is not None
    for weights in (best.soft_alignment.weights, scored.alignment.weights):
        assert weights.shape == (len(TARGET), len(SOURCE) + 1)
        for (source, _), (_, target) in zip(LINKS[1:], LINKS, strict=False):
            assert weights[target, source] > 0.99
        assert weights[-1, -1] > 0.99
    assert blank.alignment == []
    read = [(source, target) for (source, _), (_, target) in zip(LINKS[1:], LINKS, strict=False)]
    assert best.alignment == scored.alignment.links == [*read, (len(SOURCE) - 1, len(TARGET) - 1)]
    (unlinked,), _ = translate(translator, lines, beam_size=1, end_links="none", **options)
    assert unlinked.alignment == read


def test_segments_of_a_long_line_are_offset(translator: Translator) -> None:
    """A line of three sentences, which is cut after each: links go on counting where the last sentence ended."""
    translator.longest_segment = len(SOURCE)
    lines = [" ".join(SOURCE * 3), " ".join(SOURCE)]
    (best,), (short,) = translator.translate(lines, alignments=True)
    assert best.text == " ".join(TARGET * 3)
    steps = [(copy * len(SOURCE), copy * len(TARGET)) for copy in range(3)]
    expected = [(source + first, target + second) for first, second in steps for source, target in LINKS]
    assert best.alignment == expected
    assert short.alignment == LINKS


def test_unknown_words_that_are_replaced_by_several(translator: Translator) -> None:
    """Each of the words that take the place of an unknown one has its link."""
    line = " ".join(SOURCE)
    unknown = translator.vocabularies.target.encode("unbekannt")
    assert unknown == [1]
    (model,), place = translator.models, translator.vocabularies.target.encode("Bücher")[0]
    weight = model.output_weight.detach()
    weight[[1, place]] = weight[[place, 1]]  # what was "Bücher" is now unknown
    embedding = model.target_embedding.weight.detach()
    embedding[[1, place]] = embedding[[place, 1]]
    dictionary = {"book": "dicke Bücher"}
    (best,) = next(translate(translator, [line], replace_unknown=dictionary, alignments=True))
    assert best.text == "heute liest sie alte dicke Bücher ."
    assert best.alignment == [*LINKS[:5], (5, 5), (6, 6)]
    assert best.soft_alignment is not None
    assert best.soft_alignment.target_words == best.text.split()
    (later,) = next(translate(translator, [line], replace_unknown=dictionary, alignment_step="next"))
    assert later.text == "heute liest sie alte . ."  # what the step after it looks at
    (plain,) = next(translator.translate([line], alignments=True))
    assert plain.text.split() == ["heute", "liest", "sie", "alte", "⁇", "."]
    assert plain.alignment == LINKS
