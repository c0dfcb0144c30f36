"""Which columns of a table, or texts of a memory, are the two sides of a pair."""

import pytest

from nmt.data.pairs import places_of


@pytest.mark.parametrize(
    ("languages", "names", "places"),
    [
        (["en", "de"], [["en"], ["de"]], [0, 1]),
        (["en-GB", "de", "en"], [["en"], ["de"]], [2, 1]),  # the very code before another that fits
        (["en-GB", "de", "en-US"], [["en"], ["de"]], [0, 1]),
        (["source", "en", "target"], [["en", "source"], ["de", "target"]], [1, 2]),  # the earlier name before others
        (["de", "de"], [["de"], ["de"]], [0, 1]),
        (["de", "de-AT"], [["de"], ["de-AT"]], [0, 1]),
        (["de", "de-1600"], [["de"], ["de"]], [0, 1]),
        (["de", "de-1600"], [["de-1600"], ["de"]], [1, 0]),
        (["de-1600", "de"], [["de"], ["de-1600"]], [1, 0]),
        (["de"], [["de"], ["de"]], []),
        (["en", "fr"], [["en"], ["de"]], []),
        (["tags", "form", "lemma"], [["lemma"], ["tags"], ["form"]], [2, 0, 1]),
    ],
)
def test_the_places_of(languages: list[str], names: list[list[str]], places: list[int]) -> None:
    assert places_of(languages, names) == places
