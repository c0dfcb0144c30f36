"""Attention weights as the page holds them: a byte each, runs of zeros shortened, in base64. script.js unpacks them."""

import base64
import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

LARGEST = 255  # the byte of the weight 1
_ZEROS = re.compile(rb"\0{1,255}")


def packed(weights: "npt.ArrayLike") -> str:
    """`weights` (target words, source words + 1), from 0 to 1, row by row: w as the byte round(255 w); after a byte 0
    the number of zeros that it stands for, 1 to 255. Attention is sharp, so most weights are zeros."""
    rounded = np.rint(np.clip(np.asarray(weights, dtype=np.float64), 0.0, 1.0) * LARGEST).astype(np.uint8)
    return base64.b64encode(_ZEROS.sub(lambda run: bytes([0, len(run[0])]), rounded.tobytes())).decode("ascii")
