"""Subword models: text to ids and back, by sentencepiece, with the special symbols of `nmt.symbols`.

A vocabulary of words becomes a sentencepiece model too, so that it goes wherever they go: into caches and model files.
Its words are looked up and written as they are, which sentencepiece would not do with a word that has "▁" in it.

It knows sentencepiece and its training settings; it knows no corpus files and no cache. References: Sennrich et al.
2016 (BPE), Kudo 2018 (unigram models).
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto, TrainerSpec  # type: ignore[attr-defined]
from sentencepiece.sentencepiece_pb2 import SentencePieceText  # type: ignore[attr-defined]

from nmt.config.schema import SubwordSampling, SubwordsConfig
from nmt.data.corpus import unreadable
from nmt.data.segmentation import DAMAGED, WORD_START, Segmenter, read_model
from nmt.data.vocabulary import joiner_of, read_vocabulary, word_model
from nmt.errors import UserError
from nmt.symbols import BEGIN, END, PAD, PIECES, UNKNOWN

# sentencepiece drops training lines above some length, and its BPE trainer cannot handle words of 2 ** 16 characters or
# more. Lines are split instead: 3000 characters stay below both limits even if normalization expands one character to
# 18 (U+FDFA), the most that NFKC does.
_LINE_CHARACTERS = 3000
_LINE_BYTES = 4 * _LINE_CHARACTERS
_FEW = 100  # texts: encoded before sentencepiece has even started its threads
_THREADS = 4  # fixed, so that a model does not depend on the machine
# What sentencepiece turns its status codes into, and what the binding raises for numbers beyond 32 bits
_TRAINER_ERRORS = (RuntimeError, SyntaxError, LookupError, ValueError, OverflowError, SystemError)
_SPECIAL_NAMES = ("pad", "unk", "bos", "eos")  # sentencepiece's names for PIECES
_SPECIAL = frozenset((PAD, BEGIN, END))
UNKNOWN_TEXT = "⁇"  # what sentencepiece writes for an unknown piece
_WORDS = 1 << 17  # words whose ids a word model keeps in memory


class Subwords:
    """One sentencepiece model. `size` is the number of pieces, `model` the serialized model."""

    def __init__(self, model: bytes) -> None:
        """Load a serialized model.

        Raises:
            ValueError: the bytes are not a sentencepiece model, or one with special ids unlike `nmt.symbols`.
        """
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError:
            raise ValueError(DAMAGED) from None
        self.size: int = self._processor.get_piece_size()
        if tuple(getattr(self._processor, f"{name}_id")() for name in _SPECIAL_NAMES) != (PAD, UNKNOWN, BEGIN, END):
            raise ValueError("a subword model whose special symbols have other ids")
        settings = read_model(model)
        kind = settings.trainer_spec.model_type
        self.of_words = kind == TrainerSpec.WORD  # whether all pieces are whole words
        mark = joiner_of(settings) if self.of_words else None
        self.is_listed = mark is not None  # whether its words are those of a vocabulary, and not what it learned
        self.joiner = mark or ""  # the end of a piece that the next one continues, such as "@@"

    @staticmethod
    def train(lines: Iterable[str], *, settings: SubwordsConfig, corpus: str = "this corpus") -> "Subwords":
        """Train a model on the lines, which are read once; equal lines give an equal model.

        `corpus` names the text in messages. The settings must not contradict each other; see `nmt.config`.

        Raises:
            UserError: the text is blank, or has too many characters for its size, or sentencepiece fails.
            Exception: whatever reading the lines raises.
        """
        failures: list[BaseException] = []
        text = _bounded(_noting(lines, failures))
        first = next(text, None)
        if first is None:
            raise UserError(_blank(corpus))  # some releases of sentencepiece would end the process
        writer = io.BytesIO()
        special: dict[str, Any] = {}
        for index, (name, piece) in enumerate(zip(_SPECIAL_NAMES, PIECES, strict=True)):
            special |= {f"{name}_id": index, f"{name}_piece": piece}
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=chain([first], text),
                model_writer=writer,
                model_type=settings.type,
                vocab_size=settings.size,
                hard_vocab_limit=False,  # a text of few words has fewer pieces
                character_coverage=settings.character_coverage,
                byte_fallback=settings.byte_fallback,
                normalization_rule_name=settings.normalization + ("_cf" if settings.lowercase else ""),  # case folding
                max_sentence_length=_LINE_BYTES,
                input_sentence_size=0,
                num_threads=_THREADS,
                minloglevel=2,
                **special,
            )
            return Subwords(writer.getvalue())
        except _TRAINER_ERRORS as error:
            if failures:
                raise failures[0] from None
            raise UserError(_explained(str(error), settings, corpus)) from None

    @staticmethod
    def from_file(path: Path) -> "Subwords":
        """Load a file by whatever trained it: its pieces get other ids, behind the special symbols, and cut text alike.

        Raises:
            UserError: the file cannot be read, or is not a sentencepiece model.
        """
        try:
            return Subwords(_with_special_symbols(path.read_bytes()))
        except OSError as error:
            raise UserError(unreadable(path, error)) from None
        except ValueError as error:
            raise UserError(f"{path}: {error}") from None

    @staticmethod
    def of_vocabulary(path: Path, *, joiner: str = "") -> "Subwords":
        """The words of a vocabulary file; those that end with `joiner` are pieces that the next word continues.

        Raises UserError where the file cannot be read, or a line of it is wrong.
        """
        return Subwords(word_model(read_vocabulary(path), joiner))

    def with_symbols(self, symbols: Iterable[str]) -> "Subwords":
        """The model with each of these words as a piece that is never cut, such as <BT>; itself if it has them all.

        New pieces come last, so all others keep their ids. A text gets the piece where a word of it begins with the
        symbol, as its normalization leaves it.

        Raises:
            ValueError: normalization does not leave one word of a symbol.
        """
        model = read_model(self.model)
        kinds = ModelProto.SentencePiece
        pieces = {piece.piece: piece for piece in model.pieces}
        has_changed = False
        for symbol in symbols:
            text = f"{WORD_START}{symbol}" if self.is_listed else self._processor.normalize(symbol)
            word = text.removeprefix(WORD_START)
            if not word or WORD_START in word or " " in word:
                raise ValueError(f"normalization makes {text!r} of {symbol}, which is no word; choose another symbol")
            if text in pieces:
                if self.of_words or pieces[text].type == kinds.USER_DEFINED:
                    continue
                pieces[text].type = kinds.USER_DEFINED  # so that it wins over its parts
            elif word in pieces and pieces[word].type == kinds.USER_DEFINED:
                continue
            else:
                pieces[text] = model.pieces.add(piece=text, type=kinds.USER_DEFINED)
            has_changed = True
        return Subwords(model.SerializeToString()) if has_changed else self

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The words that are never cut, such as <BT>."""
        kind = ModelProto.SentencePiece.USER_DEFINED
        return frozenset(
            one.piece.removeprefix(WORD_START) for one in read_model(self.model).pieces if one.type == kind
        )

    def encode(self, text: str) -> list[int]:
        """Return the ids of the best segmentation, without BEGIN and END; [] for blank text.

        A word model gives every unknown word its own unknown piece; sentencepiece by itself merges several in a row,
        and a translation would lose all but one.
        """
        if self.of_words:
            return [token for word in re.findall(r"\S+", text) for token in self._word(word)]
        return list(self._processor.encode(text, out_type=int))

    def unknown(self, counts: Mapping[str, int]) -> dict[str, int]:
        """The texts, such as characters, that have unknown pieces, most frequent first."""
        having = [(text, count) for text, count in counts.items() if UNKNOWN in self.encode(text)]
        return dict(sorted(having, key=lambda one: (-one[1], one[0])))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return `encode` of every text, on all cores unless it is a fast word model."""
        if self.of_words or len(texts) < _FEW:
            return [self.encode(text) for text in texts]
        return list(self._processor.encode(list(texts), out_type=int, num_threads=-1))

    def sample(self, texts: Sequence[str], *, sampling: SubwordSampling, seed: int) -> list[list[int]]:
        """Return a random segmentation of every text, a pure function of the texts, the settings and the seed.

        Raises:
            ValueError: the model is not of type bpe or unigram, or has user-defined symbols that begin no word.
        """
        random = Random(seed)
        return [self._segmenter.sample(text, alpha=sampling.alpha, random=random) for text in texts]

    @cached_property
    def _segmenter(self) -> Segmenter:
        return Segmenter(self.model, self._processor)

    @cached_property
    def _word(self) -> Callable[[str], list[int]]:
        """The ids of a word, cached: the same words occur again and again."""
        if self.is_listed:
            return lambda word: [self._processor.piece_to_id(f"{WORD_START}{word}")]
        return lru_cache(maxsize=_WORDS)(lambda word: list(self._processor.encode(word, out_type=int)))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the detokenized text on one line; PAD, BEGIN and END are ignored, line breaks become spaces."""
        if self.is_listed:
            return _on_one_line("".join(self.text_parts(ids)))
        return _on_one_line(self._processor.decode(_text_ids(ids)))

    def decode_marked(self, ids: Sequence[int], mark: str, marked: int | None = None) -> str:
        """Like `decode`, with `mark` for each unknown piece: inside its word, or as a separate word in a word model.

        `marked`: only for those among the first so many ids.
        """
        if marked == 0:
            return self.decode(ids)
        return _on_one_line("".join(self.text_parts(ids, mark, marked)))

    def text_parts(self, ids: Sequence[int], mark: str | None = None, marked: int | None = None) -> list[str]:
        """What each id except PAD, BEGIN and END adds to the text; joined they are `decode`, except for line breaks.

        With `mark`, joined they are `decode_marked`.
        """
        ids = _text_ids(ids)
        if self.is_listed:
            parts = [UNKNOWN_TEXT if token == UNKNOWN else self._processor.id_to_piece(token) for token in ids]
            parts = [part.removeprefix(WORD_START) for part in parts]
        else:
            decoded = SentencePieceText.FromString(self._processor.decode(ids, out_type="serialized_proto"))
            parts = [piece.surface for piece in decoded.pieces]
        if mark is not None:
            instead = f" {mark}" if self.of_words and not self.is_listed else mark  # pieces begin with their space
            parts[:marked] = [
                instead if token == UNKNOWN else part for token, part in zip(ids[:marked], parts[:marked], strict=True)
            ]
        return self._joined(parts) if self.is_listed else parts

    def line_parts(self, line: str) -> list[str]:
        """What each word of a line, whose words may be cut, adds to the line with whole words."""
        return self._joined(line.split())

    def whole_words(self, line: str) -> str:
        """A line whose words may be cut, with whole words; without a `joiner` the line as it is."""
        return _on_one_line("".join(self.line_parts(line))) if self.joiner else line

    def _joined(self, words: Iterable[str]) -> list[str]:
        """What each word adds to the text: itself behind a space, or without, where it continues the one before it."""
        parts: list[str] = []
        continues = True
        for word in words:
            space = "" if continues else " "
            continues = self.joiner != "" and word.endswith(self.joiner)
            parts.append(space + (word.removesuffix(self.joiner) if continues else word))
        return parts

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The characters [start, stop) of `text` that each piece of `encode(text)` stands for.

        If one character became several pieces, such as "ﬁ" the pieces "f" and "i", the last one spans it and the others
        are empty spans at its start.
        """
        if not self.of_words:
            return self._spans(text)
        words = [(word.start(), word[0]) for word in re.finditer(r"\S+", text)]
        if self.is_listed:
            return [(start, start + len(word)) for start, word in words]
        return [(start + first, start + last) for start, word in words for first, last in self._spans(word)]

    def _spans(self, text: str) -> list[tuple[int, int]]:
        characters = [index for index, character in enumerate(text) for _ in character.encode()]
        characters.append(len(text))  # characters[b]: the character that byte b belongs to
        encoded = SentencePieceText.FromString(self._processor.encode(text, out_type="serialized_proto"))
        return [(characters[piece.begin], characters[piece.end]) for piece in encoded.pieces]

    def normalized(self, text: str) -> str:
        """The text as pieces spell it, with single spaces, whether or not there are pieces for all of it."""
        plain = text if self.is_listed else self._processor.normalize(text).replace(WORD_START, " ")
        return " ".join(plain.split())

    def spellings(self) -> list[str | int]:
        """What each piece adds to a text: characters, or one byte of a character.

        Joined they are `decode` of the pieces, but for the amount of white space, and for that which may stand around.
        """
        spelled: list[str | int] = []
        for token, piece in enumerate(self.pieces(range(self.size))):
            if self._processor.is_byte(token):
                spelled.append(int(piece[3:-1], 16))
            elif token == UNKNOWN:
                spelled.append(f" {UNKNOWN_TEXT} ")
            elif not self.is_listed:
                spelled.append(piece.replace(WORD_START, " "))
            else:
                begun = piece.removeprefix(WORD_START).removesuffix(self.joiner)
                spelled.append(begun if self.joiner and piece.endswith(self.joiner) else f"{begun} ")
        return spelled

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each piece, with "▁" marking the start of a word."""
        return [self._processor.id_to_piece(int(token)) for token in ids]

    def words_of_pieces(self, ids: Sequence[int] | npt.NDArray[np.integer]) -> list[int]:
        """The number of the word that each piece begins or continues: the same in every segmentation of a text."""
        begins, counts = self._word_starts[:, np.asarray(ids, dtype=np.int64)]
        return [*map(int, counts.cumsum() - counts + begins)]

    @cached_property
    def _word_starts(self) -> npt.NDArray[np.int64]:
        """Whether each piece begins with the start of a word, and how many it has, (2, size)."""
        pieces = self.pieces(range(self.size))
        return np.array([[piece.startswith(WORD_START), piece.count(WORD_START)] for piece in pieces]).T

    def pieces_of_text(self, ids: Sequence[int]) -> list[str]:
        """`pieces`, without the "▁" of a piece that continues the one before it by its `joiner`."""
        pieces = self.pieces(ids)
        if not self.joiner:
            return pieces
        before = ["", *pieces]
        return [
            piece.removeprefix(WORD_START) if last.endswith(self.joiner) else piece
            for last, piece in zip(before, pieces, strict=False)
        ]


class Vocabularies(NamedTuple):
    """The subword models of the two sides; a joint model serves as both."""

    source: Subwords
    target: Subwords

    @classmethod
    def from_bytes(cls, source: bytes, target: bytes, sizes: tuple[int, int]) -> "Vocabularies":
        """Load two serialized models; equal bytes are one joint model.

        Raises ValueError like `Subwords`, and when their numbers of pieces are not `sizes`.
        """
        first = Subwords(source)
        vocabularies = cls(first, first if source == target else Subwords(target))
        for subwords, size in zip(vocabularies, sizes, strict=True):
            if subwords.size != size:
                raise ValueError(f"one with {subwords.size} pieces, where there should be {size}")
        return vocabularies


def _with_special_symbols(model: bytes) -> bytes:
    """A serialized model with PAD, UNKNOWN, BEGIN and END as its first pieces, by the names that it has for them."""
    settings = read_model(model)
    kinds = ModelProto.SentencePiece
    names = [getattr(settings.trainer_spec, f"{name}_piece") for name in _SPECIAL_NAMES]
    pieces = {piece.piece: piece for piece in settings.pieces}
    if not pieces:
        raise ValueError(DAMAGED)
    special = [pieces.pop(name, kinds(piece=name)) for name in names]
    for token, piece in enumerate(special):
        piece.type = kinds.UNKNOWN if token == UNKNOWN else kinds.CONTROL
    ordered = ModelProto(pieces=[*special, *pieces.values()])
    del settings.pieces[:]
    settings.MergeFrom(ordered)
    return bytes(settings.SerializeToString())


def _text_ids(ids: Sequence[int]) -> list[int]:
    """The ids that stand for text, including UNKNOWN."""
    return [int(token) for token in ids if int(token) not in _SPECIAL]


def _on_one_line(text: str) -> str:
    return " ".join(text.splitlines()).strip()


def _noting(lines: Iterable[str], failures: list[BaseException]) -> Iterator[str]:
    """The lines; exceptions while reading them are noted, because sentencepiece replaces them with its own."""
    try:
        yield from lines
    except (Exception, KeyboardInterrupt) as error:
        failures.append(error)
        raise


def _bounded(lines: Iterable[str]) -> Iterator[str]:
    """Drop blank lines, and split those of more than _LINE_CHARACTERS characters."""
    for line in lines:
        if not line.isspace():
            for start in range(0, len(line), _LINE_CHARACTERS):
                yield line[start : start + _LINE_CHARACTERS]


def _blank(corpus: str) -> str:
    return f"{corpus} has no text to train subwords on: every line is blank"


def _explained(error: str, settings: SubwordsConfig, corpus: str) -> str:
    """Explain an error of the sentencepiece trainer in terms of the configuration."""
    given = f"subwords.size is {settings.size}{'' if 'size' in settings.model_fields_set else ', the default'}"
    if match := re.search(r"Vocabulary size is smaller than required_chars\. \d+ vs (\d+)", error):
        return (
            f"{given}, but {corpus} needs at least {match[1]}: its characters and the special pieces; raise it, or "
            "lower subwords.character_coverage"
        )
    if "sentences_.empty()" in error or "all_chars_count" in error:
        return _blank(corpus)
    return f"sentencepiece cannot train subwords on {corpus}: {error}"
