"""Typical faults of parallel text: from how many on there is a warning, and how the cure works."""

import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from nmt.data.corpus import read_lines, read_pairs
from nmt.data.lint import Read, checked

Pairs = list[tuple[str, str]]
PATHS = [(Path(f"{name}.en"), Path(f"{name}.de")) for name in ("train", "valid", "watch")]


def pairs(count: int, *, first: int = 0) -> Pairs:
    """So many pairs without a fault, all of them different."""
    return [(f"a dog {number}", f"ein Hund {number}") for number in range(first, first + count)]


def warnings(*corpora: Pairs, train: int = 1) -> list[str]:
    """What is said about corpora."""
    keys = ["data.train.0", "data.valid", "data.watch.0"] if train == 1 else ["data.train.0", "data.train.1"]
    told, *_ = checked(map(Read, [*keys, "data.valid"], PATHS, corpora), train=train)
    return told


def test_pairs_count_where_both_sides_have_text() -> None:
    train = [*pairs(7), *pairs(2), ("", "leer"), ("", "leer"), ("x", "x")]
    (repeated,) = warnings(train, pairs(9, first=20))
    assert repeated.startswith("data.train: 2 of 10 pairs (20.0%) repeat another one")
    (known,) = warnings(pairs(7), [*pairs(2), *pairs(8, first=9), ("", "leer")])
    assert known.startswith("data.valid: 2 of 10 pairs (20.0%) are training pairs, too")


def test_the_same_pair_in_two_training_corpora_is_repeated() -> None:
    said = warnings(pairs(3), pairs(3), pairs(5, first=1), train=2)
    assert [warning.partition(" (")[0] for warning in said] == [
        "data.train: 3 of 6 pairs",
        "data.valid: 2 of 5 pairs",
    ]


def test_memory_is_that_of_hashes() -> None:
    """8 bytes a pair, which may be there twice while their array grows; a pair of these lines has 130."""
    many = 20_000
    train = ((f"a dog {number}", f"ein Hund {number}") for number in range(many))
    warnings(pairs(3_000))  # compiles patterns, and fills Python's lists of small objects to use again
    tracemalloc.start()
    try:
        checked([Read("train", PATHS[0], train), Read("valid", PATHS[1], pairs(9))], train=1)
        assert tracemalloc.get_traced_memory()[1] < 20 * many
    finally:
        tracemalloc.stop()


def test_no_warning_without_a_fault() -> None:
    assert warnings(pairs(200), pairs(20, first=200), pairs(20, first=300)) == []
    assert warnings([("", "")], pairs(3)) == []


def test_words_that_stay_as_they_are_are_no_fault() -> None:
    """As in spelling: 24% of a validation text of old German."""
    assert warnings(pairs(20), [*pairs(50, first=50), *((f"x{n}", f"x{n}") for n in range(50))]) == []


def repeated(count: int) -> list[Pairs]:
    return [[*pairs(100 - count), *pairs(count)], pairs(5, first=200)]


def known(count: int) -> list[Pairs]:
    return [pairs(500), pairs(200, first=500 - count)]


def identical(count: int) -> list[Pairs]:
    others = [(f"a big dog {n}", f"ein großer Hund {n}") for n in range(count, 100)]
    return [pairs(7), [*others, *((f"x{n}", f"x{n}") for n in range(count))]]


def tabbed(count: int) -> list[Pairs]:
    table = [(f"a dog {number}\tein Hund", f"ein Hund {number}") for number in range(count)]
    return [[*pairs(100 - count, first=count), *table], pairs(5, first=200)]


def escaped(count: int) -> list[Pairs]:
    return [sources(200, escaped=count), sources(50, first=200)]


@pytest.mark.parametrize(
    ("fault", "enough", "message"),
    [
        (repeated, 20, "data.train: 20 of 100 pairs (20.0%) repeat another one; "),
        (known, 2, "data.valid: 2 of 200 pairs (1.0%) are training pairs, too, "),
        (
            identical,
            20,
            "valid.en and valid.de: 20 of 100 pairs (20.0%) have the same text on both sides (the first is line 81), ",
        ),
        (tabbed, 50, "train.en: 50 of 100 lines (50.0%) have a tab (the first is line 51), "),
        (
            escaped,
            2,
            "train.en: 2 of 200 lines (1.0%) have HTML entities such as &quot; in words (the first is line 199), ",
        ),
    ],
)
def test_a_warning_begins_at_a_share_of_lines_or_pairs(
    fault: Callable[[int], list[Pairs]], enough: int, message: str
) -> None:
    assert warnings(*fault(enough - 1)) == []
    (warning,) = warnings(*fault(enough))
    assert warning.startswith(message)


def exchanged(corpus: Pairs) -> Pairs:
    return [(target, source) for source, target in corpus]


def worded(first: int, *, count: int = 30) -> Pairs:
    """Pairs that have other words in German than in English, but for numbers, which are different in every pair."""
    return [(f"the dog sees E{n % 25} {n}", f"der Hund sieht G{n % 25} {n}") for n in range(first, first + count)]


@pytest.mark.parametrize("other", [1, 2])
def test_sides_that_are_swapped(other: int) -> None:
    """In comparison with the first corpus, whichever of them it is that is wrong."""
    corpora = [worded(0), worded(30), worded(60)]
    assert warnings(*corpora) == []
    corpora[other] = exchanged(corpora[other])
    source, target = PATHS[other]
    (said,) = warnings(*corpora)
    assert said == (
        f"{source} and {target} look swapped: the words of the source are rather those of train.de, and the words of "
        "the target those of train.en; one of the two corpora has its sides the wrong way round, unless that is meant"
    )


def test_what_may_be_swapped_for_all_that_its_words_say() -> None:
    assert warnings(worded(0, count=5), exchanged(worded(5, count=5))) == []  # too few words
    assert warnings(worded(0), [(f"un chien {n}", f"un perro {n}") for n in range(50, 90)]) == []  # other languages
    same = [(f"E{n % 25} is {n}", f"E{n % 25} was {n}") for n in range(60)]
    assert warnings(same[:30], exchanged(same[30:])) == []  # the same language


def test_the_first_pairs_tell_what_is_swapped() -> None:
    """After 1,000 of them in the right order, all the others may be exchanged."""
    right = worded(0, count=1000)
    assert warnings(worded(5000), [*right, *exchanged(worded(1000, count=500))]) == []
    (said,) = warnings(worded(5000), [*[("x", "y")] * 900, *exchanged(worded(0, count=100))])
    assert "look swapped" in said


# ------------------------------------------------------------------------------------------------------- HTML entities


def sources(count: int, *, escaped: int = 0, first: int = 0) -> Pairs:
    """Pairs of which the last ones have an entity in the source."""
    lines = [f"it{'&apos;' if number >= count - escaped else ''}s dog {first + number}." for number in range(count)]
    return [(line, f"ein Hund {first + number}") for number, line in enumerate(lines)]


@pytest.mark.parametrize(
    ("line", "is_escaped"),
    [
        ("it&apos;s", True),
        ("&quot;Grüße&quot;", True),
        ("Q&amp;A", True),
        ("caf&#xEA;", True),
        ("it &apos;s", False),  # as Moses writes it
        ("l&apos; eau", False),
        ("a &quot; word &quot; , R &amp; D", False),
        ("dogs &lt; cats &#124; cats", False),
        ("AT&T; a&b;c", False),
    ],
)
def test_entities_inside_of_words(line: str, is_escaped: bool) -> None:
    assert len(warnings([(line, "b")], pairs(1))) == is_escaped


def test_the_cure_keeps_the_lines(tmp_path: Path) -> None:
    """One line for each, even where an entity stands for a line end, in the encoding of the corpus."""
    (said,) = warnings(sources(9, escaped=9), sources(9, first=9))
    command = re.fullmatch(r".*; this puts characters in their place: (.*)", said)
    assert command is not None
    text = "&quot;Grüße&quot;\n\na &amp;lt; b&#10;c&#13;\r\nd\re&#x2028;f\n"
    (tmp_path / "FILE").write_bytes(text.encode())
    shell = command[1].replace("python3", sys.executable, 1)
    subprocess.run(shell, shell=True, cwd=tmp_path, check=True)
    assert list(read_lines(tmp_path / "NEW")) == ['"Grüße"', "", "a &lt; b c", "d e f"]


# -------------------------------------------------------------------------------------------------------- real corpora


@pytest.mark.parametrize("corpus", ["multi30k/raw", "multi30k/tok", "wmt_news10k"])
def test_real_corpora_have_no_fault(shared_data: Path, corpus: str) -> None:
    """Neither raw text nor text from Moses, with its entities."""
    middle = ".lc.norm.tok" if corpus.endswith("tok") else ""
    paths = [
        tuple(shared_data / corpus / f"{part}{middle}.{side}.gz" for side in ("en", "de")) for part in ("train", "val")
    ]
    train, valid = (list(islice(read_pairs(*files), 10_000)) for files in paths)
    assert warnings(train, valid) == []
    said = warnings(train, exchanged(valid))
    assert [warning.partition(":")[0] for warning in said] == ["valid.en and valid.de look swapped"]
