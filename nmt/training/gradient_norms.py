"""A histogram of gradient norms that takes as much room after a million updates as after a hundred.

Bucket k counts the norms from 2^(k/8) up to, but without, 2^((k+1)/8): neighbors differ by a factor of 1.09.
"""

import math
from collections.abc import Mapping

Counts = dict[str, int]
"""How many norms each bucket has; the keys are texts, as those of JSON objects are."""

_OCTAVE = 8  # buckets
_LEAST = -40  # the power of 2 below which all norms share a bucket, 0 too


def count(counts: Counts, norm: float) -> None:
    """Add one norm, a finite number that is not negative."""
    bucket = str(math.floor(_OCTAVE * math.log2(max(norm, 2.0**_LEAST))))
    counts[bucket] = counts.get(bucket, 0) + 1


def histogram(counts: Mapping[str, int]) -> list[tuple[float, float, int]]:
    """(lower edge, upper edge, norms) of all buckets from the lowest to the highest, of which there must be one."""
    numbers = {int(bucket): norms for bucket, norms in counts.items()}
    return [
        (2.0 ** (bucket / _OCTAVE), 2.0 ** ((bucket + 1) / _OCTAVE), numbers.get(bucket, 0))
        for bucket in range(min(numbers), max(numbers) + 1)
    ]
