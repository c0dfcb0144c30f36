"""Sampling: by hand on tables, and through the translator, where batches must not be seen."""

import itertools
import math
import random
from collections import Counter

import numpy as np
import pytest

from nmt.config.schema import SamplingConfig
from nmt.data.subwords import Vocabularies
from nmt.decoding.search.choices import NotNumbersError
from nmt.decoding.search.hypotheses import Array
from nmt.decoding.search.loop import search
from nmt.decoding.search.sampling import Draws, arrivals, kept_probabilities, keys
from nmt.decoding.translator import Translation, Translator
from nmt.symbols import BEGIN, END, PAD
from tests.decoding.conftest import random_translator
from tests.decoding.tables import Rows, key_for, random_tables, table_step
from tests.translating import translate

A, B, C = 4, 5, 6
#        PAD  UNK  BEGIN END   A    B     C
ROW = [0.20, 0.0, 0.30, 0.05, 0.1, 0.25, 0.10]  # of what can be drawn: END 0.1, A 0.2, B 0.5, C 0.2


def kept(**options: float) -> dict[int, float]:
    """The probabilities of the tokens that may be drawn, which sum to 1."""
    with np.errstate(divide="ignore"):
        row = np.log([ROW])
    probabilities = kept_probabilities(row, SamplingConfig(**options))[0]
    return {token: share for token, share in enumerate((probabilities / probabilities.sum()).tolist()) if share}


def test_pad_begin_and_what_has_no_probability_are_never_drawn() -> None:
    assert kept() == pytest.approx({END: 0.1, A: 0.2, B: 0.5, C: 0.2})
    assert list(kept(temperature=100.0)) == [END, A, B, C]


def test_the_temperature() -> None:
    """p ∝ p^(1/T): with T = 0.5 the squares 1, 4, 25, 4 of 34."""
    assert kept(temperature=0.5) == pytest.approx({END: 1 / 34, A: 4 / 34, B: 25 / 34, C: 4 / 34})
    assert kept(temperature=1e-300) == {B: 1.0}


def test_top_k() -> None:
    assert kept(top_k=1) == {B: 1.0}
    assert kept(top_k=2) == pytest.approx({A: 2 / 7, B: 5 / 7})  # A goes before C, its equal
    assert kept(top_k=99) == kept()


def test_the_nucleus() -> None:
    assert kept(top_p=0.49) == {B: 1.0}
    assert kept(top_p=0.51) == pytest.approx({A: 2 / 7, B: 5 / 7})
    assert list(kept(top_p=0.9)) == [A, B, C]  # END is not needed
    assert list(kept(top_p=0.91)) == [END, A, B, C]
    assert kept(top_p=1.0) == kept()


def test_the_nucleus_is_that_of_the_top_k() -> None:
    # of the three A, B, C with 0.2, 0.5, 0.2 of 0.9, A and B have 0.78, and B alone 0.56
    assert kept(top_k=3, top_p=0.55) == {B: 1.0}
    assert list(kept(top_k=3, top_p=0.77)) == [A, B]


# ------------------------------------------------------------------------------------------------------------ the race

ALL = 2**64 - 1


def split_mix(key: int, number: int) -> int:
    """Number `number` of SplitMix64 that starts at `key`, as Steele, Lea & Flood (2014) write it."""
    bits = (key + (number + 1) * 0x9E3779B97F4A7C15) & ALL
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & ALL
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & ALL
    return bits ^ (bits >> 31)


def test_arrivals_are_from_split_mix() -> None:
    assert split_mix(1234567, 0) == 6457827717110365317  # as other implementations have it
    assert split_mix(1234567, 1) == 3203168211198807973
    starts, ids = [0, 1234567, -1, -(2**63), 2**63 - 1], [0, 3, 5, 31_999]
    times = arrivals(np.array(starts), np.array(ids))
    for start, row in zip(starts, times.tolist(), strict=True):
        for number, time in zip(ids, row, strict=True):
            uniform = ((split_mix(start & ALL, number) >> 12) + 0.5) / 2**52
            assert time == pytest.approx(-math.log1p(-uniform), rel=1e-5)


def test_a_piece_has_the_same_chance_among_others() -> None:
    """As where a shortlist leaves some out: what is drawn from all of them, and is on the list, is drawn from it."""
    drawn = keys(7, [(place,) for place in range(500)], samples=1, steps=1).flatten()
    probabilities = np.random.default_rng(1).random(50)
    ids = np.arange(0, 50, 3)
    every = (probabilities / arrivals(drawn, np.arange(50))).argmax(axis=1)
    some = ids[(probabilities[ids] / arrivals(drawn, ids)).argmax(axis=1)]
    assert np.array_equal(every[every % 3 == 0], some[every % 3 == 0])
    assert (every % 3 == 0).sum() > 100


# ------------------------------------------------------------------------------------------------- whole translations


def samples(tables: Array, drawn: Array, limits: list[int], **options: float) -> list[list]:
    return search(
        table_step(tables),
        Rows(np.arange(len(tables))),
        Draws(drawn, SamplingConfig(**options)),
        length_penalty="average",
        max_lengths=np.array(limits),
        n_best=1,
    )


@pytest.mark.parametrize("options", [{}, {"temperature": 0.3}, {"top_k": 2}, {"top_p": 0.6}], ids=str)
def test_agrees_with_one_translation_at_a_time(options: dict[str, float]) -> None:
    limits = [1, 2, 3, 5, 7]
    tables = random_tables(5, 8, seed=7, spread=1.0)
    drawn = keys(3, [(place,) for place in range(5)], samples=4, steps=7)
    results = samples(tables, drawn, limits, **options)
    assert [len(sentence) for sentence in results] == [4] * 5
    for table, limit, rows, sentence in zip(tables, limits, drawn, results, strict=True):
        for of_sample, hypothesis in zip(rows, sentence, strict=True):
            words = [BEGIN]
            while words[-1] != END:
                times = arrivals(of_sample[len(words) - 1 : len(words)], np.arange(8))
                token = int((kept_probabilities(table[words[-1]][None], SamplingConfig(**options)) / times).argmax())
                words.append(END if len(words) == limit else token)
            total = sum(float(table[last, token]) for last, token in itertools.pairwise(words))
            assert hypothesis.tokens == words[1:-1]
            assert hypothesis.log_probability == pytest.approx(total)  # the model's, at any temperature
            assert hypothesis.score == pytest.approx(total / (len(words) - 1))


def test_frequencies_are_the_probabilities() -> None:
    tables = random_tables(1, 6, seed=1, spread=1.0)
    tables[0, :, [PAD, BEGIN]] = -math.inf
    tables -= np.log(np.exp(tables).sum(axis=-1, keepdims=True))
    drawn = keys(11, [(0,)], samples=8_000, steps=3)
    counts = Counter(tuple(hypothesis.tokens) for hypothesis in samples(tables, drawn, [3])[0])
    for words in [(), (4,), (5,), (4, 4), (5, 4), (1, 5)]:
        path = [BEGIN, *words] + [END] * (len(words) < 2)  # at the limit END is no choice
        probability = math.exp(sum(float(tables[0, last, token]) for last, token in itertools.pairwise(path)))
        deviation = math.sqrt(probability * (1 - probability) / 8_000)
        assert abs(counts[words] / 8_000 - probability) < 4 * deviation, words


def test_nan_is_an_error() -> None:
    tables = random_tables(1, 6, seed=1, spread=1.0)
    tables[0, BEGIN, 5] = math.nan
    with pytest.raises(NotNumbersError, match=r"token 1 .*NaN"):
        samples(tables, keys(1, [(0,)], samples=1, steps=3), [3])


def test_what_would_follow_a_sample_that_has_ended_does_not_matter() -> None:
    """Of two samples the first ends at once, and the model has nothing but NaN to say after END."""
    tables = np.full((1, 6, 6), -math.inf)
    tables[0, BEGIN, [END, 4]] = math.log(0.5)
    tables[0, END] = math.nan
    tables[0, 4, [END, 5]] = math.log(0.5)
    tables[0, 5, END] = 0.0
    end = key_for(END, 4)
    (hypotheses,) = samples(tables, np.array([[[end] * 4, [key_for(4, END), key_for(5, END), end, end]]]), [4])
    assert [hypothesis.tokens for hypothesis in hypotheses] == [[], [4, 5]]


def test_no_possible_end_at_the_limit_is_an_error() -> None:
    tables = np.full((1, 6, 6), -math.inf)
    tables[0, BEGIN, 4] = 0.0
    with pytest.raises(NotNumbersError, match="the probability 0"):
        samples(tables, keys(1, [(0,)], samples=1, steps=1), [1])


def test_keys_belong_to_the_seed_the_place_and_the_sample() -> None:
    several = keys(5, [(0, 0), (7, 0), (7, 1)], samples=3, steps=4)
    assert several.shape == (3, 3, 4)
    assert several.dtype == np.int64
    assert len(np.unique(several)) == 36
    assert np.array_equal(keys(5, [(7, 0)], samples=2, steps=2)[0], several[1, :2, :2])
    assert not np.array_equal(keys(6, [(7, 0)], samples=3, steps=4)[0], several[1])


# ----------------------------------------------------------------------------------------------------- the translator


@pytest.fixture(scope="module")
def translator(vocabularies: Vocabularies) -> Translator:
    """A random network in float64, where a batch can change what is drawn only through a mistake."""
    return random_translator(vocabularies, scale=2.0, longest_segment=40)


OPTIONS = {"max_length_ratio": 0.5, "sampling": SamplingConfig(temperature=0.8, top_p=0.95, seed=3)}


def pieces(translations: list[list[Translation]]) -> list[list[list[str]]]:
    return [[translation.tokens for translation in several] for several in translations]


def test_neither_batches_nor_other_lines_change_what_is_drawn_for_a_line(translator, text) -> None:
    generator = random.Random(2)
    lines = [*text, *(line[: len(line) // 2] for line in text), "", " ".join(text[:3])]  # one is cut into segments
    options = {**OPTIONS, "n_best": 3}
    generator.shuffle(lines)
    alone = [next(reversed(list(translate(translator, [""] * i + [line], **options)))) for i, line in enumerate(lines)]
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
