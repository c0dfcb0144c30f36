"""Unknown words replaced: weights set by hand, a model that attends along the diagonal, and a random network."""

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from nmt.config.schema import SubwordsConfig
from nmt.data.subwords import Subwords, Vocabularies
from nmt.data.vocabulary import word_model
from nmt.data.words import UNKNOWN_MARK, PieceWords
from nmt.decoding.text.alignment import Weights, soft_alignment
from nmt.decoding.text.glossary import Glossary
from nmt.decoding.text.marks import pieces as pieces_of
from nmt.decoding.text.unknown_words import replacements
from nmt.decoding.translator import Translator
from nmt.models.decoder import Outputs
from nmt.symbols import UNKNOWN
from tests.decoding.conftest import TEXT, CopyModel, words_of_tokens
from tests.translating import translate

SIZES = {"word": 51, "char": 60, "bpe": 71, "unigram": 60}
KNOWN = "A dog runs across the green field."  # a line of TEXT


def subwords(kind: str, **settings: object) -> Subwords:
    config = SubwordsConfig.model_validate({"type": kind, "size": SIZES[kind], **settings})
    return Subwords.train(TEXT, settings=config)


@pytest.fixture(scope="module")
def models() -> dict[str, Subwords]:
    """A model of each type; capitals such as X, digits and Ü are unknown to them."""
    return {kind: subwords(kind) for kind in SIZES}


class DiagonalModel(CopyModel):
    """Copies its source, unknown pieces too, and attends to source piece t at step t; END and padding get more."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__(vocabulary)
        self.decoder = SimpleNamespace(attention=SimpleNamespace(score=SimpleNamespace(aligns=True)))
        self.output_weight = nn.Parameter(torch.zeros(vocabulary, 1))
        self.forced: list[tuple[int, int]] = []

    def forward(
        self, source: Tensor, source_lengths: Tensor, target_input: Tensor, rows: Tensor | None = None
    ) -> Outputs:
        assert not self.training
        if rows is not None:  # of several translations of one source
            source, source_lengths = source[rows], source_lengths[rows]
        self.forced.append((len(source), int(source_lengths.max())))
        weights = torch.full((len(source), target_input.size(1), source.size(1)), 0.01)
        weights.diagonal(dim1=1, dim2=2).fill_(0.5)
        for row, length in enumerate(source_lengths.tolist()):
            weights[row, :, length - 1 :] = 0.9
        return Outputs(torch.zeros(*target_input.shape, 1), weights)


def diagonal(pieces: Subwords, **options: object) -> Translator:
    return Translator([DiagonalModel(pieces.size)], Vocabularies(pieces, pieces), **options)


def translated(translator: Translator, lines: Sequence[str], **options: object) -> list[str]:
    """Of the lines as they are: nothing is kept from the model."""
    return [best[0].text for best in translate(translator, lines, protect=[], **options)]


# ---------------------------------------------------------------------------------------------------- weights by hand


def replaced(
    pieces: Subwords, text: str, weights: list[list[float]], source: str, dictionary: dict[str, str] | None = None
) -> str:
    """`text`, in which "X" is an unknown character, with the attention of its unknown pieces to the source words."""
    tokens = pieces.encode(text)
    assert tokens.count(UNKNOWN) == len(weights)
    places = list(range(len(source.split())))
    rows = np.zeros((len(tokens), len(places) + 1), dtype=np.float32)
    rows[[token == UNKNOWN for token in tokens], :-1] = weights
    rows[:, -1] = 2.0  # the end of the source, which is no word
    return with_words(pieces, tokens, rows, PieceWords(source.split(), places, places), dictionary)


def with_words(
    pieces: Subwords, tokens: list[int], rows: Weights, source: PieceWords, dictionary: dict[str, str] | None = None
) -> str:
    target = words_of_tokens(tokens, pieces, mark=UNKNOWN_MARK, finer=True)
    alignment, marked = (
        soft_alignment(rows, source, target, end_links="best"),
        pieces.decode_marked(tokens, UNKNOWN_MARK),
    )
    marks = [mark for mark, _ in replacements(marked, marked, alignment, dictionary or {})]
    return "".join(part.text for part in pieces_of("", marks, marked, []))


@pytest.mark.parametrize("kind", ["char", "bpe", "unigram"])
def test_a_word_with_unknown_pieces_is_replaced_once(models: dict[str, Subwords], kind: str) -> None:
    """Two unknown pieces of one word: their weights are added, 0.4 + 0.3 against 0.5 + 0.1."""
    weights = [[0.5, 0.4], [0.1, 0.3]]
    assert replaced(models[kind], "the XaX dog", weights, "Hund Xaver") == "the Xaver dog"
    assert replaced(models[kind], "XoX", weights, "Hund Xaver") == "Xaver"


def test_in_a_word_model_each_unknown_piece_is_a_word(models: dict[str, Subwords]) -> None:
    weights = [[0.1, 0.9], [0.8, 0.2]]
    assert replaced(models["word"], "X X A", weights, "eins zwei") == "zwei eins A"
    assert replaced(models["word"], "dog X", weights[:1], "eins zwei", {"zwei": "two or\tthree"}) == "dog two or three"


def test_the_weights_of_the_pieces_of_a_source_word_are_added(models: dict[str, Subwords]) -> None:
    words = PieceWords(["Haus", "Ala"], [0, 1, 1], [0, 1, 1])
    tokens = models["bpe"].encode("X")
    assert tokens[1:] == [UNKNOWN]
    weights = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.4, 0.3, 0.2, 0.1]])
    assert with_words(models["bpe"], tokens, weights, words) == "Ala"
    weights = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.4, 0.25, 0.15, 0.2]])  # of equals the first
    assert with_words(models["bpe"], tokens, weights, words) == "Haus"


def test_where_nothing_is_attended_to_the_word_stays_unknown(models: dict[str, Subwords]) -> None:
    """As a local window that lies on END alone."""
    assert replaced(models["bpe"], "the X", [[0.0, 0.0]], "eins zwei") == f"the {UNKNOWN_MARK}"
    assert replaced(models["bpe"], "the X", [[]], "") == f"the {UNKNOWN_MARK}"


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("X", "U.S.", "U.S."),  # as it stands
        ("X.", "Xaver,", "Xaver."),  # the translation's own punctuation takes the place of the source's
        ("(X)", "Xaver", "(Xaver)"),
        ("(aXa).", "„Xaver“", "(Xaver)."),
        ("X", "(Xaver),", "(Xaver),"),
        ("X", "...", "..."),
        ("X!", "C++", "C++!"),
    ],
)
def test_punctuation(models: dict[str, Subwords], text: str, source: str, expected: str) -> None:
    assert replaced(subwords_with("().!", models), text, [[1.0]], source) == expected


@pytest.mark.parametrize(
    ("text", "weights", "source", "expected"),
    [
        ("犬はX匹!", [[0.1, 0.9]], "dog seven", "犬はseven匹!"),
        ("犬X猫X犬", [[0.1, 0.9], [0.8, 0.2]], "eins zwei", "犬zwei猫eins犬"),
        ("犬は X 匹", [[0.1, 0.9]], "dog seven", "犬は seven 匹"),
        ("XA犬", [[1.0, 0.0]], "dog seven", "dog犬"),  # a word of letters, up to the next character that is one alone
    ],
)
def test_in_a_script_without_spaces_no_sentence_is_replaced(
    models: dict[str, Subwords], text: str, weights: list[list[float]], source: str, expected: str
) -> None:
    assert replaced(subwords_with("犬は匹猫!", models), text, weights, source) == expected


def subwords_with(characters: str, models: dict[str, Subwords]) -> Subwords:
    """Characters that are known, too."""
    return Subwords.train([*TEXT, " ".join(characters)], settings=SubwordsConfig(type="char", size=90))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Hund", "dog"),
        ("Hund,", "dog,"),
        ("(Hund)", "(dog)"),
        ("U.S.", "USA"),
        ("HUND!", "hound!"),
        ("Katze", "Katze"),
    ],
)
def test_a_dictionary(models: dict[str, Subwords], source: str, expected: str) -> None:
    """The word as it stands comes first, then in lower case, then without its punctuation; else it is copied."""
    dictionary = {"Hund": "dog", "U.S.": "USA", "U.S": "wrong", "hund": "hound"}
    assert replaced(models["bpe"], "X", [[1.0]], source, dictionary) == expected


# ------------------------------------------------------------------------------------------------ a diagonal attention


@pytest.mark.parametrize("kind", SIZES)
def test_unknown_words_are_copied_as_the_line_has_them(models: dict[str, Subwords], kind: str) -> None:
    """The translation is the source; what attention finds is therefore the same word."""
    lines = [
        "A dog X123 the ÜBUNG field.",
        "",
        "Zoë7 runs",
        "the Ωmega",
        KNOWN,
        "9",
        "X Y Z",
    ]
    translator = diagonal(models[kind])
    assert translated(translator, lines, replace_unknown={}) == lines
    left = translated(translator, lines)
    assert [("⁇" in text) for text in left] == [True, False, True, True, False, True, True]
    assert left == [models[kind].decode(models[kind].encode(line)) for line in lines]


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_a_lowercased_model_copies_case_and_characters(kind: str) -> None:
    translator = diagonal(subwords(kind, lowercase=True))
    assert translated(translator, ["A DOG X１２３ The Ｇ♥Ü"], replace_unknown={}) == ["a dog X１２３ the Ｇ♥Ü"]


@pytest.mark.parametrize("kind", SIZES)
def test_lines_that_are_cut_into_segments(models: dict[str, Subwords], kind: str) -> None:
    """An unknown word is looked for in its own part of the line."""
    line = " ".join(f"A dog X{number} runs." for number in range(100))
    translator = diagonal(models[kind], longest_segment=11)
    assert translated(translator, [line, "the Q"], replace_unknown={}) == [line, "the Q"]
    assert sum(sentences for sentences, _ in translator.models[0].batches) > 20


@pytest.mark.parametrize("alignments", [False, True])
@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize(
    ("line", "prefix", "expected"),
    [
        ("Ü dog X1 the field", "Q dog", "Q dog X1 the field"),
        ("Ü dog the field", "Q dog", "Q dog the field"),
        ("ÜÜ", "QQ", "QQ"),
    ],
)
def test_the_unknown_words_of_a_prefix_stay(
    models: dict[str, Subwords], line: str, prefix: str, expected: str, kind: str, alignments: bool
) -> None:
    """Whether unknown words that follow it are replaced or there are none."""
    translator = diagonal(models[kind])
    ((best, *_),) = translate(translator, [line], prefixes=[prefix], replace_unknown={}, alignments=alignments)
    if "X" in expected or not alignments:  # else what sentencepiece writes for Q, a word by itself, is aligned
        assert best.text == expected
    if alignments:
        assert best.soft_alignment.target_words == best.text.split()
        assert len(best.soft_alignment.weights) == len(best.text.split())


def test_a_word_that_goes_on_after_the_prefix(models: dict[str, Subwords]) -> None:
    """What follows the prefix in its last word is replaced, with the source word that it attends to."""
    texts = translated(diagonal(models["char"]), ["Ü.X dog"], prefixes=["Q."], replace_unknown={})
    assert texts == ["Q.Ü.X dog"]


def test_a_dictionary_and_n_best_lists(models: dict[str, Subwords]) -> None:
    translator = diagonal(models["bpe"])
    (line,) = translate(translator, ["the X1 dog"], replace_unknown={"X1": "first"}, n_best=3, beam_size=3)
    assert line[0].text == "the first dog"
    assert all("⁇" not in translation.text for translation in line)
    assert UNKNOWN in [models["bpe"]._processor.piece_to_id(piece) for piece in line[0].tokens]  # what the model wrote


def test_only_translations_with_unknown_words_are_decoded_again(models: dict[str, Subwords]) -> None:
    translator = diagonal(models["bpe"])
    assert translated(translator, [KNOWN] * 20 + ["the X"], replace_unknown={}) == [KNOWN] * 20 + ["the X"]
    assert translator.models[0].forced == [(1, len(models["bpe"].encode("the X")) + 1)]
    translator.models[0].forced.clear()
    translated(translator, ["the X"])
    assert translator.models[0].forced == []


def test_words_are_replaced_and_aligned_from_one_forced_pass(models: dict[str, Subwords]) -> None:
    translator = diagonal(models["bpe"])
    lines = [KNOWN, "the X", "X Y"]
    options = {"replace_unknown": {}, "alignments": True, "end_links": "best"}  # the end has the most weight
    translations = list(translate(translator, lines, **options, batch_tokens=1))
    assert [best.text for best, *_ in translations] == lines
    assert [best.alignment for best, *_ in translations[1:]] == [[(0, 0), (1, 1)]] * 2
    assert sum(sentences for sentences, _ in translator.models[0].forced) == len(lines)


# -------------------------------------------------------------------------------------------------------- real networks


def test_a_text_that_would_have_something_forbidden_keeps_its_unknown_words(models: dict[str, Subwords]) -> None:
    translator = diagonal(models["bpe"])
    assert translated(translator, ["the X1 dog"], replace_unknown={"X1": "red"}, forbidden=["red dog"]) == ["the ⁇ dog"]
    assert translated(translator, ["the X1 dog"], replace_unknown={"X1": "red"}, forbidden=["blue"]) == ["the red dog"]
    kept = ["the X1 man ann@dog.org"]  # of which the dog is the source's, not the model's
    (best,) = next(translate(translator, kept, replace_unknown={"X1": "red"}, forbidden=["dog"]))
    assert best.text == "the red man ann@dog.org"


def test_marks_in_a_line_with_unknown_words(models: dict[str, Subwords]) -> None:
    """What is kept, a term, capitals, and an unknown word: each once, with links to what the line has for it."""
    translator = diagonal(models["word"])
    options = {"replace_unknown": {"Xa": "Xb"}, "glossary": Glossary({"dog": "cat", "Xc": "Xd"})}
    line = "the Xa dog runs {name} across Xc"
    (best,) = next(translate(translator, [line], alignments=True, end_links="best", **options))
    assert best.text == "the Xb cat runs {name} across Xd"
    assert best.alignment == [(place, place) for place in range(7)]


@settings(max_examples=20)
@given(
    st.lists(
        st.sampled_from(["a", "run@@ ing", "dog", "Zo@@ ë", "Zo@@ ë@@ s", "Zo@@ ing", "run@@ ë", "Ö"]),
        min_size=1,
        max_size=6,
    )
)
def test_no_word_that_was_cut_is_doubled(words: list[str]) -> None:
    cut = Subwords(word_model(["run@@", "ing", "a", "dog", "."], "@@"))
    text = " ".join(words)
    (best,) = next(translate(diagonal(cut), [text], replace_unknown={}))
    assert best.text == text.replace("run@@ ing", "runing").replace("@@ ", "")
