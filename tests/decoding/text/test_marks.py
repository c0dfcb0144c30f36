"""Where marks go in a translation, by attention."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.words import words_of
from nmt.decoding.text.marks import Mark, Weighted, pieces, written


def diagonal(source: str, target: str) -> list[Weighted]:
    """Each word attends to that at its place."""
    count = min(len(words_of(source)), len(words_of(target)))
    return [(place, place, 1.0) for place in range(count)]


def with_tags(source: str, target: str, links: list[Weighted] | None = None) -> str:
    """The target with the tags <…> of the source, each of which has its partner, or ends with a slash."""
    line, marks, open_marks = "", list[Mark](), list[int]()
    rest = source
    while rest:
        text, begin, rest = rest.partition("<")
        line += text
        tag, _, rest = rest.partition(">") if begin else ("", "", "")
        parent = open_marks[-1] if open_marks else -1
        if tag.startswith("/"):
            number = open_marks.pop()
            marks[number] = marks[number]._replace(stop=len(line), tags=(marks[number].tags[0], f"<{tag}>"))
        elif tag:
            spaces = {"before": line.endswith(" "), "after": rest.startswith(" ")}
            marks.append(Mark(len(line), len(line), parent, **spaces, tags=(f"<{tag}>", "")))
            if not tag.endswith("/"):
                open_marks.append(len(marks) - 1)
    return written(line, marks, target, diagonal(line, target) if links is None else links)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Press <b>Cancel</b>", "Drücke Abbrechen.", "Drücke <b>Abbrechen</b>."),  # no period that it has not
        ("Press <b>Cancel.</b>", "Drücke Abbrechen.", "Drücke <b>Abbrechen.</b>"),
        ("Press <b>Save as</b>.", "Drücke Sichern als….", "Drücke <b>Sichern als…</b>."),  # which is of the name
        ("a <b>dog</b>…", "ein Hund…", "ein <b>Hund</b>…"),
        ("Say <b>“no”</b>, Ann", "Sag „nein“, Anna", "Sag <b>„nein“</b>, Anna"),
        ("Press <b>Ctrl</b>+<b>X</b>", "Drücke Strg+X.", "Drücke <b>Strg</b>+<b>X</b>."),
        ("c<sub>1</sub>x<sup>n</sup> is", "c1xn ist", "c<sub>1</sub>x<sup>n</sup> ist"),
        ("a <b>red <i>hot</i></b> ball", "ein rot heißer Ball", "ein <b>rot <i>heißer</i></b> Ball"),
        ("a <b>dog</b><i>house</i>", "eine Hütte", "eine <b></b><i>Hütte</i>"),  # to most of its letters
        ("他<b>喜</b>欢", "er mag es", "er <b>mag</b> es"),
    ],
)
def test_what_a_mark_encloses(source: str, target: str, expected: str) -> None:
    assert with_tags(source, target) == expected


def test_attention_is_added_up() -> None:
    """The run has the most attention to what is inside, less that to the rest; an unsure word does not part it."""
    links = [(0, 0, 0.9), (1, 1, 0.8), (0, 2, 0.5), (2, 2, 0.5), (2, 3, 0.7), (3, 3, 0.3), (3, 4, 1.0)]
    assert with_tags("a <b>b c</b> d", "A B x C D", links) == "A <b>B x C</b> D"
    weak = [(0, 0, 0.9), (1, 1, 0.2), (2, 1, 0.8)]
    assert with_tags("a <b>b</b> c", "A C", weak) == "A <b>C</b>"  # rather than nothing


@pytest.mark.parametrize("sign", [":", ";", "?", "!"])
def test_a_sign_that_french_sets_off_is_no_word_of_the_mark(sign: str) -> None:
    """It attends to the word that has the sign in the source, and to one inside the mark."""
    links = [(0, 0, 1.0), (1, 1, 1.0), (1, 2, 0.7), (0, 2, 0.3), (2, 3, 1.0)]
    for inside, outside in (("", sign), (sign, "")):
        expected = f"<b>le fichier{inside and f' {sign}'}</b>{outside and f' {sign}'} refusé"
        assert with_tags(f"<b>the file{inside}</b>{outside} denied", f"le fichier {sign} refusé", links) == expected


def test_sentences_go_with_sentences_where_there_are_as_many() -> None:
    """Whatever words attend to; the period of one belongs to it."""
    links = [(3, 0, 0.9), (0, 0, 0.1), (1, 1, 1.0), (0, 2, 0.6), (2, 2, 0.4), (0, 3, 1.0)]
    assert with_tags("<b>One two.</b> Three four", "Eins zwei. Drei vier", links) == "<b>Eins zwei.</b> Drei vier"


@pytest.mark.parametrize(("source", "expected"), [("<b>a</b> x a", "<b>A</b> X A"), ("a x <b>a</b>", "A X <b>A</b>")])
def test_of_equal_words_that_in_a_like_position(source: str, expected: str) -> None:
    """Where attention does not tell them apart, as with links of words that know nothing of positions."""
    links = [(0, 0, 0.5), (2, 0, 0.5), (1, 1, 1.0), (0, 2, 0.5), (2, 2, 0.5)]
    assert with_tags(source, "A X A", links) == expected


def test_equal_words_in_their_order() -> None:
    """However near to each other; the last one attends to the first as much as to that which it is."""
    source = "s t u v w a and b <b>and c</b> and d"
    links = [(place, place, 1.0) for place in range(12) if place not in (6, 8, 10)]
    links += [(word, place, 0.33) for word in (6, 8, 10) for place in (6, 8, 10)]
    assert with_tags(source, "S T U V W A und B und C und D", links) == "S T U V W A und B <b>und C</b> und D"


def test_words_that_are_no_language_are_found_whatever_they_attend_to() -> None:
    links = [(1, 0, 1.0), (0, 1, 1.0), (2, 2, 1.0)]
    assert with_tags("press <kbd>F5</kbd> now", "jetzt F5 drücken", links) == "jetzt <kbd>F5</kbd> drücken"


def test_of_several_that_which_it_attends_to_where_the_translation_has_fewer() -> None:
    links = [(0, 0, 1.0), (0, 1, 0.4), (3, 1, 0.6), (2, 2, 1.0)]
    assert with_tags("F5 and press <kbd>F5</kbd>", "Taste F5 drücken", links) == "Taste <kbd>F5</kbd> drücken"
    assert with_tags("F5 and press <kbd>F5</kbd>", "Taste F5 drücken", links[:1]) == "Taste F5 <kbd></kbd>drücken"


def test_of_several_that_which_attends_to_it_most() -> None:
    links = [(1, 1, 0.2), (2, 1, 0.5), (3, 1, 0.3), (2, 3, 0.6), (3, 3, 0.4)]
    assert with_tags("press <kbd>F5</kbd> and F5", "Taste F5 und F5", links) == "Taste <kbd>F5</kbd> und F5"


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("one <x/> two", "eins zwei", "eins <x/> zwei"),
        ("to <x/>.", "an.", "an <x/>."),
        ("one<x/> two", "eins zwei", "eins<x/> zwei"),
        ("<x/>, one two", "eins zwei", "<x/> eins zwei"),
        ("one two <x/>", "eins zwei", "eins zwei <x/>"),
        ("one two <x/>", "eins zwei.", "eins zwei <x/>."),
        ("one <x/> <y/> two", "eins zwei", "eins <x/> <y/> zwei"),
        ("我<x/>好", "我（好）", "我<x/>（好）"),
        ("one <x/> ”two” ?", "eins »zwei« ?", "eins <x/> »zwei« ?"),
        ("one two <x/>?", "un deux ?", "un deux <x/> ?"),
        ("one two<x/>: three", "un deux : trois", "un deux<x/> : trois"),
    ],
)
def test_where_a_mark_without_words_stands(source: str, target: str, expected: str) -> None:
    assert with_tags(source, target) == expected


@pytest.mark.parametrize(
    ("source", "target", "attended", "expected"),
    [
        ("走「<x/>田」。", "runs “field”.", [(0, 0, 1.0), (1, 1, 0.2), (2, 1, 0.6), (3, 1, 0.2)], "runs “<x/>field”."),
        (
            "走（田<x/>）川",
            "runs (field) river",
            [(0, 0, 1.0), (2, 1, 0.6), (3, 1, 0.4), (4, 2, 1.0)],
            "runs (field<x/>) river",
        ),
        ("「田」<x/>「川」", "“field” “river”", [(1, 0, 0.6), (2, 0, 0.4), (4, 1, 1.0)], "“field”<x/> “river”"),
        ("「<x/>田川走", "field “river runs", [(1, 0, 1.0), (2, 1, 1.0), (3, 2, 1.0)], "<x/>field “river runs"),
        ('走"<x/>犬"川', "runs dog” river", [(0, 0, 1.0), (2, 1, 1.0), (4, 2, 1.0)], "runs <x/>dog” river"),
        ("dog <x/> “runs”", "犬「走」", [(0, 0, 1.0), *((1, place, 1.0) for place in (1, 2, 3))], "犬<x/>「走」"),
        ("“dog <x/>” runs", "「犬」走", [(0, 0, 1.0), (0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)], "「犬<x/>」走"),
        ("(<x/>dog) runs", "（犬）走", [*((0, place, 1.0) for place in (0, 1, 2)), (1, 3, 1.0)], "（<x/>犬）走"),
    ],
)
def test_brackets_of_a_script_without_spaces_go_with_their_words(
    source: str, target: str, attended: list[Weighted], expected: str
) -> None:
    """Each is a word by itself there, and in other scripts a part of one."""
    assert with_tags(source, target, attended) == expected


def test_it_is_not_behind_the_period_of_tokenized_text() -> None:
    """Which may attend to any word, as where the translation lacks the rest of the source."""
    number = Mark(9, 9, before=True, after=True, tags=("12", ""))
    links = [(0, 0, 1.0), (1, 1, 1.0), (0, 2, 0.4), (1, 2, 0.6)]
    assert written("we see 12 of them .", [number], "wir sehen .", links) == "wir sehen 12 ."


def test_it_is_not_behind_the_last_period() -> None:
    """Also where the word with the period attends to one with another inside."""
    links = [(0, 0, 1.0), (1, 1, 0.5), (1, 2, 0.9), (1, 3, 0.9)]
    assert with_tags("a ASP.NET and <x/> at b.", "A mit der Sache.", links) == "A mit der Sache <x/>."


def test_it_stands_where_its_neighbors_are_not_the_rest_of_the_line() -> None:
    links = [(3, 0, 1.0), (0, 1, 0.9), (3, 1, 0.1), (1, 2, 1.0), (2, 3, 1.0)]
    assert with_tags("a b <x/> c d", "D A B C", links) == "D A B <x/> C"


def test_a_text_instead_of_the_words() -> None:
    links = [(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0)]
    mark = Mark(2, 7, instead="Wau")
    assert written("a hot dog.", [Mark(2, 9, instead="Wurst")], "ein heißer Hund.", links) == "ein Wurst."
    assert written("a small b", [mark], "ein kleines c", links) == "ein Wau c"
    assert written("a small b", [mark], "", []) == "Wau"


def test_two_texts_instead_of_one_word() -> None:
    marks = [Mark(2, 5, before=True, after=True, instead="Hund"), Mark(6, 11, before=True, after=True, instead="Haus")]
    for first in (0.4, 0.5, 0.6):
        links = [(0, 0, 1.0), (1, 1, first), (2, 1, 1 - first)]
        links += [(1, 2, 0.2), (2, 2, 0.2), (3, 2, 0.6)]  # none takes the place of a word that is another's
        assert written("a dog house is", marks, "eine Hundehütte ist", links) == "eine Hund Haus ist"


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        (Mark(6, 9, instead="Dackel"), "ein <b>rotes x Dackel</b> läuft"),
        (Mark(0, 0, instead="", replaces=(10, 11)), "ein <b>rotes Hund</b> läuft"),
        (Mark(0, 0, instead="Wal schwimmt", replaces=(12, 22)), "ein <b>rotes x Wal schwimmt</b>"),
    ],
)
def test_what_encloses_words_encloses_what_takes_their_place(mark: Mark, expected: str) -> None:
    links = [(0, 0, 1.0), (1, 1, 1.0), (2, 3, 1.0), (3, 4, 1.0)]
    marks = [Mark(2, 9, tags=("<b>", "</b>")), mark]
    assert written("a red dog runs", marks, "ein rotes x Hund läuft", links) == expected


@given(
    st.lists(st.sampled_from(["a", "b,", "狗", "«x»", "F5", ".", "\u200b"]), max_size=7),
    st.lists(st.sampled_from(["A", "B,", "犬", "„X“", "F5", ".", "\u200b"]), max_size=7),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.booleans()), max_size=6),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.floats(0.03, 1.0)), max_size=15),
)
def test_every_mark_is_there_once_and_the_text_is_whole(
    source: list[str], target: list[str], spans: list[tuple[int, int, bool]], links: list[Weighted]
) -> None:
    """Whatever is written and attended to; only a text that is to be written instead of words takes their place."""
    line, translation = " ".join(source), " ".join(target)
    marks = []
    for start, stop, is_term in sorted((min(a, b), max(a, b), c) for a, b, c in spans if max(a, b) <= len(line)):
        is_inside = is_term and marks and marks[-1].instead is None and stop <= marks[-1].stop
        if not marks or start >= marks[-1].stop or is_inside:
            is_replaced, number = is_term and start < stop, len(marks)
            tags = ("", "") if is_replaced else (f"<{number}>", f"</{number}>")
            marks.append(Mark(start, stop, instead="T" if is_replaced else None, tags=tags))
    sizes = len(words_of(line)), len(words_of(translation))
    links = list({(s, t): (s, t, w) for s, t, w in links if s < sizes[0] and t < sizes[1]}.values())
    parts = pieces(line, marks, translation, links)
    whole = "".join(part.text for part in parts)
    for number, mark in enumerate(marks):
        if not mark.instead:
            assert whole.count(f"<{number}>") == whole.count(f"</{number}>") == 1
            assert whole.index(f"<{number}>") < whole.index(f"</{number}>")
    assert sum(part.text == "T" for part in parts if part.mark is not None) == sum(bool(mark.instead) for mark in marks)
    if not any(mark.instead for mark in marks):
        text = "".join(part.text for part in parts if part.mark is None)
        assert "".join(text.split()) == "".join(translation.split())


def test_many_marks_beside_each_other_take_time_in_proportion() -> None:
    def seconds(count: int) -> float:
        line = " ".join(["ab"] * count)
        marks = [Mark(3 * place, 3 * place + 2, tags=("<b>", "</b>")) for place in range(count)]
        began = time.process_time()
        assert written(line, marks, line, [(place, place, 1.0) for place in range(count)]).count("<b>ab</b>") == count
        return time.process_time() - began

    assert seconds(8_000) < 0.5 + 24 * seconds(1_000)
