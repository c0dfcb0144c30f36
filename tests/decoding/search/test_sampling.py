"""Sampling: with numbers given by hand on tables, and through the translator, where batches must not be seen."""

import itertools
import math
import random
from collections import Counter

import pytest
import torch
from torch import Tensor

from nmt.config.schema import SamplingConfig
from nmt.data.subwords import Vocabularies
from nmt.decoding.search.choices import NotNumbersError
from nmt.decoding.search.loop import search
from nmt.decoding.search.sampling import Draws, drawn_tokens, numbers
from nmt.decoding.translator import Translation, Translator
from nmt.symbols import BEGIN, END, PAD
from tests.decoding.conftest import random_translator
from tests.decoding.tables import Rows, random_tables, table_step
from tests.translating import translate

A, B, C = 4, 5, 6
#        PAD  UNK  BEGIN END   A    B     C
ROW = [0.20, 0.0, 0.30, 0.05, 0.1, 0.25, 0.10]  # of what can be drawn: END 0.1, A 0.2, B 0.5, C 0.2


def drawn(values: list[float], **options: float) -> list[int]:
    rows = torch.tensor([ROW] * len(values), dtype=torch.float64).log()
    return drawn_tokens(rows, torch.tensor(values, dtype=torch.float64), SamplingConfig(**options)).tolist()


def test_tokens_share_the_interval_in_the_order_of_their_ids() -> None:
    assert drawn([0.0, 0.09, 0.11, 0.29, 0.31, 0.79, 0.81, 0.999]) == [END, END, A, A, B, B, C, C]


def test_pad_begin_and_what_has_no_probability_are_never_drawn() -> None:
    last = math.nextafter(1.0, 0.0)
    assert drawn([0.0, last], temperature=100.0) == [END, C]
    tokens = drawn([count / 1000 for count in range(1000)] + [last], temperature=3.0)
    assert set(tokens) == {END, A, B, C}


def test_the_temperature() -> None:
    """p ∝ p^(1/T): with T = 0.5 the squares 1, 4, 25, 4 of 34."""
    borders = [1 / 34, 5 / 34, 30 / 34]
    assert drawn([border - 1e-9 for border in borders], temperature=0.5) == [END, A, B]
    assert drawn([border + 1e-9 for border in borders], temperature=0.5) == [A, B, C]
    assert set(drawn([0.0, 0.5, 0.999999], temperature=1e-300)) == {B}


def test_top_k() -> None:
    assert set(drawn([0.0, 0.5, 0.999], top_k=1)) == {B}
    # A goes before C, its equal: A 2/7, B 5/7
    assert drawn([0.0, 2 / 7 - 1e-9, 2 / 7 + 1e-9, 0.999], top_k=2) == [A, A, B, B]
    assert drawn([0.0, 0.15, 0.5, 0.9], top_k=99) == drawn([0.0, 0.15, 0.5, 0.9])


def test_the_nucleus() -> None:
    assert set(drawn([0.0, 0.999], top_p=0.49)) == {B}
    assert drawn([0.0, 2 / 7 + 1e-9], top_p=0.51) == [A, B]
    assert drawn([0.0, 0.999], top_p=0.9) == [A, C]  # END is not needed
    assert drawn([0.0, 0.999], top_p=0.91) == [END, C]
    assert drawn([0.0, 0.15, 0.5, 0.9], top_p=1.0) == drawn([0.0, 0.15, 0.5, 0.9])


def test_the_nucleus_is_that_of_the_top_k() -> None:
    # of the three A, B, C with 0.2, 0.5, 0.2 of 0.9, A and B have 0.78, and B alone 0.56
    assert set(drawn([0.0, 0.999], top_k=3, top_p=0.55)) == {B}
    assert drawn([0.0, 0.999], top_k=3, top_p=0.77) == [A, B]


# ------------------------------------------------------------------------------------------------- whole translations


def samples(tables: Tensor, uniform: Tensor, limits: list[int], **options: float) -> list[list]:
    return search(
        table_step(tables),
        Rows(torch.arange(len(tables))),
        Draws(uniform, SamplingConfig(**options)),
        length_penalty="average",
        max_lengths=torch.tensor(limits),
        n_best=1,
    )


@pytest.mark.parametrize("options", [{}, {"temperature": 0.3}, {"top_k": 2}, {"top_p": 0.6}], ids=str)
def test_agrees_with_one_translation_at_a_time(options: dict[str, float]) -> None:
    limits = [1, 2, 3, 5, 7]
    tables = random_tables(5, 8, seed=7, spread=1.0)
    uniform = numbers(3, [(place,) for place in range(5)], samples=4, steps=7)
    results = samples(tables, uniform, limits, **options)
    assert [len(sentence) for sentence in results] == [4] * 5
    for table, limit, rows, sentence in zip(tables, limits, uniform, results, strict=True):
        for values, hypothesis in zip(rows, sentence, strict=True):
            words = [BEGIN]
            while words[-1] != END:
                value = values[len(words) - 1 : len(words)]
                token = int(drawn_tokens(table[words[-1]][None], value, SamplingConfig(**options)))
                words.append(END if len(words) == limit else token)
            total = sum(float(table[last, token]) for last, token in itertools.pairwise(words))
            assert hypothesis.tokens == words[1:-1]
            assert hypothesis.log_probability == pytest.approx(total)  # the model's, at any temperature
            assert hypothesis.score == pytest.approx(total / (len(words) - 1))


def test_frequencies_are_the_probabilities() -> None:
    tables = random_tables(1, 6, seed=1, spread=1.0)
    tables[0, :, [PAD, BEGIN]] = -math.inf
    tables = tables.log_softmax(dim=-1)
    uniform = numbers(11, [(0,)], samples=20_000, steps=3)
    counts = Counter(tuple(hypothesis.tokens) for hypothesis in samples(tables, uniform, [3])[0])
    for words in [(), (4,), (5,), (4, 4), (5, 4), (1, 5)]:
        path = [BEGIN, *words] + [END] * (len(words) < 2)  # at the limit END is no choice
        probability = math.exp(sum(float(tables[0, last, token]) for last, token in itertools.pairwise(path)))
        deviation = math.sqrt(probability * (1 - probability) / 20_000)
        assert abs(counts[words] / 20_000 - probability) < 4 * deviation, words


def test_nan_is_an_error() -> None:
    tables = random_tables(1, 6, seed=1, spread=1.0)
    tables[0, BEGIN, 5] = math.nan
    with pytest.raises(NotNumbersError, match=r"token 1 .*NaN"):
        samples(tables, numbers(1, [(0,)], samples=1, steps=3), [3])


def test_what_would_follow_a_sample_that_has_ended_does_not_matter() -> None:
    """Of two samples the first ends at once, and the model has nothing but NaN to say after END."""
    tables = torch.full((1, 6, 6), -math.inf)
    tables[0, BEGIN, [END, 4]] = math.log(0.5)
    tables[0, END] = math.nan
    tables[0, 4, [END, 5]] = math.log(0.5)
    tables[0, 5, END] = 0.0
    (hypotheses,) = samples(tables, torch.tensor([[[0.1, 0.9, 0.9, 0.9], [0.9, 0.9, 0.9, 0.9]]]).double(), [4])
    assert [hypothesis.tokens for hypothesis in hypotheses] == [[], [4, 5]]


def test_no_possible_end_at_the_limit_is_an_error() -> None:
    tables = torch.full((1, 6, 6), -math.inf)
    tables[0, BEGIN, 4] = 0.0
    with pytest.raises(NotNumbersError, match="the probability 0"):
        samples(tables, numbers(1, [(0,)], samples=1, steps=1), [1])


def test_numbers_belong_to_the_seed_the_place_and_the_sample() -> None:
    several = numbers(5, [(0, 0), (7, 0), (7, 1)], samples=3, steps=4)
    assert several.shape == (3, 3, 4)
    assert several.dtype == torch.float64
    assert len(several.unique()) == 36
    assert torch.equal(numbers(5, [(7, 0)], samples=2, steps=2)[0], several[1, :2, :2])
    assert not torch.equal(numbers(6, [(7, 0)], samples=3, steps=4)[0], several[1])


# ----------------------------------------------------------------------------------------------------- the translator


@pytest.fixture(scope="module")
def translator(vocabularies: Vocabularies) -> Translator:
    """A random network in float64, where a batch can change what is drawn only through a mistake."""
    return random_translator(vocabularies, scale=2.0, longest_segment=40)


OPTIONS = {"max_length_ratio": 0.5, "sampling": SamplingConfig(temperature=0.8, top_p=0.95, seed=3)}


def pieces(translations: list[list[Translation]]) -> list[list[list[str]]]:
    return [[translation.tokens for translation in several] for several in translations]


@pytest.mark.parametrize("n_best", [1, 3])
def test_neither_batches_nor_other_lines_change_what_is_drawn_for_a_line(translator, text, n_best) -> None:
    generator = random.Random(2)
    lines = [*text, *(line[: len(line) // 2] for line in text), "", " ".join(text[:3])]  # one is cut into segments
    options = {**OPTIONS, "n_best": n_best}
    for _ in range(3):
        generator.shuffle(lines)
        alone = [
            next(reversed(list(translate(translator, [""] * i + [line], **options)))) for i, line in enumerate(lines)
        ]
        for size in (1, 7, 64):  # sentences of a batch, or so
            together = list(translate(translator, lines, batch_tokens=31 * size, **options))
            assert pieces(together) == pieces(alone)
            for several, expected in zip(together, alone, strict=True):
                assert [translation.score for translation in several] == pytest.approx(
                    [translation.score for translation in expected], abs=1e-9
                )


def test_the_seed_and_the_place_of_a_line_decide(translator, text) -> None:
    def drawn(seed: int, lines: list[str]) -> list[str]:
        sampling = SamplingConfig(seed=seed)
        return [best.text for best, *_ in translate(translator, lines, sampling=sampling, max_length_ratio=0.5)]

    assert drawn(1, text) == drawn(1, text)
    assert all(one != other for one, other in zip(drawn(1, text), drawn(2, text), strict=True))
    assert len(set(drawn(1, [text[0]] * 5))) == 5


def test_samples_are_sorted_by_score(translator, text) -> None:
    single = pieces(list(translate(translator, text, **OPTIONS)))
    for several, (one,) in zip(translate(translator, text, n_best=9, **OPTIONS), single, strict=True):
        assert len(several) == 9
        assert [translation.score for translation in several] == sorted(
            (translation.score for translation in several), reverse=True
        )
        assert one in [translation.tokens for translation in several]  # the first sample is the one that is drawn alone


def test_the_most_probable_piece_of_every_step_is_greedy_search(translator, text) -> None:
    greedy = list(translate(translator, text, beam_size=1, max_length_ratio=0.5))
    drawn = list(translate(translator, text, sampling=SamplingConfig(top_k=1), max_length_ratio=0.5))
    assert pieces(drawn) == pieces(greedy)
    for (one,), (other,) in zip(drawn, greedy, strict=True):
        assert one.score == pytest.approx(other.score)


def test_rules_hold_for_samples(translator, text) -> None:
    rules = {"minimum_length": 12, "no_repeat_ngram_size": 1, "suppress_unknown": True}
    free = [best.tokens for best, *_ in translate(translator, text, **OPTIONS)]
    assert any(len(tokens) > len(set(tokens)) for tokens in free)
    for several in translate(translator, text, n_best=3, **OPTIONS, **rules):
        for translation in several:
            assert len(translation.tokens) == len(set(translation.tokens)) >= 12
            assert "<unk>" not in translation.tokens


def test_a_blank_line_stays_blank(translator) -> None:
    assert list(translate(translator, ["", " "], n_best=3, **OPTIONS)) == [[Translation("", 0.0, [])]] * 2
