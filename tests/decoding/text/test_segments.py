"""Cutting long lines, on pieces whose best cut is visible by eye."""

import pytest

from nmt.decoding.text.segments import longest_segment, segment


def cut(text: str, longest: int) -> list[str]:
    pieces = text.split()
    return [" ".join(pieces[part]) for part in segment(pieces, longest)]


def test_what_fits_is_not_cut() -> None:
    assert cut("▁a ▁b ▁c", 3) == ["▁a ▁b ▁c"]


def test_a_cut_follows_the_last_sentence_that_ends_in_the_second_half() -> None:
    assert cut("▁a ▁b ▁c . ▁d ▁e ▁f", 6) == ["▁a ▁b ▁c .", "▁d ▁e ▁f"]
    assert cut('▁" ▁a ? " ▁b ▁c ▁d', 6) == ['▁" ▁a ? "', "▁b ▁c ▁d"]


def test_a_point_inside_a_word_ends_no_sentence() -> None:
    assert cut("▁a ▁b ▁1 . 5 ▁c ▁d", 6) == ["▁a ▁b ▁1 . 5 ▁c", "▁d"]
    assert cut("▁a ▁b . com / ? q ▁c ▁d", 8) == ["▁a ▁b . com / ? q ▁c", "▁d"]


def test_without_a_sentence_end_words_stay_whole() -> None:
    assert cut("▁a ▁b ▁c ▁d e f g", 5) == ["▁a ▁b ▁c", "▁d e f g"]


@pytest.mark.parametrize("end", ["。", "!", "?", "！", "？", "。」", "! ”"])
def test_a_script_without_spaces_is_cut_after_its_sentence(end: str) -> None:
    assert cut(f"▁我 们 走 吧 {end} 你 们 呢", 7) == [f"▁我 们 走 吧 {end}", "你 们 呢"]


def test_a_word_longer_than_a_segment_is_cut_anywhere() -> None:
    assert cut("▁a b c d e f g h", 3) == ["▁a b c", "d e f", "g h"]


def test_a_term_is_not_cut_where_another_cut_is_possible() -> None:
    pieces = ["▁a", "▁b", "▁c", ".", "▁d", "▁e", "▁f"]
    assert segment(pieces, 6, {4}) == [slice(0, 6), slice(6, 7)]
    assert segment(pieces, 6, {4, 6}) == [slice(0, 5), slice(5, 7)]
    assert segment(pieces, 6, range(9)) == [slice(0, 4), slice(4, 7)]  # as without terms


def test_every_piece_is_in_one_segment_whatever_the_limit() -> None:
    pieces = [f"▁{number}" if number % 3 == 0 else "." for number in range(101)]
    for longest in (1, 2, 3, 7, 100, 101):
        parts = [pieces[part] for part in segment(pieces, longest)]
        assert [piece for part in parts for piece in part] == pieces
        assert all(0 < len(part) <= longest for part in parts)


@pytest.mark.parametrize(("max_length", "longest"), [(100, 250), (300, 300), (100_000, 500)])
def test_the_longest_segment_of_a_model(max_length: int, longest: int) -> None:
    assert longest_segment(max_length) == longest
