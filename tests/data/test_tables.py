"""Tables as people and programs write them, by their rows."""

from pathlib import Path

import pytest

from nmt.data.pairs import pairs_of_table
from nmt.data.tables import rows
from nmt.errors import UserError

MANY, TAB = ",;\t", "\t"  # what may stand between two cells


@pytest.mark.parametrize(
    ("text", "delimiters", "expected"),
    [
        ("", MANY, []),
        ("\n \n", MANY, []),
        ("sep=;\r\n", MANY, []),
        ("\ufeffsep=;\r\n\r\na,b;c\r\n", MANY, [(3, ["a,b", "c"])]),
        ("sep=;\n", TAB, [(1, ["sep=;"])]),
        ("\n\na,b\n\nc,d\n", MANY, [(3, ["a", "b"]), (4, []), (5, ["c", "d"])]),
        ('"a, b, c";d\n', MANY, [(1, ["a, b, c", "d"])]),
        ("a, b, c\td\n", MANY, [(1, ["a, b, c", "d"])]),
        ('a,"b\nc\r\nd"\ne,f\n', MANY, [(1, ["a", "b c d"]), (4, ["e", "f"])]),
        ('a\tb\n"c\nd"\te\n', MANY, [(1, ["a", "b"]), (2, ["c d", "e"])]),  # CSV, where other signs may part cells
        ('a\tb\n"c"\t"d "" e"\n', TAB, [(1, ["a", "b"]), (2, ["c", 'd " e'])]),
        ('a\tb\n"c"\td\te ""\n', TAB, [(1, ["a", "b"]), (2, ['"c"', "d", 'e ""'])]),
        ('"a" b\tc\n"d"\t"e"\n', TAB, [(1, ['"a" b', "c"]), (2, ['"d"', '"e"'])]),
        ('a\tb\n"c\nd"\t1\n', TAB, [(1, ["a", "b"]), (2, ["c d", "1"])]),
        ('"a\nb"\t"c"\n"d"\t"e"\n', TAB, [(1, ["a b", "c"]), (3, ["d", "e"])]),
        pytest.param(
            '"a"\t"b"\n' * 998 + '"c\td\n',
            TAB,
            [*((line, ['"a"', '"b"']) for line in range(1, 999)), (999, ['"c', "d"])],
            id="all lines are looked at",
        ),
        ('a\tb\n"c\td\n', TAB, [(1, ["a", "b"]), (2, ['"c', "d"])]),
        pytest.param('"' + "a" * 200_000 + '";b\n', MANY, [(1, ["a" * 200_000, "b"])], id="a large cell"),
        ("a\rb\tc\r\n", TAB, [(1, ["a b", "c"])]),
    ],
)
def test_rows(tmp_path: Path, text: str, delimiters: str, expected: list[tuple[int, list[str]]]) -> None:
    (path := tmp_path / "table").write_text(text, newline="")
    assert list(rows(path, delimiters)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# a\n\nb,c\n# d, e\nf,g\n", [(3, ["b", "c"]), (4, []), (5, ["f", "g"])]),
        ('b,c\n#,"d\n"#e",f\n', [(1, ["b", "c"]), (2, []), (3, ["#e", "f"])]),
        ("# a\nsep=|\n# b\n#c|d\ne|f\n", [(5, ["e", "f"])]),
        ("# a\n# b\n", []),
        ("# a\n#1\tb\n# c\nd\te\n", [(2, ["#1", "b"]), (3, [""]), (4, ["d", "e"])]),
        ('"a"\tb "c"\n "d" \te\n', [(1, ["a", 'b "c"']), (2, ["d", "e"])]),
        ('a\tb\n"c\nd"\t"e"\n', [(1, ["a", "b"]), (2, ["c d", "e"])]),
    ],
)
def test_rows_of_terms(tmp_path: Path, text: str, expected: list[tuple[int, list[str]]]) -> None:
    (path := tmp_path / "table").write_text(text, newline="")
    assert list(rows(path, ",;|\t", of_terms=True)) == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [('"a\nb"\t"c"\n', ["a b", "c"]), ('"a\tb\n', ['"a', "b"])],
)
@pytest.mark.parametrize("before", ["", "sep=\t\n"])
def test_many_rows(tmp_path: Path, row: str, expected: list[str], before: str) -> None:
    """The first thousand lines tell how all are written, of which one cell may go on after them."""
    (path := tmp_path / "table").write_text(f"{before}x\ty\n{row * 1000}")
    assert [cells for _, cells in rows(path, TAB)] == [["x", "y"], *[expected] * 1000]


def test_names_are_missed_where_they_belong(tmp_path: Path) -> None:
    (path := tmp_path / "a.csv").write_text("sep=;\n\na;b;c\n")
    with pytest.raises(UserError, match="line 3: none of its columns"):
        list(pairs_of_table(path, [["en"], ["de"]]))
