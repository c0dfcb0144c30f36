"""Which columns of a table, or texts of a memory, are the two sides of a pair."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt.data.pairs import pairs_of_table, places_of
from nmt.errors import UserError


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


@pytest.mark.parametrize("columns", ["112", "123", "012", ("a", "a", "b")])
def test_a_column_is_there_and_is_given_once(tmp_path: Path, columns: Sequence[str]) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"a\.tsv, line 1: (too few|none) of its columns, 'a', 'b', "):
        next(pairs_of_table(tmp_path / "a.tsv", [["en"], ["de"]], [*columns]))
