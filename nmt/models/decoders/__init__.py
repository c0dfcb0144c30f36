"""The decoders, by the names of the configuration."""

from nmt.models.decoders.bahdanau import BahdanauDecoder
from nmt.models.decoders.base import Decoder, DecoderState, Outputs
from nmt.models.decoders.conditional_gru import ConditionalGRUDecoder
from nmt.models.decoders.luong import LuongDecoder

DECODERS: dict[str, type[LuongDecoder] | type[BahdanauDecoder] | type[ConditionalGRUDecoder]] = {
    "luong": LuongDecoder,
    "bahdanau": BahdanauDecoder,
    "conditional_gru": ConditionalGRUDecoder,
}

__all__ = ["DECODERS", "Decoder", "DecoderState", "Outputs"]
