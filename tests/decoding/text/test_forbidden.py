"""Forbidden phrases: what a text has, what pieces spell, and how many tokens are left, against plain definitions."""

import itertools
import random
import re
from functools import reduce

import pytest

from nmt.config.schema import SubwordsConfig
from nmt.data.subwords import Subwords
from nmt.decoding.text.forbidden import Forbidden, forbidden_by
from nmt.decoding.text.required import in_word
from nmt.symbols import END, UNKNOWN
from tests.decoding.conftest import TEXT

PHRASES = ("dog", "the red", "a", "C++", "...", "so - so", "ü")


def has(text: str, phrase: str) -> bool:
    """Whether the text has the phrase as whole words: the plain definition."""
    pattern = r"\s+".join(map(re.escape, phrase.split()))
    return any(
        not (in_word(phrase[0]) and in_word(text[: match.start()][-1:]))
        and not (in_word(phrase[-1]) and in_word(text[match.start() + len(match[1]) :][:1]))
        for match in re.finditer(f"(?=({pattern}))", text)
    )


@pytest.fixture(scope="module")
def cut_words(tmp_path_factory: pytest.TempPathFactory) -> Subwords:
    path = tmp_path_factory.mktemp("words") / "vocabulary"
    path.write_text("d@@\nog\ndog\ndo@@\ng\nthe\nr@@\ned\nred\na\na@@\n...\nC@@\n++\n", encoding="utf-8")
    return Subwords.of_vocabulary(path, joiner="@@")


@pytest.fixture(scope="module", params=["bpe", "bytes", "lower case", "word", "cut words"])
def target(request: pytest.FixtureRequest) -> Subwords:
    if request.param == "cut words":
        return request.getfixturevalue("cut_words")
    settings = {
        "bpe": SubwordsConfig(size=71),
        "bytes": SubwordsConfig(type="unigram", size=320, byte_fallback=True),
        "lower case": SubwordsConfig(size=60, lowercase=True),
        "word": SubwordsConfig(type="word", size=50),
    }
    return Subwords.train([*TEXT, "dog dogs a the red C++ ... so - so"], settings=settings[request.param])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a dog", "dog"),
        ("dogs hotdog dog1", None),
        ("hot dog-house", "dog"),
        ("the  red\tcar", "the red"),
        ("the reds", None),
        ("xC++", None),
        ("C++x", "C++"),
        ("wait...", "..."),
        ("", None),
    ],
)
def test_whole_words_are_found(text: str, found: str | None, cut_words: Subwords) -> None:
    forbidden = forbidden_by(("dog", "the red", "C++", "..."), cut_words)
    assert forbidden is not None
    assert forbidden.found_in(text) == found


def test_a_capital_is_forbidden_too(cut_words: Subwords) -> None:
    forbidden = forbidden_by(("dog", "Red"), cut_words)
    assert forbidden is not None
    assert [text for text in ("dog", "Dog", "DOG", "Red", "red") if forbidden.found_in(text)] == ["dog", "Dog", "Red"]


def test_the_state_of_random_pieces_is_that_of_their_text(target: Subwords) -> None:
    """Half of the pieces are of texts with phrases, cut at random; bytes may make half of a character."""
    forbidden = Forbidden([target.normalized(phrase) for phrase in PHRASES], target)
    draw, found = random.Random(1), 0
    spelled = [target.normalized(phrase) for phrase in PHRASES]
    parts = [token for phrase in PHRASES for token in target.encode(phrase)]
    for number in range(1500):
        some = draw.choice([parts, range(4, target.size), [UNKNOWN, *range(max(4, target.size - 60), target.size)]])
        tokens = draw.choices(some, k=draw.randint(0, 6))
        state, text = reduce(forbidden.after, tokens, forbidden.start), target.decode(tokens)
        expected = any(has(text, phrase) for phrase in spelled)
        assert (forbidden.found_in(text) is not None) == expected
        if state is None and not expected:  # a part of a character was to make a word longer
            assert any(isinstance(target.spellings()[token], int) for token in tokens)
            continue
        assert forbidden.may_end(state) != expected, (text, tokens)
        if number % 50 == 0:  # what is worked out for many tokens at once is right for each
            after = [forbidden.after(state, token) for token in range(target.size)]
            possible = [forbidden.may_end(one) or (one and forbidden.way_out(one) is not None) for one in after]
            assert [not one for one in possible[4:]] == forbidden.barred(state, False)[4:].tolist()
        found += expected
    assert 100 < found < 1400


def test_what_is_barred_before_the_last_token_and_before_others() -> None:
    """Tried with all texts of a, b and c: what must not end needs a token after which it may."""
    target = Subwords.train(["a b c ab bc"], settings=SubwordsConfig(size=12))
    phrases = ("a", "ab", "bb", "ac", "c b")
    forbidden = Forbidden([target.normalized(phrase) for phrase in phrases], target)
    usual = range(4, target.size)

    def may_stand(*tokens: int) -> bool:
        return not any(has(target.decode(tokens), phrase) for phrase in phrases)

    for tokens in itertools.chain.from_iterable(itertools.product(usual, repeat=length) for length in range(3)):
        state = reduce(forbidden.after, tokens, forbidden.start)
        assert forbidden.barred(state, True)[END] == (not may_stand(*tokens))
        for is_last in (True, False):
            barred = forbidden.barred(state, is_last)
            for token in usual:
                ends = may_stand(*tokens, token)
                goes_on = not is_last and any(may_stand(*tokens, token, more) for more in usual)
                assert barred[token] != (ends or goes_on), target.pieces([*tokens, token])
    assert forbidden.ways_out
    assert set(forbidden.ways_out) < set(usual)


def test_ten_thousand_phrases(cut_words: Subwords) -> None:
    draw = random.Random(2)
    phrases = tuple("".join(draw.choices("abcdefgh", k=9)) for _ in range(10_000))  # as many as options allow
    forbidden = forbidden_by(phrases, cut_words)
    assert forbidden is not None
    assert forbidden.found_in(f"the {phrases[-1]}!") == phrases[-1]
    assert forbidden.found_in(f"the {phrases[-1]}x!") is None
