"""Reading serialized protocol buffer messages field by field, for what sentencepiece's binding does not offer.

It knows the wire format (https://protobuf.dev/programming-guides/encoding), not what a field means.
"""

from collections.abc import Iterator
from typing import Any

_LONGEST = 10  # bytes of a number of at most 64 bits


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
