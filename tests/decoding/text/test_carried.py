"""Numbers, names, and placeholders that a model was shown, and what it has written instead."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from nmt.decoding.text.carried import differences, restored
from nmt.decoding.text.glossary import Glossary
from nmt.decoding.text.protect import Protection, Sight
from nmt.decoding.translator import TranslationOptions, Translator
from tests.known_model import save_known_model


def translated(
    folder: Path, source: Sequence[str], target: Sequence[str], learned: Mapping[str, bool | str], **options: Any
) -> str:
    """What a model writes `target` for, word for word, or for its last words where there are fewer of them."""
    links = [(place + len(source) - len(target), place) for place in range(len(target))]
    save_known_model(folder / "model", source, target, links)
    known = Translator.load(folder / "model")
    line = options.pop("line", " ".join(source))
    translator = Translator(known.scorer, known.vocabularies, decoding=known.decoding, learned=learned)
    prefixes = [options.pop("prefix", "")]
    [[best]] = translator.translate([line], TranslationOptions(alignments=True, **options), prefixes=prefixes)
    assert best.soft_alignment is not None
    assert best.soft_alignment.target_words == best.text.split()
    return best.text


@pytest.mark.parametrize(
    ("source", "target", "learned", "expected"),
    [
        ("of 262 men", "von 2622 Männern", {}, "von 262 Männern"),
        ("of 262 men", "von 2622 Männern", {"000": "~000"}, "von 262 Männern"),
        ("of 262 men", "von 2622 Männern", {"000": False}, "von 2622 Männern"),
        ("of 12 and 262", "von 11 und 260", {}, "von 12 und 262"),
        ("at 2 , 3", "um 14 , 15", {"2": "14"}, "um 14 , 3"),
        ("at 14 , 2", "um 14 , 3", {"2": "14"}, "um 14 , 2"),
        ("at 2 , 14", "um 14 , 2", {"2": "14"}, "um 14 , 2"),
        ("from 99 to 1999", "von bis 1999", {"99": "1999"}, "von 99 bis 1999"),
        ("12 men", "Männer", {}, "12 Männer"),
        ("12 men", "Männer", {"00": "~00"}, "Männer"),
        ("12 men", "zwölf Männer", {"00": "~00"}, "zwölf Männer"),
        ("two men", "2 Männer", {}, "2 Männer"),
        ("at 2,299.50 now", "um 2.9950 jetzt", {"0,000.00": "0.000,00"}, "um 2.299,50 jetzt"),
        ("on 2024-05-06 now", "am 6.5.2024 jetzt", {}, "am 6.5.2024 jetzt"),
        ("12 men", "von13 Männern", {}, "von 12 Männern"),
        ("of A4 and 12", "von A5 und 13", {}, "von A5 und 12"),
        ("costs (12)", "kostet", {}, "kostet 12"),
        ("at -3 now", "bei jetzt", {}, "bei -3 jetzt"),
        ("at -3 now", "bei 4 jetzt", {}, "bei -3 jetzt"),
        ("at -3 now", "bei −4 jetzt", {"-0": "−0"}, "bei −3 jetzt"),
        ("at -3 now", "bei –4 jetzt", {}, "bei -3 jetzt"),
        ("10%-20% less", "10%-30% weniger", {}, "10%-20% weniger"),
        ("costs 6.5 now", "kostet 65 jetzt", {}, "kostet 6.5 jetzt"),
        ("costs $12 .", "kostet $ .", {}, "kostet $ 12 ."),
        ("10–12 men", "Männer", {}, "10–12 Männer"),
        ("on 15/6/2024 he has left us", "am 15. Juni 2024 ging er", {}, "am 15. Juni 2024 ging er"),
        ("from 50-60 he left us", "von 50 bis 61 ging", {}, "von 50 bis 61 ging"),
        ("at 10:30 now", "um 10 jetzt", {}, "um 10:30 jetzt"),
        ("pages 10-12 now", "Seiten 10–13 jetzt", {}, "Seiten 10-12 jetzt"),
        ("costs 1,234 now", "kostet 1’235 jetzt", {}, "kostet 1,234 jetzt"),
        ("a _very_ nice dog", "ein _sehr_ netter Hund", {}, "ein _sehr_ netter Hund"),
        ("see Covid-19", "siehe Covid", {}, "siehe Covid 19"),
        ("the QuarkSE-EM reads", "die APU-Angabe liest", {"AaA": "AaA"}, "die APU-Angabe QuarkSE liest"),
        ("12 dollars", "5.75 Dollar", {"00": "~00"}, "12 Dollar"),
        ("12 dollars and 5.75", "5.75 Dollar", {}, "12 5.75 Dollar"),
        ("has 12 million men", "有 1200万 人 口", {}, "有 1200万 人 口"),
        ("has 12 million", "hat 1200만 명", {}, "hat 1200만 명"),
        ("has 12万 men", "hat 120,000 Männer", {}, "hat 120,000 Männer"),
        ("see 12 men", "siehe &#91; Männer", {"00": "~00"}, "siehe &#91; Männer"),
        ("of --a-b and file_name", "von --a-x und datei_namen", {}, "von --a-b und file_name"),
        ("of file_name", "von", {"a_a": "a_a"}, "von file_name"),
        ("of file_name", "von", {}, "von"),
        ("of file_name 12", "von zehn_x 11", {"a_a": False}, "von zehn_x 12"),
        ("of exec() 0xFF ab.txt b1", "von exc() 0xF0 ab.tt b2", {}, "von exec() 0xFF ab.txt b2"),
        ("open %s now", "öffne %d jetzt", {"%s": True, "%d": True}, "öffne %s jetzt"),
    ],
)
def test_what_stands_instead_of_a_number_or_a_name(
    tmp_path: Path, source: str, target: str, learned: dict[str, bool | str], expected: str
) -> None:
    assert translated(tmp_path, source.split(), target.split(), learned) == expected


def test_what_the_user_says_stays(tmp_path: Path) -> None:
    words = ["of", "262", "men"], ["von", "2622", "Männern"]
    assert translated(tmp_path, *words, {}, protect=[]) == "von 2622 Männern"
    glossary = Glossary({"men": "Gruppe 7"})
    assert translated(tmp_path, *words, {}, glossary=glossary) == "von 262 Gruppe 7"
    assert translated(tmp_path, *words, {}, prefix="von 2622") == "von 2622 Männern"
    assert translated(tmp_path, *words, {}, forbidden=("262",)) == "von 2622 Männern"
    assert translated(tmp_path, ["262", "men"], ["Männer"], {}, forbidden=("262",)) == "Männer"


@pytest.mark.parametrize(
    ("line", "expected"), [("of <b>262 men</b>", "von <b>262 Männern</b>"), ("OF 262 MEN", "VON 262 MÄNNERN")]
)
def test_a_number_in_a_tag_and_beside_capitals(tmp_path: Path, line: str, expected: str) -> None:
    words = ["of", "262", "men"], ["von", "2622", "Männern"]
    assert translated(tmp_path, *words, {}, line=line) == expected


def test_a_name_beside_capitals(tmp_path: Path) -> None:
    words = ["of", "max_len", "men"], ["von", "min_len", "Männern"]
    assert translated(tmp_path, *words, {}, line="OF MAX_LEN MEN") == "VON MAX_LEN MÄNNERN"


def test_an_unknown_word_may_stand_for_a_number(tmp_path: Path) -> None:
    """Unless it is to be replaced anyway, by what it attends to."""
    save_known_model(tmp_path / "model", ["of", "262", "men"], ["von", "x", "Männern"], [(0, 0), (1, 1), (2, 2)])
    sight = Sight(Translator.load(tmp_path / "model").vocabularies.source, Protection(["placeholders"]))
    seen = sight.seen("of 262 men", 0, 10, sight.found("of 262 men"))
    links = [(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0)]
    [unknown] = differences(seen, "von ⁇ Männern", sight, fixed=[], unknown=[(4, 5)])
    marks, _ = restored(unknown, seen, "von ⁇ Männern", sight, links)
    assert [(mark.instead, mark.replaces) for mark in marks.values()] == [("262", (4, 5))]
    [nothing] = differences(seen, "von ⁇ Männern", sight, fixed=[], unknown=[])
    assert restored(nothing, seen, "von ⁇ Männern", sight, links, puts_back=False) == ({}, [])


def test_a_number_whose_sign_the_vocabulary_lacks(tmp_path: Path) -> None:
    save_known_model(tmp_path / "model", ["a", "12"], ["b", "34"], [(0, 0), (1, 1), (2, 2)], split=True)
    assert Translator.load(tmp_path / "model").translate_text("a +12") == "b +12"


def test_a_line_of_a_name_alone_is_translated(tmp_path: Path) -> None:
    assert translated(tmp_path, ["file_name"], ["Dateiname"], {}) == "Dateiname"
