"""Random segmentations for subword regularization, as pure functions of the text and a random number generator.

sentencepiece can sample too, but the state of its generator cannot be restored, and in recent releases one seed gives
different samples in different processes, so an interrupted training run could not continue as if uninterrupted. So both
algorithms are written out here over the pieces and scores of a sentencepiece model, which still normalizes the text.

BPE-dropout: Provilkov et al. 2020, algorithm 1. Sampling from a unigram model: Kudo 2018, section 3.2, with
forward filtering and backward sampling. It knows a serialized model; it knows no files, seeds or settings.
"""

import math
import re
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate, groupby
from random import Random
from typing import NamedTuple

import sentencepiece
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from sentencepiece.sentencepiece_model_pb2 import ModelProto, TrainerSpec  # type: ignore[attr-defined]

from nmt.symbols import UNKNOWN

DAMAGED = "not a sentencepiece model, or damaged"
WORD_START = "▁"  # sentencepiece's mark of a word's first piece
_UNKNOWN_PENALTY = 10.0  # how much less than the worst piece an unknown character scores, as in sentencepiece
_LONGEST_WORD = 500  # characters; longer words are split, as BPE-dropout takes quadratic time
_REMEMBERED = 1 << 15  # words whose lattice is kept
_BYTE = re.compile("<0x[0-9A-F]{2}>")  # a piece that stands for a byte


class _Lattice(NamedTuple):
    """All segmentations of a word: for each end position, the pieces that end there and their probabilities."""

    edges: list[list[tuple[int, int]]]  # (start, id) of each piece
    cumulative: list[list[float]]  # cumulative probabilities of the pieces


class Segmenter:
    """Samples segmentations with one model."""

    def __init__(self, model: bytes, processor: sentencepiece.SentencePieceProcessor) -> None:
        """Read the pieces of a serialized model that `processor` has loaded.

        Raises:
            ValueError: the model is not of type bpe or unigram, has user-defined symbols that begin no word, or is
                damaged.
        """
        self._processor = processor
        self._symbols: dict[str, int] = {}  # words that are never cut
        self._pieces: dict[str, tuple[int, float]] = {}  # text: id, score
        self._bytes: dict[int, int] = {}
        settings = read_model(model)
        self._is_unigram = settings.trainer_spec.model_type == TrainerSpec.UNIGRAM
        self._read(settings)
        if not self._is_unigram and settings.trainer_spec.model_type != TrainerSpec.BPE:
            raise ValueError("a subword model of this type cannot sample segmentations; bpe and unigram models can")
        self._unknown_score = min((score for _, score in self._pieces.values()), default=0.0) - _UNKNOWN_PENALTY
        self._longest = max(map(len, self._pieces), default=1)
        # Words are independent unless a piece reaches from one into the next.
        inside = any(WORD_START in piece[1:] for piece in self._pieces)
        pattern = ".{1,%d}" if inside else f"{WORD_START}?[^{WORD_START}]{{1,%d}}|{WORD_START}"
        self._words = re.compile(pattern % _LONGEST_WORD, re.DOTALL)
        longest_first = sorted(self._symbols, key=len, reverse=True)
        self._symbol = re.compile(f"({'|'.join(map(re.escape, longest_first))})") if self._symbols else None
        self._lattice = lru_cache(maxsize=_REMEMBERED)(self._build_lattice)

    def sample(self, text: str, *, alpha: float, random: Random) -> list[int]:
        """Return the ids of one random segmentation.

        bpe: a merge is skipped with probability `alpha` each time it could be made. unigram: segmentation x has a
        probability proportional to P(x) ** alpha. A run of unknown characters becomes one UNKNOWN, as in sentencepiece,
        or its bytes.
        """
        pieces: list[tuple[int, str]] = []
        for word in self._words_of(self._processor.normalize(text)):
            if word in self._symbols:
                pieces.append((self._symbols[word], word))
            else:
                pieces += self._walk(word, alpha, random) if self._is_unigram else self._merge(word, alpha, random)
        ids: list[int] = []
        for unknown, run in groupby(pieces, key=lambda piece: piece[0] == UNKNOWN):
            if not unknown:
                ids += [number for number, _ in run]
            elif self._bytes:
                ids += [self._bytes[byte] for _, character in run for byte in character.encode()]
            else:
                ids.append(UNKNOWN)
        return ids

    def _words_of(self, text: str) -> list[str]:
        """The words that are segmented one by one, and the symbols, of a normalized text."""
        if self._symbol is None:
            return self._words.findall(text)
        parts = self._symbol.split(text)
        return [word for part in parts for word in ([part] if part in self._symbols else self._words.findall(part))]

    def _merge(self, word: str, dropout: float, random: Random) -> list[tuple[int, str]]:
        """BPE-dropout: make the best of the possible merges that are not skipped this time, until none is left."""
        symbols = list(word)
        while True:
            best, at = -math.inf, -1
            for position in range(len(symbols) - 1):
                known = self._pieces.get(symbols[position] + symbols[position + 1])
                if known is not None and random.random() >= dropout and known[1] > best:
                    best, at = known[1], position
            if at < 0:
                return [(self._pieces.get(symbol, (UNKNOWN, 0.0))[0], symbol) for symbol in symbols]
            symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]

    def _walk(self, word: str, alpha: float, random: Random) -> list[tuple[int, str]]:
        """Sample a path through the lattice from the end of the word to its start."""
        lattice = self._lattice(word, alpha)
        path: list[tuple[int, str]] = []
        end = len(word)
        while end > 0:
            edges = lattice.edges[end]
            start, number = edges[min(bisect_right(lattice.cumulative[end], random.random()), len(edges) - 1)]
            path.append((number, word[start:end]))
            end = start
        return path[::-1]

    def _build_lattice(self, word: str, alpha: float) -> _Lattice:
        """The forward pass: total[end] = log sum over the segmentations x of word[:end] of P(x) ** alpha."""
        total = [0.0]
        lattice = _Lattice([[]], [[]])
        for end in range(1, len(word) + 1):
            edges: list[tuple[int, int]] = []
            weights: list[float] = []
            for start in range(max(0, end - self._longest), end):
                known = self._pieces.get(word[start:end])
                if known is None and start == end - 1:
                    known = (UNKNOWN, self._unknown_score)
                if known is not None:
                    edges.append((start, known[0]))
                    weights.append(total[start] + alpha * known[1])
            highest = max(weights)
            summed = sum(math.exp(weight - highest) for weight in weights)
            total.append(highest + math.log(summed))
            lattice.edges.append(edges)
            lattice.cumulative.append(list(accumulate(math.exp(weight - highest) / summed for weight in weights)))
        return lattice

    def _read(self, model: ModelProto) -> None:
        for number, piece in enumerate(model.pieces):
            text, kind = piece.piece, piece.type
            unusable = not text or isinstance(text, bytes) or not math.isfinite(piece.score)  # bytes: not UTF-8
            if unusable or (kind == piece.BYTE and not _BYTE.fullmatch(text)):  # which sentencepiece overlooks
                raise ValueError(DAMAGED)
            if kind == piece.NORMAL:
                self._pieces[text] = (number, piece.score)
            elif kind == piece.BYTE:
                self._bytes[int(text[1:-1], 16)] = number
            elif kind == piece.USER_DEFINED and text.startswith(WORD_START) and WORD_START not in text[1:]:
                self._symbols[text] = number
            elif kind == piece.USER_DEFINED:
                raise ValueError(f"a subword model with user-defined symbols ({text!r}) cannot sample segmentations")


def read_model(model: bytes) -> ModelProto:
    """The pieces and settings of a serialized model. Raises ValueError."""
    try:
        return ModelProto.FromString(model)
    except DecodeError as error:
        raise ValueError(DAMAGED) from error
