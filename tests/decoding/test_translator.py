"""The translator with a model that copies its source, and with a small random network."""

import math
import random
from collections import Counter
from collections.abc import Iterator

import pytest
import torch

from nmt.config.schema import SamplingConfig, SubwordsConfig
from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.translator import Translation, Translator
from nmt.errors import UserError
from nmt.models.seq2seq import Seq2Seq
from nmt.symbols import BEGIN, END
from tests.decoding.conftest import random_translator
from tests.translating import translate

TEXT = ["A dog runs across the green field.", "Two men are sitting on a bench.", "Is the boy playing?"]
STRANGE = [
    "",
    "   ",
    "\t",
    "\u3000",
    "\ufeff",
    "\x00",
    "a\x00b \x07\x1b[0m",
    "😀 😃🏽‍♀️ 🇩🇪",
    "lone \r carriage return",
    "line\u2028separator \x85 \x0b \x0c",
    "A dog runs.\r",
    "x" * 5000,
    "¿" * 300,
    "مرحبا بالعالم",
    "zu\u0308rich \u202eabc",
    "<s> </s> <pad> <unk> ▁ ⁇",
]


def hostile(lines: int) -> list[str]:
    """Strange lines, plain ones, and one of 10,000 words, in random order."""
    generator = random.Random(7)
    words = ["a", "dog", "runs", "across", "the", "green", "field", "and", "two", "men", "read"]
    plain = [" ".join(generator.choices(words, k=generator.randrange(1, 30))) for _ in range(lines)]
    mixed = STRANGE * 3 + [" ".join(generator.choices(words, k=10_000))]
    mixed += plain[: lines - len(mixed)]
    generator.shuffle(mixed)
    return mixed


def network(vocabularies: Vocabularies) -> Seq2Seq:
    """A random network in float64, where the batch can only change a result through a mistake."""
    model: Seq2Seq = random_translator(vocabularies, scale=3.0, longest_segment=250).models[0]
    return model


RULES: list[dict[str, object]] = [
    {"minimum_length": 13},
    {"minimum_length_ratio": 0.7},
    {"no_repeat_ngram_size": 2},
    {"suppress_unknown": True},
]


@pytest.fixture(scope="module")
def usual(vocabularies: Vocabularies) -> int:
    """The piece that the network writes most."""
    best = [best.ids for best, *_ in Translator([network(vocabularies)], vocabularies).translate(TEXT, beam_size=1)]
    ((token, _),) = Counter(token for ids in best for token in ids).most_common(1)
    return token


def translated(translator: Translator, lines: list[str], **options: object) -> list[str]:
    return [best[0].text for best in translate(translator, lines, **options)]


def test_the_copying_model_gives_back_the_text_in_order(copy_model, vocabularies, text) -> None:
    lines = [*text, "", *reversed(text)]
    for beam_size in (1, 3):
        assert translated(Translator([copy_model], vocabularies), lines, beam_size=beam_size) == lines


def test_the_score_and_the_pieces(copy_model, vocabularies) -> None:
    (translation,) = next(Translator([copy_model], vocabularies).translate(["A dog runs."], length_penalty="none"))
    assert "".join(translation.tokens) == "▁A▁dog▁runs."
    assert translation.score == pytest.approx((len(translation.tokens) + 1) * math.log(0.9), rel=1e-5)


@pytest.mark.parametrize("blank", ["\t", "\r\r", "\u3000", "\u00a0", "\u2028"])
def test_a_blank_line_stays_blank_where_its_spaces_are_pieces(copy_model, blank) -> None:
    """Without normalization only U+0020 is nothing to the subword model."""
    subwords = Subwords.train(TEXT, settings=SubwordsConfig(normalization="identity", size=60))
    assert subwords.encode(blank) != []
    translator = Translator([copy_model], Vocabularies(subwords, subwords))
    assert list(translator.translate([blank])) == [[Translation("", 0.0, [])]]
    assert copy_model.batches == []


def test_other_white_space_is_read_as_a_space_without_normalization() -> None:
    """As text from a page or a table has it, unless the model has learned it."""
    lines = ["A dog\nruns.", "A dog runs.", "A\u00a0dog\truns.", "A\u2009dog \u3000runs."]
    subwords = Subwords.train([*TEXT, "a\nb"], settings=SubwordsConfig(normalization="identity", size=60))
    vocabularies = Vocabularies(subwords, subwords)
    translator = Translator([network(vocabularies)], vocabularies)
    learned, *others = [best[0].score for best in translator.translate(lines)]
    assert others == [others[0]] * 3
    assert learned != others[0]


def test_accents_are_read_alike_however_they_were_typed() -> None:
    """Without normalization, too; so is a letter with a dot that NFC takes apart."""
    subwords = Subwords.train(
        [*TEXT, "\u00e9t\u00e9 \u0915\u093c"], settings=SubwordsConfig(normalization="identity", size=60)
    )
    vocabularies = Vocabularies(subwords, subwords)
    translator = Translator([network(vocabularies)], vocabularies)
    typed = ["A \u00e9t\u00e9 \u0915\u093c runs.", "A e\u0301te\u0301 \u0958 runs."]
    one, other = [best.score for best, *_ in translator.translate(typed)]
    assert one == other
    one, other = [best.text for best, *_ in translator.translate(typed, prefixes=typed)]
    assert one == other


def test_no_lines(copy_model, vocabularies) -> None:
    assert list(Translator([copy_model], vocabularies).translate([])) == []


def test_a_long_line_is_translated_in_full(copy_model, vocabularies) -> None:
    line = " ".join(["A dog runs across the green field."] * 100)
    translator = Translator([copy_model], vocabularies, longest_segment=47)
    (translation,) = next(translator.translate([line]))
    assert translation.text == line
    assert max(length for _, length in copy_model.batches) <= 48  # END counted
    assert len(translation.tokens) == len(vocabularies.source.encode(line))


@pytest.mark.parametrize("rules", [{}, *RULES], ids=str)
def test_one_line_for_each_under_every_rule(vocabularies, rules) -> None:
    lines = [line for line in hostile(60) if len(line) < 500]
    translator = Translator([network(vocabularies)], vocabularies)
    short = {"max_length_ratio": 0.1, "max_length_extra": 5}
    results = list(translate(translator, lines, beam_size=2, n_best=2, **short, **rules))
    assert len(results) == len(lines) > 50
    assert all(1 <= len(best) <= 2 for best in results)


def test_an_n_best_list_has_a_text_once(vocabularies) -> None:
    """Here all words that may be written become the term; samples are what was drawn."""
    translator = Translator([network(vocabularies)], vocabularies)
    options = {"glossary": {"dog": "Katze"}, "n_best": 20, "max_length_ratio": 0.0, "max_length_extra": 2}
    searched, sampled = (
        [one.text for one in next(iter(translate(translator, ["dog"], **options, **way)))]
        for way in ({"beam_size": 20}, {"sampling": {"seed": 1}})
    )
    assert (searched, sampled) == (["Katze"], ["Katze"] * 20)


def test_lines_stream(copy_model, vocabularies) -> None:
    read = []

    def endless() -> Iterator[str]:
        while True:
            read.append("A dog runs.")
            yield "A dog runs."

    translations = translate(Translator([copy_model], vocabularies), endless(), batch_tokens=100)
    assert next(translations)[0].text == "A dog runs."
    assert len(read) < 1000


def test_what_was_read_is_translated_before_the_next_line_is_waited_for(copy_model, vocabularies, text) -> None:
    lines = iter(text)
    answers = iter([False, True])
    translations = Translator([copy_model], vocabularies).translate(lines, waiting=lambda: next(answers))
    assert next(translations)[0].text == text[0]
    assert next(lines) == text[2]  # the first two were translated together
    assert next(translations)[0].text == text[1]


def test_a_model_whose_weights_are_not_finite(vocabularies, text) -> None:
    model = network(vocabularies)
    with torch.no_grad():
        next(model.parameters()).fill_(math.nan)
    with pytest.raises(UserError, match=r"not numbers \(NaN\): its weights are not finite"):
        list(Translator([model], vocabularies).translate(text))


HARD = {
    "max_length_ratio": 0.1,
    "max_length_extra": 5,
    "minimum_length": 1000,
    "no_repeat_ngram_size": 1,
    "suppress_unknown": True,
    "protect": [],
}
BEAMS = [{"beam_size": 5, "n_best": 5}, {"beam_size": 6, "n_best": 3, "diversity": 2.0}]


@pytest.mark.parametrize("options", [*BEAMS, {"sampling": SamplingConfig(top_k=1), "n_best": 3}], ids=str)
@pytest.mark.parametrize("bound", [{}, {"prefixes": "Two men"}, {"constraints": "a dog\tbench"}], ids=str)
def test_a_line_always_has_a_translation(vocabularies, text, usual, options, bound) -> None:
    """Also where the rules leave nothing long before the minimal length, after a prefix or phrases that break them."""
    if "constraints" in bound and ("sampling" in options or "diversity" in options):
        pytest.skip("they do not go together")
    lines = [line for line in hostile(60) if line.strip() and vocabularies.source.encode(line)]
    lines = [line[:60] for line in lines[:5]] + list(text[:2])
    for strength in (1.0, -1.0):  # END as the best and as the worst of all pieces
        model = network(vocabularies)
        with torch.no_grad():
            model.output_weight[END] = model.output_weight[usual] * strength
        beside = {name: [phrases] * len(lines) for name, phrases in bound.items()}
        ratios = {"max_length_ratio": 0.1 if not bound else 1.0}
        translations = translate(Translator([model], vocabularies), lines, **{**HARD, **ratios, **options, **beside})
        assert all(translations)


class Never(torch.nn.Module):
    """Gives all pieces but `only` the probability 0, as weights of 1e38 may."""

    def __init__(self, only: int, size: int) -> None:
        super().__init__()
        self.only, self.size = only, size

    def start(self, source, source_lengths):
        return self

    def select(self, rows):
        return self

    def step(self, tokens, state):
        log_probabilities = torch.full((len(tokens), self.size), -math.inf)
        log_probabilities[:, self.only] = 0.0
        return log_probabilities, self


@pytest.mark.parametrize("options", [*BEAMS, {"sampling": SamplingConfig()}], ids=str)
@pytest.mark.parametrize("only", [BEGIN, 5])
def test_a_model_that_gives_every_translation_the_probability_0(vocabularies, text, only, options) -> None:
    translator = Translator([Never(only, vocabularies.target.size)], vocabularies)
    with pytest.raises(UserError, match=r"the probability 0: its weights are not finite, or far too large"):
        list(translate(translator, text, **options))


def test_the_model_s_mode_and_the_random_state_are_left_as_they_were(copy_model, vocabularies, text) -> None:
    copy_model.train()
    copy_model.dropout.eval()  # as a frozen part would be
    state = torch.get_rng_state()
    translations = Translator([copy_model], vocabularies).translate(text)
    next(translations)  # also between two translations
    assert copy_model.training
    assert not copy_model.dropout.training
    list(translations)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({}, "line 2: character 3"),
        ({"prefixes": ["", "\udfff"]}, "line 2 of the prefixes: character 1"),
        ({"constraints": ["", "a\ta \udfff"]}, "line 2 of the constraints: character 5"),
    ],
)
def test_half_of_a_surrogate_pair_is_told(copy_model, vocabularies, more: dict[str, list[str]], what: str) -> None:
    """A Python text may have it; SentencePiece would fail with a message about C++."""
    lines = ["a b", "a b" if more else "a \udfff"]
    with pytest.raises(UserError) as error:
        list(Translator([copy_model], vocabularies).translate(lines, **more))
    assert str(error.value) == f"{what} is half of a surrogate pair, U+DFFF, which is no character"
