"""The wire format, in messages written byte by byte, and bytes that are not messages."""

import pytest

from nmt.data.protobuf import fields


def test_fields_are_numbers_and_bytes_by_their_numbers() -> None:
    message = b"\x08\x96\x01" + b"\x12\x02ab" + b"\x1d\x00\x00\x80\x3f" + b"\x21" + bytes(8)
    assert list(fields(message)) == [(1, 150), (2, b"ab"), (3, b"\x00\x00\x80\x3f"), (4, bytes(8))]
    assert list(fields(b"")) == []


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (b"\x08", "ends inside a field"),
        (b"\x08\xff", "ends inside a field"),
        (b"\x12\x03ab", "ends inside a field"),
        (b"\x1d\x00\x00", "ends inside a field"),
        (b"\x0b", "a field of the unknown kind 3"),
        (b"\x0f\x00", "a field of the unknown kind 7"),
        (b"\x08" + b"\xff" * 10 + b"\x01", "a number of more than 64 bits"),
        (5, "not a message"),  # a number where another message stands in a sound one
    ],
)
def test_what_is_no_message_raises_value_error(message: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        list(fields(message))
