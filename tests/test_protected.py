"""What a model learns of what is no words, from the training text."""

import pytest

from nmt import protected
from nmt.protected import (
    ENOUGH,
    LEARNED,
    RARE_LETTERS,
    WITHOUT_LETTERS,
    Carried,
    compared,
    form_of,
    in_form,
    learned_by,
    literals_of,
)


def carried(*pairs: tuple[str, str, int]) -> Carried:
    counts = Carried()
    for source, target, times in pairs:
        for _ in range(times):
            counts.add(source, target)
    return counts


def test_what_the_training_text_translates_is_learned() -> None:
    counts = carried(
        ("<es> the dog {name}", "el perro {name}", ENOUGH),
        ("l a u f e n tense={PRS/FUT} num=SG", "l ä u f t", ENOUGH),
        ("<b>few</b>", "wenige", ENOUGH - 1),  # of which there are too few
        ("see www.example.com", "siehe www.example.de", 2 * ENOUGH),
        ("see www.example.org", "siehe www.example.org", ENOUGH),  # half of them as it is
        ("see www.example.org", "siehe dort", ENOUGH),
    )
    assert counts.learned() == {"<es>": False, "www.example.com": False, "{PRS/FUT}": False, "{name}": True}


def test_so_are_numbers_of_lists_and_lines_without_letters() -> None:
    """As where dates and numbers are to be written in another way; a list keeps its numbers, and a line its dashes."""
    counts = carried(
        ("3. Mai 1979", "1979-05-03", ENOUGH),
        ("- 4. April", "- 4 April", ENOUGH),
        ("1. a dog", "1. ein Hund", ENOUGH),
        ("---", "---", ENOUGH - 1),
        *((f"{number}", "some words", 1) for number in range(ENOUGH)),
    )
    numbers = {"0000": "0000", "0": "~0"}
    assert counts.learned() == {WITHOUT_LETTERS: False, "- 4.": False, "3.": False, **numbers}
    for _ in range(200 * ENOUGH):
        counts.add("a dog", "ein Hund")
    assert counts.learned() == {"- 4.": False, "3.": False, **numbers}


def test_letters_of_words_that_are_spelled_anew_are_learned() -> None:
    """By what becomes of the rarest; in other words they stay, and in sentences names do."""
    usual = ("vnd", "und", ENOUGH)
    assert carried(usual, ("ſ", "s", ENOUGH - 1)).learned(of_words=True) == {RARE_LETTERS: False}
    assert carried(usual, ("ſ", "s", ENOUGH // 2), ("q", "q", ENOUGH // 2 + 1)).learned(of_words=True) == {}
    assert carried(("ſ", "s", ENOUGH // 2)).learned(of_words=True) == {}  # which are too few
    assert carried(("a ſ", "s", ENOUGH)).learned(of_words=True) == {}
    assert carried(usual, ("ſ", "s", ENOUGH - 1), ("my ſon", "my son", ENOUGH)).learned(of_words=True) == {}
    assert carried(usual, ("ſ", "s", ENOUGH - 1)).learned() == {}
    letters = [chr(0x4E00 + number) for number in range(4 * ENOUGH)]
    as_rare = [(letter, letter if number >= ENOUGH else "s", 1) for number, letter in enumerate(letters)]
    assert carried(*as_rare).learned(of_words=True) == {}  # of which most stay, though enough are lost


def test_in_what_form_translations_have_numbers_is_learned() -> None:
    counts = carried(
        ("it is 1,234.50 or 12", "es ist 1.234,50 oder 12", 9),
        ("it is 1,234.50 or 12", "es ist viel oder zwölf", 1),
        ("3 dogs at 1:30 PM", "3 Hunde um 13.30 Uhr", 6),
        ("3 dogs at 1:30 PM", "drei Hunde um halb zwei", 4),
        ("on 2024-05-06 with 50-80 men", "am 6.5.2024 mit 50 bis 80 Männern", ENOUGH),
        ("the 1,000,000 of F16 &#91;", "die 1\u00a0000\u00a0000 von F17 (", ENOUGH),
        ("in 1999", "im Jahr 99", ENOUGH - 1),
        ("--dry-run of FILE_NAME", "--dry-run von DATEI_NAME", ENOUGH),
        ("<file_name> e.g. --all, end.", "<datei_name> z.B. --all, Ende.", ENOUGH),
    )
    assert counts.learned() == {
        "0,000.00": "0.000,00",
        "00": "00",
        "0": "~0",
        "0:00": False,
        "0000-00-00": "0000-00-00",
        "00-00": "00-00",
        "0,000,000": "0\u00a0000\u00a0000",
        "--a-a": "--a-a",
        "A_A": False,
        "<file_name>": False,
        "--a": "--a",
        "1:30": "13.30",
        "FILE_NAME": "DATEI_NAME",
    }


def test_what_single_numbers_become_is_learned() -> None:
    counts = carried(
        ("at 2 p.m.", "um 14 Uhr", ENOUGH),
        ("at 2 p.m.", "um 15 Uhr", ENOUGH - 1),  # less often
        ("at 3 p.m.", "um 15 Uhr", ENOUGH - 1),
        ("at 4 p.m. of 5", "um 16 Uhr von 7", ENOUGH),  # it is not known which
        ("5 of F16", "5 von F17", ENOUGH),
    )
    assert counts.learned() == {"0": False, "2": "14"}


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("use --dry-run, file_name and __init__", ["--dry-run", "file_name", "__init__"]),
        ("getName() or name() of report.pdf in 0xFF", ["getName()", "name()", "report.pdf", "0xFF"]),
        ("a CellRenderer, WebM, not NASA or McX-Y of GTK", ["CellRenderer", "WebM", "McX"]),
        ("an e-mail -- or not -and --, iPhone", ["iPhone"]),
        ("e.g. this. That_", []),
        ("a _very_ good _old book_ has _file_name", ["_file_name"]),
        ("13 667,50, 1’000, ١٬٢٣٤٫٥ and 10–12", ["13 667,50", "1’000", "١٬٢٣٤٫٥", "10–12"]),
        ("$file_name 1,000 and F5", ["1,000", "5"]),
        ("-5, x=−3, (+49) and –7 °C", ["-5", "−3", "+49", "–7"]),
        ("A-5, 10%-20%, 17.-18., 5€-10€, f(x)-0.5, -5kg", ["5", "10", "20", "17", "18", "5", "10", "0.5", "5"]),
        ("a" * 200_000 + " _", []),  # in time in proportion to their number
        ("a_" * 50_000, []),
    ],
)
def test_numbers_and_names_of_programs(text: str, literals: list[str]) -> None:
    assert [text[slice(*span)] for span in literals_of(text)] == literals


def test_hyphenated_words() -> None:
    text = "the APU-Angabe of A-4-B 他乘坐G-1去 字-字-字"
    assert [match[0] for match in protected.HYPHENATED.finditer(text)] == ["APU-Angabe", "A-4-B", "G-1"]
    assert not protected.HYPHENATED.search("a" * 200_000)  # in time in proportion to their number


def test_a_number_in_another_form() -> None:
    for number, form, expected in (("1,299.00", "0.000,00", "1.299,00"), ("12", "٠٠", "١٢"), ("٤٫٥", "0.0", "4.5")):
        assert in_form(number, form) == expected
        assert form_of(expected) == form
    assert in_form("12", "000") == "12"


@pytest.mark.parametrize(
    ("numbers", "others", "lost", "left"),
    [
        (["12", "7"], ["7", "12"], [], []),
        (["12", "12"], ["12"], ["12"], []),
        (["16,000"], ["16 000"], [], []),
        (["1,00,000"], ["100,000"], [], []),
        (["6.5", "25,000"], ["65", "25 000 000"], ["6.5", "25,000"], ["65", "25 000 000"]),
        (["05/06/2024"], ["6.5.2024"], [], []),
        (["10-12"], ["10", "12"], [], []),
        (["10", "12"], ["10-12", "10"], [], []),
        (["2024-05-06"], ["20240-06"], ["2024-05-06"], ["20240-06"]),
        (["McCain", "eBays", "aFile", "a_b"], ["aFiles", "McCains", "eBay", "a_bs"], ["a_b"], ["a_bs"]),
        (["fileName"], ["fileNome"], ["fileName"], ["fileNome"]),
        (["1.5", "262"], ["1,5", "2622", "3"], ["262"], ["2622", "3"]),
    ],
)
def test_which_numbers_a_translation_has(
    numbers: list[str], others: list[str], lost: list[str], left: list[str]
) -> None:
    found, rest = compared(numbers, others)
    assert [number for place, number in enumerate(numbers) if place not in found] == lost
    assert [others[place] for place in rest] == left


def test_a_line_counts_once() -> None:
    assert carried(("<es> <es> a", "b", ENOUGH - 1)).learned() == {}


def test_the_rarest_are_forgotten_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protected, "MOST", 3)
    counts = carried(("<es> a", "b", ENOUGH))
    for number in range(100):
        counts.add(f"<es> {{{number}}} {{{number}x}} a", "b")
    assert len(counts.counts) <= 3
    assert counts.learned() == {"<es>": False}


def test_a_model_that_does_not_say_has_learned_nothing() -> None:
    assert learned_by({LEARNED: {"<es>": False}}) == {"<es>": False}
    for other in ({}, {LEARNED: None}, {LEARNED: "<es>"}, {LEARNED: ["<es>"]}):
        assert learned_by(other) == {}


def test_what_nearly_every_translation_has_is_learned_too() -> None:
    counts = carried(
        ("cannot open %s", "kann %s nicht öffnen", 9),
        ("cannot open %s", "kann nichts öffnen", 1),
        ("file %d", "Datei %d", 8),
        ("file %d", "Datei", 2),  # this one the model is not shown
        ("- a dog", "- ein Hund", 10),  # as a list begins, which stays as it is
    )
    assert counts.learned() == {"%s": True}


def test_what_one_model_translates_is_not_carried_over_by_several() -> None:
    models = {LEARNED: {"%s": True, "<b>": True}}, {LEARNED: {"<b>": False, "%d": True}}
    for trainings in (models, models[::-1]):
        assert learned_by(*trainings) == {"%d": True, "%s": True, "<b>": False}


def test_letters_of_words_are_learned_where_all_were_trained_on_words() -> None:
    """A model of sentences that is tuned on a list of words still keeps the names in sentences."""
    spelled = {LEARNED: {RARE_LETTERS: False}}
    assert learned_by(spelled, spelled) == {RARE_LETTERS: False}
    assert learned_by(spelled, {LEARNED: {}}) == learned_by({}, spelled) == {}


def test_of_a_form_counts_the_model_that_has_it_in_the_fewest_translations() -> None:
    models = {LEARNED: {"0": "0", "00": "~00", "000": False}}, {LEARNED: {"0": "~0", "00": "00", "000": "000"}}
    for trainings in (models, models[::-1]):
        assert learned_by(*trainings) == {"0": "~0", "00": "~00", "000": False}
