"""The same lines translated in batches of exactly so many, in any order: what no result may depend on."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from nmt.data.corpus import read_lines
from nmt.decoding.translator import Translation, Translator
from tests.conftest import ROOT
from tests.translating import translate

SIZES = 1, 64  # the first is what the others are compared with
SHUFFLED_SIZE = 7
TEST_SET = Path("multi30k") / "tok" / "test_2016_flickr.lc.norm.tok.en"
ENOUGH = 10**7  # source pieces, padding included: no batch is made smaller

Found = Sequence[Sequence[Translation]]


def test_set() -> Path:
    """The 1,000 English sentences of Multi30k's test_2016_flickr; without them the test is skipped."""
    for path in (ROOT / "data" / TEST_SET, ROOT.parent / "shared" / "data" / f"{TEST_SET}.gz"):
        if path.is_file():
            return path
    pytest.skip(f"needs data/{TEST_SET}, which `make data` writes, or ../shared/data/{TEST_SET}.gz")


def in_batches(translator: Translator, lines: Sequence[str], size: int, **options: object) -> Found:
    """The translations of `lines`, each batch being the next `size` of them, whatever their lengths."""
    asked = iter(range(1, len(lines) + 1))
    return list(translate(translator, lines, batch_tokens=ENOUGH, waiting=lambda: next(asked) % size == 0, **options))


def every_way(translator: Translator, lines: Sequence[str], **options: object) -> Iterator[tuple[str, Found]]:
    """The translations of `lines` in batches of several sizes and orders; the first are of batches of one."""
    for size in SIZES:
        yield f"batches of {min(size, len(lines))}", in_batches(translator, lines, size, **options)
    order = random.Random(20161).sample(range(len(lines)), len(lines))
    translations = in_batches(translator, [lines[place] for place in order], SHUFFLED_SIZE, **options)
    back = sorted(range(len(lines)), key=order.__getitem__)
    yield f"batches of {SHUFFLED_SIZE} in another order", [translations[place] for place in back]
    yield "batches of like length", list(translate(translator, lines, **options))


def sentences(count: int) -> list[str]:
    """The first `count` lines of the test set."""
    return list(read_lines(test_set()))[:count]
