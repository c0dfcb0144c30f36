"""Subword models: text to ids and back, by sentencepiece, with the special symbols of `nmt.symbols`.

It knows sentencepiece and the settings it is trained with; it knows no files of a corpus and no cache. References:
Sennrich et al. 2016 (BPE), Kudo 2018 (unigram models).
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import sentencepiece

from nmt.config.schema import SubwordSampling, SubwordsConfig
from nmt.data.protobuf import fields
from nmt.data.segmentation import DAMAGED, Segmenter, is_word_model
from nmt.errors import UserError
from nmt.symbols import BEGIN, END, PAD, PIECES, UNKNOWN

# sentencepiece drops training lines above a length, and its BPE trainer cannot hold a word of 2 ** 16 characters or
# more. Longer lines are cut instead: 3000 characters stay below both limits even where normalisation expands one
# character to 18 (U+FDFA), the most that NFKC does.
_LINE_CHARACTERS = 3000
_LINE_BYTES = 4 * _LINE_CHARACTERS
_FEW = 100  # texts that are encoded before sentencepiece has started its threads
_THREADS = 4  # fixed, so that a model does not depend on the machine it was trained on
# What sentencepiece makes of its status codes, and what the binding raises for numbers beyond 32 bits
_TRAINER_ERRORS = (RuntimeError, SyntaxError, LookupError, ValueError, OverflowError, SystemError)
_SPECIAL_NAMES = ("pad", "unk", "bos", "eos")  # what sentencepiece calls PIECES
_SPECIAL = frozenset((PAD, BEGIN, END))
_WORDS = 1 << 17  # of a word model, whose ids are kept in memory
# Numbers of the fields in sentencepiece.proto: of a text its pieces, of a piece its part of the text and where it is
_PIECES, _SURFACE, _START, _STOP = 2, 3, 4, 5


class Subwords:
    """One sentencepiece model. `size` is the number of pieces, `model` the serialised model."""

    def __init__(self, model: bytes) -> None:
        """Load a serialised model.

        Raises:
            ValueError: the bytes are no sentencepiece model, or one with other special ids than `nmt.symbols`.
        """
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError:
            raise ValueError(DAMAGED) from None
        self.size: int = self._processor.get_piece_size()
        if self.size == 0:
            raise ValueError("not a sentencepiece model, it has no pieces")
        found = tuple(getattr(self._processor, f"{name}_id")() for name in _SPECIAL_NAMES)
        if found != (PAD, UNKNOWN, BEGIN, END):
            raise ValueError(_wrong_ids(found))
        self.of_words = is_word_model(model)  # whether the pieces are words, and nothing smaller

    @staticmethod
    def train(lines: Iterable[str], *, settings: SubwordsConfig, size: int, corpus: str = "this corpus") -> "Subwords":
        """Train a model on the lines, which are read once and not kept as a list here; equal input, equal model.

        `corpus` names the text in messages.

        Raises:
            UserError: the text holds no character, or too few or too many for `size`; or sentencepiece fails otherwise.
        Exception: what reading the lines raises.
        """
        failures: list[BaseException] = []
        text = _bounded(_noting(lines, failures))
        first = next(text, None)
        if first is None:
            raise UserError(_blank(corpus))  # some releases of sentencepiece end the process here
        writer = io.BytesIO()
        special: dict[str, Any] = {}
        for index, (name, piece) in enumerate(zip(_SPECIAL_NAMES, PIECES, strict=True)):
            special |= {f"{name}_id": index, f"{name}_piece": piece}
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=chain([first], text),
                model_writer=writer,
                model_type=settings.type,
                vocab_size=size,
                hard_vocab_limit=settings.type in ("bpe", "unigram"),
                character_coverage=settings.character_coverage,
                byte_fallback=settings.byte_fallback,
                normalization_rule_name=_normalisation(settings),
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
            raise UserError(_explained(str(error), size, corpus)) from None

    @staticmethod
    def from_file(path: Path) -> "Subwords":
        """Load a model file.

        Raises:
            UserError: the file cannot be read, is no sentencepiece model, or has other special ids.
        """
        try:
            return Subwords(path.read_bytes())
        except FileNotFoundError:
            raise UserError(f"{path}: no such file") from None
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror})") from None
        except ValueError as error:
            raise UserError(f"{path}: {error}") from None

    def encode(self, text: str) -> list[int]:
        """Return the ids of the best segmentation, without BEGIN and END; [] for blank text.

        A word model gives every unknown word its own unknown piece; sentencepiece by itself makes one of several in a
        row, so that a translation would lose all but one.
        """
        if self.of_words:
            return [token for word in re.findall(r"\S+", text) for token in self._word(word)]
        return list(self._processor.encode(text, out_type=int))

    def encode_batch(self, texts: Sequence[str], *, threads: int = -1) -> list[list[int]]:
        """Return `encode` of every text, computed on so many cores (-1: all) but for a word model, which is quick."""
        if self.of_words or len(texts) < _FEW:
            return [self.encode(text) for text in texts]
        return list(self._processor.encode(list(texts), out_type=int, num_threads=threads))

    def sample(self, texts: Sequence[str], *, sampling: SubwordSampling, seed: int) -> list[list[int]]:
        """Return a random segmentation of every text: a pure function of the texts, the settings and the seed.

        Raises:
            ValueError: the model is not of type bpe or unigram, or has user-defined symbols.
        """
        random = Random(seed)
        alpha, nbest_size = sampling.alpha, sampling.nbest_size
        return [self._segmenter.sample(text, alpha=alpha, nbest_size=nbest_size, random=random) for text in texts]

    @property
    def ignores_nbest_size(self) -> bool:
        """Whether `sample` reads alpha alone, as for bpe. Raises ValueError as `sample`."""
        return self._segmenter.by_merges

    @cached_property
    def _segmenter(self) -> Segmenter:
        return Segmenter(self.model, self._processor)

    @cached_property
    def _word(self) -> Callable[[str], list[int]]:
        """The ids of a word; a text has the same words again and again."""
        return lru_cache(maxsize=_WORDS)(lambda word: list(self._processor.encode(word, out_type=int)))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the detokenised text on one line; PAD, BEGIN and END are ignored, line breaks become spaces."""
        return _on_one_line(self._processor.decode(_spoken(ids)))

    def decode_marked(self, ids: Sequence[int], mark: str) -> str:
        """As `decode`, with `mark` for each unknown piece: inside its word, or in a word model as a word of its own."""
        return _on_one_line("".join(self.text_parts(ids, mark)))

    def text_parts(self, ids: Sequence[int], mark: str | None = None) -> list[str]:
        """What each id but PAD, BEGIN and END adds to the text; put together they are `decode`'s, but for line breaks.

        With `mark` they are `decode_marked`'s.
        """
        if mark is not None and self.of_words:
            mark = f" {mark}"  # as pieces begin with their space
        spoken = _spoken(ids)
        decoded = self._processor.decode(spoken, out_type="serialized_proto")
        parts = (dict(fields(piece)) for field, piece in fields(decoded) if field == _PIECES)
        surfaces = (part.get(_SURFACE, b"").decode() for part in parts)
        return [
            mark if mark is not None and token == UNKNOWN else surface
            for token, surface in zip(spoken, surfaces, strict=True)
        ]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The characters [start, stop) of `text` that each piece of `encode(text)` stands for.

        Of several pieces that one character became, as "ﬁ" does "f" and "i", the last spans it, and the others nothing,
        at its start.
        """
        if not self.of_words:
            return self._spans(text)
        words = [(word.start(), word[0]) for word in re.finditer(r"\S+", text)]
        return [(start + first, start + last) for start, word in words for first, last in self._spans(word)]

    def _spans(self, text: str) -> list[tuple[int, int]]:
        characters = [index for index, character in enumerate(text) for _ in character.encode()]
        characters.append(len(text))  # characters[b]: the character that byte b belongs to
        encoded = self._processor.encode(text, out_type="serialized_proto")
        parts = (dict(fields(piece)) for field, piece in fields(encoded) if field == _PIECES)
        return [(characters[part.get(_START, 0)], characters[part.get(_STOP, 0)]) for part in parts]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each piece, "▁" marking the start of a word."""
        return [self._processor.id_to_piece(int(token)) for token in ids]


class Vocabularies(NamedTuple):
    """The subword models of the two sides; a joint model stands in both places."""

    source: Subwords
    target: Subwords

    @classmethod
    def from_bytes(cls, source: bytes, target: bytes, sizes: tuple[int, int]) -> "Vocabularies":
        """Load two serialised models; equal bytes are one joint model.

        Raises ValueError as `Subwords` does, and when they have not as many pieces as `sizes` says.
        """
        loaded = Subwords(source)
        found = cls(loaded, loaded if source == target else Subwords(target))
        for side, size in zip(found, sizes, strict=True):
            if side.size != size:
                raise ValueError(f"one of {side.size} pieces, where there should be {size}")
        return found


def _spoken(ids: Sequence[int]) -> list[int]:
    """The ids that are text, or unknown."""
    return [int(token) for token in ids if int(token) not in _SPECIAL]


def _on_one_line(text: str) -> str:
    return " ".join(text.splitlines()).strip()


def _noting(lines: Iterable[str], failures: list[BaseException]) -> Iterator[str]:
    """The lines; what reading them raises is noted, for sentencepiece makes an error of its own of it."""
    try:
        yield from lines
    except (Exception, KeyboardInterrupt) as error:
        failures.append(error)
        raise


def _bounded(lines: Iterable[str]) -> Iterator[str]:
    """Leave out blank lines, and cut those of more than _LINE_CHARACTERS characters."""
    for line in lines:
        if not line.isspace():
            for start in range(0, len(line), _LINE_CHARACTERS):
                yield line[start : start + _LINE_CHARACTERS]


def _blank(corpus: str) -> str:
    return f"{corpus} holds no text to train subwords on: every line is blank"


def _normalisation(settings: SubwordsConfig) -> str:
    if not settings.lowercase:
        return settings.normalisation
    if settings.normalisation == "identity":
        raise UserError(
            "subwords.lowercase: true needs subwords.normalisation: nmt_nfkc or nfkc; "
            "sentencepiece folds case as a part of normalisation, and identity has none"
        )
    return f"{settings.normalisation}_cf"


def _wrong_ids(found: tuple[int, ...]) -> str:
    present = ", ".join(f"{piece} {index}" for piece, index in zip(PIECES, found, strict=True))
    needed = ", ".join(f"{piece} {index}" for index, piece in enumerate(PIECES))
    return (
        f"the special symbols have the ids {present} (-1: absent), but {needed} are needed; "
        "train the model with spm_train --pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3, "
        "or leave the key out and one is trained on the corpus"
    )


def _explained(error: str, size: int, corpus: str) -> str:
    """Translate an error of the sentencepiece trainer into terms of the configuration."""
    if match := re.search(r"Vocabulary size too high.*<= (\d+)", error, re.DOTALL):
        return f"subwords.size is {size}, but {corpus} supports at most {match[1]}"
    if match := re.search(r"Vocabulary size is smaller than required_chars\. \d+ vs (\d+)", error):
        return (
            f"subwords.size is {size}, but {corpus} needs at least {match[1]}: its characters and the special pieces; "
            "raise it, or lower subwords.character_coverage"
        )
    if "(vocab_size) >= (0)" in error:
        return f"subwords.size is {size}, but subwords.byte_fallback needs more than 260: 256 bytes, 4 special pieces"
    if "sentences_.empty()" in error or "all_chars_count" in error:
        return _blank(corpus)
    return f"sentencepiece cannot train subwords on {corpus}: {error}"
