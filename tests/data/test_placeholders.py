"""Training pairs with placeholders for, or beside, what both sides have alike."""

import pytest

from nmt.config.schema import Placeholders
from nmt.data.placeholders import PLACEHOLDERS, with_placeholders

ALL = Placeholders(share=1.0, count=2)


@pytest.mark.parametrize("number", range(20))
def test_placeholders_stand_for_the_same_words_or_beside_them(number: int) -> None:
    """Numbered as the source has them; signs stay where they are, and what one side has twice has none."""
    pair = f"In {number} Rome, Bob saw Bob.", f"Bob war {number}mal in Rome ({number})!"
    source, target = with_placeholders(*pair, ALL)
    assert source in {f"In {number} {what}, Bob saw Bob." for what in ("⟦1⟧", "⟦1⟧ Rome", "Rome ⟦1⟧")}
    assert target == f"Bob war {number}mal in {source.split(', ')[0].split(' ', 2)[2]} ({number})!"


def test_several_are_apart() -> None:
    drawn = set()
    for number in range(50):
        source, target = with_placeholders(f"a {number} b https://x.org/?a c", f"https://x.org/?a d {number}", ALL)
        of_both = [[word for word in text.split() if word in PLACEHOLDERS] for text in (source, target)]
        assert of_both[0] in (["⟦1⟧"], ["⟦1⟧", "⟦2⟧"])
        assert sorted(of_both[0]) == sorted(of_both[1])
        if len(of_both[0]) == 2:
            assert of_both[1] == ["⟦2⟧", "⟦1⟧"]
        drawn.add((source.replace(str(number), ""), target.replace(str(number), "")))
    assert len(drawn) > 9


def test_the_share_of_pairs() -> None:
    pairs = [(f"one {number}", f"eins {number}") for number in range(2000)]
    settings = Placeholders(share=0.1)
    changed = [with_placeholders(*pair, settings) for pair in pairs]
    assert 150 < sum(pair != other for pair, other in zip(pairs, changed, strict=True)) < 250
    assert changed == [with_placeholders(*pair, settings) for pair in pairs]
    assert with_placeholders("one", "eins", ALL) == ("one", "eins")
    assert with_placeholders("", "", ALL) == ("", "")
