"""Translations without forbidden phrases: what remains of an exhaustive search, and none in any search."""

import re
from typing import Any

import numpy as np
import pytest

from nmt.config.schema import SubwordsConfig
from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.search.hypotheses import LengthPenalty
from nmt.decoding.search.rules import MinimumLength, NoForbidden, NoRepeatedNgrams, Rule
from nmt.decoding.shortlist import Shortlist, fingerprints
from nmt.decoding.text.forbidden import Forbidden
from nmt.decoding.text.glossary import Glossary
from nmt.decoding.translator import TranslationOptions, Translator
from nmt.errors import UserError
from nmt.symbols import BEGIN, END, PAD
from tests.decoding.conftest import random_translator
from tests.decoding.tables import assert_best, random_tables, scores_of_all, table_beam_search
from tests.decoding.text.test_forbidden import has
from tests.translating import translate

PHRASES = ("a", "ab", "bb", "c a", "A")
LIMITS = [5, 3, 2, 1]
LINES = ["A dog runs across the field.", "Two men", "Is the boy playing?", "", "In the dress!"]


@pytest.fixture(scope="module")
def few() -> Subwords:
    """▁, a, b, c and pieces of two or three."""
    return Subwords.train(["a b c ab bc a"], settings=SubwordsConfig(size=11))


def rule(few: Subwords, limits: list[int]) -> NoForbidden:
    forbidden = Forbidden([few.normalized(phrase) for phrase in PHRASES], few)
    return NoForbidden(forbidden, np.array(limits))


@pytest.mark.parametrize("length_penalty", ["none", "average"])
def test_what_remains_of_an_exhaustive_search(few: Subwords, length_penalty: LengthPenalty) -> None:
    tables = random_tables(len(LIMITS), few.size, seed=3)
    results = table_beam_search(
        tables, beam_size=10_000, limits=LIMITS, length_penalty=length_penalty, n_best=9, rules=[rule(few, LIMITS)]
    )
    usual = [token for token in range(few.size) if token not in (PAD, BEGIN, END)]
    for transitions, limit, result in zip(tables.tolist(), LIMITS, results, strict=True):
        every = scores_of_all(transitions, usual, limit, length_penalty)
        left = {words: every[words] for words in every if not any(has(few.decode(words), one) for one in PHRASES)}
        assert_best(result, left, 9)


@pytest.mark.parametrize("beam_size", [1, 2, 11])
@pytest.mark.parametrize("has_others", [False, True])
def test_there_is_always_a_way_to_the_end(few: Subwords, beam_size: int, has_others: bool) -> None:
    """Also where the model likes nothing but what is forbidden, and where other rules leave nothing else."""
    tables = random_tables(40, few.size, seed=4, spread=9.0)
    limits = [1 + sentence % 7 for sentence in range(40)]

    def texts_of(places: list[int]) -> list[str]:
        here = [limits[place] for place in places]
        others: list[Rule] = [MinimumLength(np.array(here) - 1), NoRepeatedNgrams(1)] if has_others else []
        rules = [*others, rule(few, here)]
        results = table_beam_search(
            tables[places], beam_size=beam_size, limits=here, length_penalty="none", rules=rules
        )
        return [few.decode(best.tokens) for best, *_ in results]

    for texts in (texts_of([*range(40)]), [texts_of([place])[0] for place in range(40)]):
        assert not any(has(text, phrase) for text in texts for phrase in PHRASES)
        assert len(set(texts)) > 3


@pytest.fixture(scope="module")
def translator(vocabularies: Vocabularies) -> Translator:
    return random_translator(vocabularies, scale=4.0, longest_segment=250)


@pytest.fixture(scope="module")
def listing(vocabularies: Vocabularies) -> Translator:
    """The same with a shortlist that has few letters."""
    size = vocabularies.target.size
    often = np.arange(4, 30)
    shortlist = Shortlist(np.arange(size)[:, None], often, size, fingerprints(vocabularies))
    made = random_translator(vocabularies, scale=4.0, longest_segment=250)
    return Translator(made.models, vocabularies, shortlist=shortlist)


SEARCHES: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"beam_size": 3, "n_best": 3},
    {"beam_size": 12},
    {"beam_size": 4, "n_best": 2, "diversity": 0.5},
    {"sampling": {"seed": 1}, "n_best": 3},
    {"sampling": {"seed": 2, "top_k": 1}},
    {"beam_size": 3, "prefixes": ["Two", "Wo", "", "", "A do"]},
    {"beam_size": 6, "constraints": ["men", "field\tis on", "", "", "ball"]},
    {"beam_size": 2, "no_repeat_ngram_size": 1, "minimum_length": 9},
    {"beam_size": 3, "max_length_ratio": 0.0, "max_length_extra": 9},
]
REQUIRED = {"Two", "Wo", "A", "a", "do", "men", "field", "is", "on", "ball"}


@pytest.mark.parametrize(
    ("kind", "search"),
    [*(("translator", search) for search in SEARCHES), *(("listing", SEARCHES[number]) for number in (0, 1, 4, 6))],
    ids=str,
)
def test_no_search_writes_them(kind: str, search: dict[str, Any], request: pytest.FixtureRequest) -> None:
    """Forbidden are all words that a search writes without: then it writes others."""
    translator: Translator = request.getfixturevalue(kind)
    search = {"max_length_ratio": 0.4, **search}
    free = list(translate(translator, LINES, **search))
    words = {word for several in free for one in several for word in re.findall(r"\w+", one.text)} - REQUIRED
    bound = list(translate(translator, LINES, **search, forbidden=sorted(words)))
    texts = [[one.text for one in several] for several in bound]
    assert len(words) > 3
    assert not any(has(text, word) for several in texts for text in several for word in words)
    assert all(texts)
    alone = [
        next(translate(translator, [line], **_of_line(search, place), forbidden=sorted(words)))
        for place, line in enumerate(LINES)
    ]
    assert [[one.text for one in several] for several in alone] == texts
    if kind == "translator":  # a shortlist gets a letter with which words are made longer
        assert list(translate(translator, LINES, **search, forbidden=["Unheard"])) == free


def _of_line(search: dict[str, Any], place: int) -> dict[str, Any]:
    beside = {name: [search[name][place]] for name in ("prefixes", "constraints") if name in search}
    return {**search, **beside, "first": place}


def test_what_is_required_and_forbidden_is_told_at_once(translator: Translator) -> None:
    options = {"prefixes": ["", "The dog"], "constraints": ["in the lake\tcold", "men"]}
    with pytest.raises(UserError) as error:
        list(translate(translator, LINES[:2], forbidden=["in the", "dog"], **options))
    assert [*error.value.messages] == [
        "'in the lake', required by the constraints of line 1, has the forbidden 'in the'; leave one out",
        "'The dog', required by the prefix of line 2, has the forbidden 'dog'; leave one out",
    ]
    with pytest.raises(UserError, match="'cold dog', required by the glossary, has the forbidden 'dog'"):
        translator.check(TranslationOptions(glossary=Glossary({"man": "cold dog"}), forbidden=("dog",)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"forbidden": "dog"}, "`forbidden` is 'dog'"),
        ({"forbidden": ["dog", 3]}, "`forbidden` is 3"),
        ({"forbidden": ["dog", " "]}, "`forbidden` is ' '"),
        ({"forbidden": ["x" * 101]}, "String should have at most 100 characters"),
        ({"forbidden": ["x"] * 10_001}, "Tuple should have at most 10000 items"),
    ],
)
def test_what_is_no_list_of_phrases(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        TranslationOptions(**options)
    assert message in str(error.value)


def test_constraints_that_have_no_room_without_what_is_forbidden(translator: Translator) -> None:
    """A line begins with "ball", and has room for one more piece between it and "cold", all of which are forbidden."""
    target = translator.vocabularies.target
    pieces = {target.decode([token]).strip() for token in range(target.size)} - {"", "ball", "cold"}
    tight = {"max_length_ratio": 0.0, "max_length_extra": 0, "constraints": ["cold"], "prefixes": ["ball"]}
    (best,) = next(translate(translator, ["A dog"], **tight))
    assert "cold" in best.text
    with pytest.raises(UserError, match="constraints: no translation was found that has them and nothing forbidden"):
        next(translate(translator, ["A dog"], forbidden=[*pieces, "ball cold"], **tight))
