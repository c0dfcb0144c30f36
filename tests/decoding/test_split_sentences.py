"""Lines whose sentences are translated one by one: each as on a line of its own, and together as the line was."""

import pytest
import torch

from nmt.config.schema import SamplingConfig, SubwordsConfig
from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.reading import Languages
from nmt.decoding.search.hypotheses import Hypothesis
from nmt.decoding.text.protect import Sight
from nmt.decoding.translator import TranslationOptions, Translator
from nmt.decoding.writing import Writer
from nmt.errors import UserError
from tests.decoding.conftest import CopyModel, random_translator
from tests.translating import translate

pytest.importorskip("sentencex", reason="needs sentencex, of the extra text")

ENGLISH = Languages("en", "en")
SENTENCES = ["A dog runs across the green field.", "Is the boy playing?", "Two men are sitting on a bench!"]
LINE = " ".join(SENTENCES)


@pytest.fixture
def copying(copy_model, vocabularies) -> Translator:
    return Translator([copy_model], vocabularies, languages=ENGLISH)


@pytest.fixture
def drawn(vocabularies) -> Translator:
    """One with random weights."""
    translator = random_translator(vocabularies, scale=3, longest_segment=250)
    translator.languages = ENGLISH
    return translator


def test_each_sentence_is_translated_by_itself(copying, copy_model) -> None:
    pieces = [len(copying.vocabularies.source.encode(sentence)) for sentence in SENTENCES]
    ((best,),) = translate(copying, [LINE], split_sentences=True, batch_sentences=1)
    assert best.text == LINE
    assert sorted(length for _, length in copy_model.batches) == sorted(count + 1 for count in pieces)


@pytest.mark.parametrize("options", [{}, {"beam_size": 1}, {"n_best": 3}, {"n_best": 2, "diversity": 0.5}])
def test_a_sentence_is_translated_as_on_a_line_of_its_own(drawn, options) -> None:
    lines = list(translate(drawn, SENTENCES, **options))
    ((*joined,),) = translate(drawn, [LINE], split_sentences=True, **options)
    expected = [" ".join(part.text for part in parts) for parts in zip(*lines, strict=True)]
    assert sorted(translation.text for translation in joined) == sorted(expected)
    assert joined[0].text == expected[0]
    scores = [translation.score for translation in joined[1:]]
    assert scores == sorted(scores, reverse=True)


def test_the_best_translation_comes_first_whatever_the_score_of_the_line(drawn) -> None:
    """By averages over tokens the second best of both sentences are worse, -0.11 and -1.01, and joined they are better:
    -12.3 / 30 in place of -10.2 / 12."""
    options = TranslationOptions(split_sentences=True, n_best=3)
    ((lines, segments),) = drawn.read([" ".join(SENTENCES[:2])], options)
    sentences = [
        [Hypothesis([4], -0.2 / 2, -0.2), Hypothesis([5] * 19, -0.11, -2.2), Hypothesis([6], -0.2, -0.4)],
        [Hypothesis([4] * 9, -1.0, -10.0), Hypothesis([5] * 9, -1.01, -10.1), Hypothesis([6] * 9, -1.02, -10.2)],
    ]
    writer = Writer(
        scorer=drawn.scorer,
        vocabularies=drawn.vocabularies,
        decoding=options.decoding(drawn.decoding),
        options=options,
        sight=Sight(drawn.vocabularies.source, None),
    )
    (translations,) = writer.translations(lines, segments, sentences)
    assert [translation.ids[0] for translation in translations] == [4, 5, 6]
    assert [translation.score for translation in translations] == pytest.approx([-10.2 / 12, -12.3 / 30, -10.6 / 12])


def test_the_score_is_that_of_all_tokens(drawn) -> None:
    for penalty, divisor in (("none", lambda _: 1.0), ("average", float)):
        alone = [best for best, *_ in translate(drawn, SENTENCES, beam_size=1, length_penalty="none")]
        ((best,),) = translate(drawn, [LINE], split_sentences=True, beam_size=1, length_penalty=penalty)
        tokens = sum(len(translation.tokens) + 1 for translation in alone)
        assert best.score == pytest.approx(sum(one.score for one in alone) / divisor(tokens))
        assert best.tokens == [token for one in alone for token in one.tokens]


@pytest.mark.parametrize(
    "line",
    [
        f"{SENTENCES[0]}\t{SENTENCES[1]}",
        f"  {SENTENCES[0]}   {SENTENCES[1]}\u00a0",
        f"\u3000{SENTENCES[0]} \u3000{SENTENCES[1]} \t",
        SENTENCES[0],
        f"\t{SENTENCES[0]}",
    ],
)
def test_white_space_is_that_of_the_line(copying, line) -> None:
    ((best, *_),) = translate(copying, [line], split_sentences="en")
    assert best.text == line


def test_a_line_stays_a_line(copying) -> None:
    line = f"{SENTENCES[0]}\n\u2028{SENTENCES[1]}\r\n"
    ((best, *_),) = translate(copying, [line], split_sentences="en")
    assert best.text.split() == line.split()
    assert best.text.splitlines() == [best.text]


def test_blank_lines_stay_blank_and_order_is_kept(copying) -> None:
    lines = ["", LINE, "  ", SENTENCES[1], "\u200b", LINE]
    best = [best.text for best, *_ in translate(copying, lines, split_sentences=True)]
    assert best == ["", LINE, "", SENTENCES[1], "", LINE]


def test_a_sentence_without_pieces_is_left_out(copying) -> None:
    ((best, *_),) = translate(copying, [f"\u200b\n\n{SENTENCES[0]}\n\n\u200b\n\n{SENTENCES[1]}"], split_sentences=True)
    assert best.text.split() == f"{SENTENCES[0]} {SENTENCES[1]}".split()


def test_a_long_sentence_is_cut_further(copy_model, vocabularies) -> None:
    translator = Translator([copy_model], vocabularies, longest_segment=11, languages=ENGLISH)
    line = "\t".join(SENTENCES)
    ((best, *_),) = translate(translator, [line], split_sentences=True)
    assert "".join(best.text.split()) == "".join(line.split())  # a cut inside a word gives a space, as ever
    assert best.text.count("\t") == 2
    assert max(length for _, length in copy_model.batches) <= 12


def test_alignments_are_those_of_the_line(drawn) -> None:
    line = f"  {SENTENCES[0]}\u00a0\u00a0{SENTENCES[1]}\t{SENTENCES[2]} "
    alone = [best for best, *_ in translate(drawn, SENTENCES, alignments=True)]
    ((best,),) = translate(drawn, [line], split_sentences=True, alignments=True)
    assert best.soft_alignment.source_words == line.split()
    assert best.soft_alignment.target_words == best.text.split()
    of_sentences = [torch.from_numpy(one.soft_alignment.weights) for one in alone]
    weights = torch.block_diag(*(one[:, :-1] for one in of_sentences))
    ends = torch.cat([one[:, -1] for one in of_sentences])
    torch.testing.assert_close(torch.from_numpy(best.soft_alignment.weights), torch.hstack([weights, ends[:, None]]))


@pytest.mark.parametrize(
    ("language", "sentences", "spaces"),
    [
        ("zh", ["我喜欢狗。", "你呢？", "我也喜欢！"], ["", ""]),
        ("ja", ["私は犬が好きです。", "あなたは？", "はい、好きです。"], ["", "\u3000"]),
        ("hi", ["मैं स्कूल जाता हूँ।", "वह घर जाती है।", "ठीक है?"], [" ", "  "]),
        ("th", ["ฉันชอบหมา คุณล่ะ"], []),  # one, as nothing says where a sentence ends
        ("ar", ["كيف حالك؟", "أنا بخير."], [" "]),
    ],
)
def test_real_scripts(language, sentences, spaces) -> None:
    """A model that copies, and random weights for the alignments: words are those of the line, which may be one."""
    characters = "".join(sorted({*"".join(sentences)} - {" "}))
    settings = SubwordsConfig(type="char", size=5 + len(characters), normalization="identity")
    subwords = Subwords.train([" ".join(characters), *sentences], settings=settings)
    vocabularies, languages = Vocabularies(subwords, subwords), Languages(language, language)
    line = "".join(text + space for text, space in zip(sentences, [*spaces, ""], strict=True))
    copying = Translator([CopyModel(subwords.size)], vocabularies, languages=languages)
    ((best, *_),) = translate(copying, [line], split_sentences=True)
    assert best.text == line
    cutting = Translator([CopyModel(subwords.size)], vocabularies, languages=languages, longest_segment=4)
    ((best, *_),) = translate(cutting, [line], split_sentences=True)
    assert language not in ("zh", "ja") or best.text == line  # others get a space where a word is cut
    ((_, (segments,)),) = copying.read([line], TranslationOptions(split_sentences=True))
    assert [subwords.decode(segment.source) for segment in segments] == sentences

    drawn = random_translator(vocabularies, scale=3, longest_segment=250)
    ((best, *_),) = translate(drawn, [line], split_sentences=language, alignments=True, word_scores=True)
    alone = [one for one, *_ in translate(drawn, sentences, alignments=True)]
    assert best.tokens == [token for one in alone for token in one.tokens]
    assert best.soft_alignment.source_words == line.split()
    assert best.soft_alignment.target_words == best.word_scores.words == best.text.split()
    assert best.soft_alignment.weights.shape[1] == len(line.split()) + 1  # the end


def test_draws_depend_on_line_and_sentence(drawn) -> None:
    sampling = SamplingConfig(seed=3)
    options = {"split_sentences": True, "sampling": sampling, "n_best": 3}
    together = list(translate(drawn, [LINE, LINE], **options))
    alone = list(translate(drawn, [LINE], first=1, **options))
    assert [one.text for one in together[1]] == [one.text for one in alone[0]]
    assert [one.text for one in together[0]] != [one.text for one in alone[0]]
    assert len(together[0]) == 3


def test_a_prefix_does_not_go_with_several_sentences(drawn) -> None:
    with pytest.raises(UserError, match=r"prefixes do not go with split_sentences .* give every sentence a line"):
        drawn.translate([LINE], prefixes=["Two"], split_sentences=True)


def test_a_constraint_that_stands_in_a_sentence_belongs_to_it(drawn) -> None:
    """Such as a name; any other to the first sentence."""
    phrases = "red ball\tdog\tbench\tthe boy\ttwo men"
    ((_, (segments,)),) = drawn.read([LINE], TranslationOptions(split_sentences=True), constraints=[phrases])
    found = [[phrase.text for phrase in segment.phrases] for segment in segments]
    assert found == [["red ball", "dog"], ["the boy"], ["bench", "two men"]]


def test_the_language_has_to_be_known(copy_model, vocabularies) -> None:
    translator = Translator([copy_model], vocabularies)
    assert translator.languages == Languages(None, None)
    with pytest.raises(UserError, match="not told its source language"):
        translate(translator, [LINE], split_sentences=True)
    named = Translator([copy_model], vocabularies, languages=Languages("Klingon", "de"))
    with pytest.raises(UserError, match=r"the model's data.source_language: 'Klingon' is no code"):
        translate(named, [LINE], split_sentences=True)
    assert next(translate(named, [LINE], split_sentences="en"))[0].text == LINE
    with pytest.raises(UserError, match="`split_sentences` is 3; allowed: true or false, or text"):
        translate(translator, [LINE], split_sentences=3)


def test_without_sentencex(copying, monkeypatch) -> None:
    monkeypatch.setattr("nmt.decoding.text.sentences.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"sentencex.* is not installed; pip install 'nmt-toolkit\[text\]'"):
        translate(copying, [LINE], split_sentences=True)
    assert next(translate(copying, [LINE]))[0].text == LINE
