"""Reading serialised protocol buffer messages, field by field: what sentencepiece's binding has no function for.

It knows the wire format (https://protobuf.dev/programming-guides/encoding), not what a field means.
"""

from collections.abc import Iterator
from typing import Any


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value, int or bytes, of each field of a message; a message inside it is bytes again."""
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
            length = {1: 8, 5: 4}[wire_type]
        yield key >> 3, message[position : position + length]
        position += length


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 127) << shift
        position += 1
        if byte < 128:
            return value, position
        shift += 7
