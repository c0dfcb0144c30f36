"""Pretrained vectors of words, in the text formats of word2vec, fastText and GloVe, for the pieces of a vocabulary.

    2000000 300
    the 0.0231 -0.0170 …

A word and its numbers, separated by single spaces; the first line may say how many words and how many numbers there
are (https://fasttext.cc/docs/en/crawl-vectors.html), or not (https://nlp.stanford.edu/projects/glove). The file is
UTF-8, plain or gzip. It is read as a stream, and only the vectors of pieces are kept, so it may be larger than memory.

A file is one of words or one of pieces, whichever has more of the pieces that begin a word. In a file of words, the
piece "▁dog" has the vector of "dog", and a piece inside words has none, though a word may look the same. In a file of
pieces, as trained on segmented text, each has its own. Special symbols never have one. It knows no models.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.data.corpus import check_regular, excerpt, read_lines
from nmt.data.segmentation import WORD_START
from nmt.errors import UserError, counted, refuse_lines
from nmt.symbols import PIECES

_COUNT = re.compile("[0-9]{1,18}")


class WordVectors(NamedTuple):
    """The vectors of the pieces that a file has, in the order of its lines."""

    ids: npt.NDArray[np.int64]  # (pieces,)
    values: npt.NDArray[np.float32]  # (pieces, size)


def check_size(path: Path, size: int) -> bool:
    """Whether a file begins with the header; its vectors must have `size` numbers, or UserError is raised."""
    check_regular(path)
    line = next(read_lines(path), None)
    if line is None:
        raise UserError(f"{path}: the file is empty; expected lines with a word and its vector")
    fields = line.rstrip(" ").split(" ")
    has_header = len(fields) == 2 and all(_COUNT.fullmatch(field) for field in fields)
    numbers = int(fields[1]) if has_header else len(fields) - 1
    if numbers != size:
        raise UserError(
            f"{path}, line 1: its vectors have {counted(numbers, 'number')}, separated by single spaces, but "
            f"model.embedding_size is {size:,}; set it to that, or give vectors of {size:,}"
        )
    return has_header


def read_vectors(path: Path, pieces: Sequence[str], *, size: int, largest: float) -> WordVectors:
    """The vectors of `pieces`, a whole vocabulary, in a file whose vectors have `size` numbers each.

    Of several vectors of a word the first one counts. The numbers must be between -largest and largest; those of other
    words are not looked at. Raises UserError with a message for each line that is wrong, for a file with more or fewer
    lines than its header says, and when it has none of the pieces.
    """
    has_header = check_size(path, size)
    ids = {piece: number for number, piece in enumerate(pieces) if number >= len(PIECES)}
    of_pieces: dict[int, npt.NDArray[np.float32]] = {}
    of_words: dict[int, npt.NDArray[np.float32]] = {}  # with the mark of a word's beginning
    problems: list[str] = []
    number = 0
    for number, line in enumerate(read_lines(path), start=1):
        if number == 1 and has_header:
            announced = int(line.split(" ")[0])
            continue
        line = line.rstrip(" ")
        spaces = line.count(" ")
        word = line.partition(" ")[0] if spaces == size else line.rsplit(" ", size)[0]  # GloVe has words with spaces
        try:
            if spaces < size:
                raise ValueError(f"{excerpt(line)} has {counted(spaces, 'number')} behind a word; expected {size:,}")
            for vectors, piece in ((of_pieces, word), (of_words, f"{WORD_START}{word}")):
                if piece in ids:
                    vectors.setdefault(ids[piece], _vector(line.rsplit(" ", size)[1:], largest))
        except ValueError as error:
            problems.append(f"{path}, line {number}: {error}")
    if has_header and number - 1 != announced:
        vectors_read = counted(number - 1, "vector")
        problems.append(f"{path}: has {vectors_read}, but its first line says {announced:,}; is it all there?")
    chosen = of_words if len(of_words) > sum(pieces[piece].startswith(WORD_START) for piece in of_pieces) else of_pieces
    if not chosen and not problems:
        problems.append(f"{path}: has none of the vocabulary's pieces; is it of this language, and in the same case?")
    refuse_lines(path, problems)
    return WordVectors(np.array(list(chosen), dtype=np.int64), np.stack(list(chosen.values())))


def _vector(fields: Sequence[str], largest: float) -> npt.NDArray[np.float32]:
    """The numbers of a line. Raises ValueError for one that is none, or that is too large."""
    values = np.array([float(field) for field in fields])
    if not (np.abs(values) <= largest).all():
        raise ValueError(f"a vector has a number that is not from {-largest:g} to {largest:g}")
    return values.astype(np.float32)
