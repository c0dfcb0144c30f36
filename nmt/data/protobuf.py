"""Reading sentencepiece's serialized models and texts, which are protocol buffers, where its binding has no function.

It knows the wire format (https://protobuf.dev/programming-guides/encoding) and the fields that are needed here, but not
what they are needed for.
"""

import math
import re
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

DAMAGED = "not a sentencepiece model, or damaged"

# Values in sentencepiece_model.proto
UNIGRAM, BPE, WORD = 1, 2, 3  # types of models
NORMAL, USER_DEFINED, BYTE = 1, 4, 6  # kinds of pieces

# Numbers of fields in sentencepiece_model.proto: of a model, of its settings, of a piece
_PIECES, _TRAINER = 1, 2
_MODEL_TYPE = 3
_TEXT, _SCORE, _KIND = 1, 2, 3
# and in sentencepiece.proto: the pieces of a text; a piece's part of the text, and where that is
_TEXT_PIECES, _SURFACE, _START, _STOP = 2, 3, 4, 5

_LONGEST = 10  # bytes of a number of at most 64 bits


class ModelPiece(NamedTuple):
    text: str
    score: float
    kind: int


class TextPiece(NamedTuple):
    """A piece of an encoded or decoded text: its part of the text in UTF-8, and the bytes where that is."""

    surface: bytes
    start: int
    stop: int


def model_type(model: bytes) -> int:
    """The type of a serialized model, such as UNIGRAM. Raises ValueError if its settings are damaged."""
    try:
        settings = next((value for field, value in fields(model) if field == _TRAINER), b"")
        kind: int = dict(fields(settings)).get(_MODEL_TYPE, UNIGRAM)
    except ValueError as error:
        raise ValueError(DAMAGED) from error
    return kind


def model_pieces(model: bytes) -> Iterator[ModelPiece]:
    """The pieces of a serialized model, by id. Raises ValueError for damage that sentencepiece silently ignores."""
    try:
        for field, message in fields(model):
            if field == _PIECES:
                piece = dict(fields(message))
                score: float = struct.unpack("<f", piece.get(_SCORE, bytes(4)))[0]
                if not math.isfinite(score):
                    raise ValueError("a piece whose score is not a number")
                yield ModelPiece(piece[_TEXT].decode(), score, piece.get(_KIND, NORMAL))
    except (KeyError, ValueError, TypeError, AttributeError, struct.error) as error:
        raise ValueError(DAMAGED) from error


def byte_of(text: str) -> int:
    """The byte that a piece such as "<0x41>" stands for. Raises ValueError."""
    if not re.fullmatch("<0x[0-9A-F]{2}>", text):
        raise ValueError(DAMAGED)
    return int(text[1:-1], 16)


def text_pieces(text: bytes) -> list[TextPiece]:
    """The pieces of a text that sentencepiece encoded or decoded and serialized."""
    pieces = (dict(fields(message)) for field, message in fields(text) if field == _TEXT_PIECES)
    return [TextPiece(piece.get(_SURFACE, b""), piece.get(_START, 0), piece.get(_STOP, 0)) for piece in pieces]


def fields(message: Any) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value, int or bytes, of each field of a message; nested messages are bytes.

    Raises ValueError when it is not a message, such as a number where one should be, or when it is cut short.
    """
    if not isinstance(message, bytes):
        raise ValueError("not a message but a number")
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        wire_type = key & 7
        if wire_type == 0:
            number, position = _varint(message, position)
            yield key >> 3, number
            continue
        if wire_type == 2:
            length, position = _varint(message, position)
        else:
            length = {1: 8, 5: 4}.get(wire_type, -1)
        if length < 0:
            raise ValueError(f"a field of the unknown kind {wire_type}")
        if position + length > len(message):
            raise ValueError("the message ends inside a field")
        yield key >> 3, message[position : position + length]
        position += length


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(message[position : position + _LONGEST]):
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, position + place + 1
    if position + _LONGEST > len(message):
        raise ValueError("the message ends inside a field")
    raise ValueError("a number of more than 64 bits")
