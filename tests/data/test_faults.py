"""Typical faults of parallel text: what is counted, from how many on there is a warning, and how the cure works."""

import re
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt.data.corpus import read_lines, read_pairs
from nmt.data.faults import NUMBERS, Corpus, Counts, Side, count_faults, fault_warnings

Pairs = list[tuple[str, str]]
PATHS = [(Path(f"{name}.en"), Path(f"{name}.de")) for name in ("train", "valid", "watch")]


def pairs(count: int, *, first: int = 0) -> Pairs:
    """So many pairs without a fault, all of them different."""
    return [(f"a dog {number}", f"ein Hund {number}") for number in range(first, first + count)]


def warnings(*corpora: Pairs, train: int = 1) -> list[str]:
    """What is said about corpora; the numbers are those that the cache keeps."""
    counts = Counts.of_numbers(count_faults(corpora, train=train).numbers())
    return fault_warnings(counts, PATHS[: len(corpora)], train=train)


def test_all_counts() -> None:
    train = [
        ("one", "eins"),
        ("a &amp; b", "a &#38; b"),
        ("one", "eins"),
        ("x", "x"),
        ("", "leer ."),
        ("", "leer ."),
        ("a\rb\r", "one"),
        ("two , &lt; three .", "&#x2F;\tzwei"),
        ("one", "eins"),
    ]
    valid = [("x", "x"), ("one", "x"), ("", "leer ."), ("a & b; & c", "&copy;.")]
    counts = count_faults([train, valid], train=1)
    assert counts == Counts(
        repeated=2,
        known=1,
        corpora=[
            Corpus(9, 7, 1, 0, Side(escaped=2, first_escaped=2, tokenized=1, returns=1), Side(2, 2, 2, 0, 0, 1)),
            Corpus(4, 3, 1, 0, Side(), Side(tokenized=1, raw=1)),
        ],
    )
    assert len(counts.numbers()) == 2 + 2 * NUMBERS
    assert Counts.of_numbers(counts.numbers()) == counts


def test_the_same_pair_in_two_corpora_is_repeated_and_that_of_a_watched_one_is_not_known() -> None:
    counts = count_faults([pairs(3), pairs(3), pairs(5, first=9), pairs(2)], train=2)
    assert (counts.repeated, counts.known) == (3, 0)


def test_memory_is_that_of_hashes() -> None:
    """8 bytes a pair, which may be there twice while their array grows; a pair of these lines has 130."""
    many = 100_000
    tracemalloc.start()
    try:
        count_faults([((f"a dog {number}", f"ein Hund {number}") for number in range(many))], train=1)
        assert tracemalloc.get_traced_memory()[1] < 20 * many
    finally:
        tracemalloc.stop()


def test_no_warning_without_a_fault() -> None:
    assert warnings(pairs(200), pairs(20, first=200), pairs(20)) == []
    assert warnings([("", "")], [("", "")]) == []


@pytest.mark.parametrize(("repeated", "count"), [(19, 0), (20, 1)])
def test_repeated_pairs(repeated: int, count: int) -> None:
    said = warnings([*pairs(100 - repeated), *pairs(repeated)], pairs(5, first=200))
    expected = (
        "data.train: 20 of 100 pairs (20.0%) repeat another one; give each pair once, and a weight to a corpus that "
        "is to count for more"
    )
    assert said == [expected][:count]


@pytest.mark.parametrize(("known", "count"), [(1, 0), (2, 1)])
def test_validation_pairs_that_are_training_pairs(known: int, count: int) -> None:
    said = warnings(pairs(500), pairs(200, first=500 - known))
    expected = (
        "data.valid: 2 of 200 pairs (1.0%) are training pairs, too, so that validation does not measure what the "
        "model makes of other text; take them out of one of the two"
    )
    assert said == [expected][:count]


@pytest.mark.parametrize(("identical", "count"), [(19, 0), (20, 1)])
@pytest.mark.parametrize("corpus", [0, 1])
def test_lines_that_are_the_same_on_both_sides(corpus: int, identical: int, count: int) -> None:
    other, faulty = pairs(7), [*pairs(100 - identical, first=7), *((f"x{n}", f"x{n}") for n in range(identical))]
    said = warnings(*((faulty, other) if corpus == 0 else (other, faulty)))
    source, target = PATHS[corpus]
    expected = (
        f"{source} and {target}: 20 of 100 pairs (20.0%) have the same text on both sides, which was not translated, "
        "or is of the same language twice; a model learns from them to copy"
    )
    assert said == [expected][:count]


@pytest.mark.parametrize(("tabbed", "count"), [(49, 0), (50, 1)])
def test_tables(tabbed: int, count: int) -> None:
    table = [(f"a dog {number}\tein Hund", f"ein Hund {number}") for number in range(tabbed)]
    said = warnings([*table, *pairs(100 - tabbed, first=tabbed)], pairs(5, first=200))
    expected = (
        "train.en: 50 of 100 lines (50.0%) have a tab, as in a table with both languages, and what a tab separates is "
        "one text to a model; give one of the columns, as cut -f1 FILE > NEW writes it"
    )
    assert said == [expected][:count]


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


@pytest.mark.parametrize(("crossed", "straight", "count"), [(4, 0, 0), (5, 0, 1), (40, 20, 0), (40, 19, 1)])
@pytest.mark.parametrize("side", [0, 1])
def test_how_alike_exchanged_sides_are(crossed: int, straight: int, count: int, side: int) -> None:
    """Of 40 words of a side, so many are those of the other side, or of the same one, in the first corpus."""
    first = [(f"s{n}", f"t{n}") for n in range(40)]
    mine, others = ("st"[side], "ts"[side])
    words = [f"{others}{n}" for n in range(crossed)] + [f"x{n}" for n in range(40)]
    other = [(word, f"y{n}")[:: -1 if side else 1] for n, word in enumerate(words[:40])]
    more = [(f"{mine}{n}", f"z{n}")[:: -1 if side else 1] for n in range(straight)]
    swapped = count_faults([first, [*other, *more]], train=1).corpora[1].swapped
    words_of_side = 40 + straight
    assert swapped == (crossed / words_of_side > max(2 * straight / words_of_side, 0.1)) == bool(count)


def test_the_first_pairs_tell_what_is_swapped() -> None:
    """After 1,000 of them in the right order, all the others may be exchanged."""
    right = worded(0, count=1000)
    assert warnings(worded(5000), [*right, *exchanged(worded(1000, count=500))]) == []
    (said,) = warnings(worded(5000), [*[("x", "y")] * 900, *exchanged(worded(0, count=100))])
    assert "look swapped" in said


def test_old_line_ends() -> None:
    (said,) = warnings([("a\rb\rc", "A B C")], pairs(3))
    assert said.startswith("train.en: has 2 carriage returns inside of 1 line, and a line ends at a line feed alone; ")


# ------------------------------------------------------------------------------------------------------- HTML entities


def sources(count: int, *, escaped: int = 0, tokenized: bool = False, first: int = 0) -> Pairs:
    """Pairs of which the last ones have an entity in the source."""
    end = " ." if tokenized else "."
    lines = [f"it{'&apos;' if number >= count - escaped else ''}s dog {first + number}{end}" for number in range(count)]
    return [(line, f"ein Hund {first + number}") for number, line in enumerate(lines)]


def named(said: Sequence[str]) -> list[str]:
    return [line.split(":")[0] for line in said if "HTML entities" in line]


@pytest.mark.parametrize(("escaped", "count"), [(1, 0), (2, 1)])
def test_entities(escaped: int, count: int) -> None:
    said = warnings(sources(200, escaped=escaped), sources(50, first=200))
    expected = (
        "train.en: 2 of 200 lines (1.0%) have HTML entities such as &quot; (the first is line 199), which belong only "
        "in text that Moses has tokenized, in training and validation alike"
    )
    assert [line.partition("; this puts")[0] for line in said] == [expected][:count]


@pytest.mark.parametrize(
    ("train", "valid", "files"),
    [
        (True, True, []),
        (True, False, ["train.en", "valid.en"]),
        (False, True, ["train.en", "valid.en"]),
        (False, False, ["train.en", "valid.en"]),
    ],
)
def test_entities_of_tokenized_text(train: bool, valid: bool, files: list[str]) -> None:
    said = warnings(sources(50, escaped=9, tokenized=train), sources(50, escaped=9, tokenized=valid, first=50))
    assert named(said) == files


def test_entities_of_text_of_which_a_part_is_tokenized() -> None:
    """All training files have to be, and a watched one for itself."""
    tokenized, raw, valid = (sources(50, escaped=9, tokenized=how, first=n) for n, how in ((0, 1), (50, 0), (100, 1)))
    assert named(warnings(tokenized, raw, valid, train=2)) == ["train.en", "valid.en", "watch.en"]
    assert named(warnings(tokenized, valid, raw)) == ["watch.en"]


@pytest.mark.parametrize("others", [[], [("term", "Begriff")] * 50, [("it&apos;s", "es")] * 50])
def test_a_list_of_terms_is_neither_raw_nor_tokenized(others: Pairs) -> None:
    tokenized, valid = sources(50, escaped=9, tokenized=True), sources(50, escaped=9, tokenized=True, first=50)
    assert named(warnings(tokenized, others, valid, train=2)) == []
    raw, valid = sources(50, escaped=9), sources(50, escaped=9, first=50)
    files = (
        ["train.en", "watch.en"] if not others[:1] or "&" not in others[0][0] else ["train.en", "valid.en", "watch.en"]
    )
    assert named(warnings(raw, others, valid, train=2)) == files


@pytest.mark.parametrize("mark", [".", "?", "!", "。", "！", "？", "।", "؟"])
@pytest.mark.parametrize("behind", ["", " ", '"', "’", " » "])
def test_every_script_has_its_full_stop(mark: str, behind: str) -> None:
    """Behind a space, which French has before a question mark and an exclamation point in raw text, too."""
    (tokenized, raw) = (
        count_faults([[(f"a{space}{mark}{behind}", "b")]], train=1).corpora[0].source for space in (" ", "")
    )
    assert (tokenized.tokenized, tokenized.raw) == (int(mark not in "?!"), 0)
    assert (raw.tokenized, raw.raw) == (0, 1)


def test_which_files_are_raw_and_which_tokenized() -> None:
    """A fifth of the lines is enough, and the majority tells."""
    for name in ("raw", "tokenized"):
        few, enough = (Side(**{name: count}) for count in (19, 20))
        assert (getattr(few, f"is_{name}")(100), getattr(enough, f"is_{name}")(100)) == (False, True)
    for raw, tokenized in ((30, 40), (40, 30), (30, 30)):
        side = Side(raw=raw, tokenized=tokenized)
        assert (side.is_raw(100), side.is_tokenized(100)) == (raw >= tokenized, tokenized > raw)


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
    counts = count_faults((read_pairs(*files) for files in paths), train=1)
    assert fault_warnings(counts, PATHS[:2], train=1) == []
    train, valid = paths
    counts = count_faults((read_pairs(*files) for files in (train, valid[::-1])), train=1)
    assert [warning.partition(":")[0] for warning in fault_warnings(counts, PATHS[:2], train=1)] == [
        "valid.en and valid.de look swapped"
    ]
