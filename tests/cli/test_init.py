"""nmt-init: what it reads, leaves out, and holds out, what it writes, and what it says of files that it cannot use."""

import gzip
import os
import random
import re
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from nmt.cli import init_folder
from nmt.cli.init import main
from nmt.config.loading import read_config
from nmt.data.cleaning import usual
from nmt.data.pairs import Pair
from nmt.errors import UserError
from nmt.models.combinations import FAMILIES
from tests.conftest import write_lines

SYLLABLES = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu")
Init = Callable[..., tuple[int, str, str]]


def sentences(count: int, *, seed: int = 1) -> list[tuple[str, str]]:
    """Pairs of sentences of three to eight words; the target has the source's words in another order, and longer."""
    drawn = random.Random(seed)
    pairs = {}
    while len(pairs) < count:
        words = ["".join(drawn.choices(SYLLABLES, k=2)) for _ in range(drawn.randint(3, 8))]
        pairs[f"{' '.join(words).capitalize()}."] = f"{' '.join(f'{word}n' for word in reversed(words)).capitalize()}."
    return list(pairs.items())


def write_files(folder: Path, pairs: list[tuple[str, str]]) -> list[str]:
    """The options for two parallel files."""
    for side, name in enumerate(("text.en", "text.de")):
        write_lines(folder / name, [pair[side] for pair in pairs])
    return ["--source", str(folder / "text.en"), "--target", str(folder / "text.de")]


@pytest.fixture
def init(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Init:
    """Run nmt-init from en to de, without measuring; the folder is `made`. Gives the exit code, and both outputs."""
    monkeypatch.setattr("nmt.experiment.training.dry_run", lambda request, log: iter(["time: measured"]))

    def run(*arguments: str, languages: tuple[str, str] = ("en", "de")) -> tuple[int, str, str]:
        options = ["--source-language", languages[0], "--target-language", languages[1]]
        code = main([*arguments, *options, "--output", str(tmp_path / "made")])
        return code, *capfd.readouterr()

    return run


def part(folder: Path, name: str, endings: tuple[str, str] = ("en", "de")) -> list[tuple[str, str]]:
    sides = [(folder / "made" / f"{name}.{ending}").read_text(encoding="utf-8").splitlines() for ending in endings]
    return list(zip(*sides, strict=True))


def leaks(folder: Path) -> int:
    """How many sentences of a side are in two parts, compared without case and spaces."""
    parts = [part(folder, name) for name in ("train", "valid", "test")]
    sides = [[{"".join(pair[side].lower().split()) for pair in pairs} for pairs in parts] for side in (0, 1)]
    return sum(len(a & b) for sets in sides for i, a in enumerate(sets) for b in sets[:i])


def test_two_files(init: Init, tmp_path: Path) -> None:
    pairs = sentences(400)
    code, out, _ = init(*write_files(tmp_path, pairs))
    assert code == 0
    assert out.splitlines()[0] == f"{tmp_path / 'made'}: 400 pairs read; train 300, valid 50, test 50"
    nearest = (
        "1,000 image captions (validation BLEU 18), 2,000 image captions (validation BLEU 21), 4,600 sentences of "
        "talks (validation BLEU 14)"
    )
    assert out.splitlines()[1:] == [
        f"nearest sizes that were measured: {nearest}; short and similar sentences need fewer",
        f"report: {tmp_path / 'made' / 'report.txt'}",
        f"next: nmt-train --config {tmp_path / 'made' / 'my.yaml'}",
        "then: nmt-translate --model runs/made --input FILE --output FILE",
        "time: measured",
    ]
    assert sorted([*part(tmp_path, "train"), *part(tmp_path, "valid"), *part(tmp_path, "test")]) == sorted(pairs)
    assert leaks(tmp_path) == 0
    config = read_config(tmp_path / "made" / "my.yaml", families=FAMILIES).config
    assert (config.name, config.data.source_language, config.data.target_language) == ("made", "en", "de")
    assert config.data.train[0].source == tmp_path / "made" / "train.en"
    assert config.data.valid.target == tmp_path / "made" / "valid.de"
    assert (config.subwords.size, config.subwords.normalization) == (2000, "nmt_nfkc")
    assert (config.training.batch_size, config.training.batch_by) == (1000, "tokens")
    assert config.data.train[0].alignments == tmp_path / "made" / "train.align"
    assert config.training.guided_alignment is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "text.de", "text.en"]


@pytest.mark.parametrize(
    ("texts", "linked"),
    [
        (("dog {}", "Hund {}"), "0-0 1-1"),
        (("dog {}", "Hund\u00a0{}"), ""),  # two words to some, and one to others
        (("dog {}", "小狗的第{}张照片"), None),
    ],
)
def test_links_of_words(init: Init, tmp_path: Path, texts: tuple[str, str], linked: str | None) -> None:
    words = [(f"old {texts[0].format(n)} now here", f"alter {texts[1].format(n)} hier jetzt") for n in range(300)]
    pairs = [(source, target if linked is not None else target.split(" ")[1]) for source, target in words]
    assert init(*write_files(tmp_path, pairs))[0] == 0
    made = tmp_path / "made"
    config = read_config(made / "my.yaml", families=FAMILIES).config
    if linked is None:
        assert not (made / "train.align").exists()
        assert (config.data.train[0].alignments, config.training.guided_alignment) == (None, None)
        return
    links = (made / "train.align").read_text(encoding="utf-8").splitlines()
    assert len(links) == len(part(tmp_path, "train"))
    assert all(line.startswith(linked) and bool(line) == bool(linked) for line in links)


def test_the_time_is_that_of_a_dry_run(here: Path) -> None:
    languages = ["--source-language", "en", "--target-language", "de"]
    assert main([*write_files(here, sentences(200)), *languages, "--output", "made"]) == 0
    *_, line = (here / "made" / "report.txt").read_text(encoding="utf-8").splitlines()
    assert line.startswith("time, without validation: about ")
    assert sorted(path.name for path in here.iterdir()) == ["made", "text.de", "text.en"]


def test_what_a_killed_run_left_goes_a_day_later(init: Init, tmp_path: Path) -> None:
    """What was written to within the day may be of a run that goes on."""
    left, new = (tmp_path / f"made.{digit * 32}.partial" for digit in "0a")
    for folder in (left, new):
        (folder / "made").mkdir(parents=True)
        write_lines(folder / "source", ["half"])
    for path in (left, *left.iterdir()):
        os.utime(path, (0, 0))
    assert init(*write_files(tmp_path, sentences(400)))[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", new.name, "text.de", "text.en"]


def test_two_at_once_do_not_meet(init: Init, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two runs to the same folder the first to end writes it, from its own text alone."""
    other = tmp_path / "other"
    other.mkdir()
    arguments, pairs = write_files(tmp_path, sentences(400)), sentences(300, seed=2)
    held_out, ended = init_folder._held_out, []

    def meanwhile(*read: Any) -> int:
        monkeypatch.setattr(init_folder, "_held_out", held_out)
        ended.append(init(*write_files(other, pairs))[0])
        return held_out(*read)

    monkeypatch.setattr(init_folder, "_held_out", meanwhile)
    code, _, error = init(*arguments)
    assert ([*ended, code], error.count("\n")) == ([0, 2], 1)
    assert error.startswith(f"nmt-init: error: {tmp_path / 'made'}: cannot be written")
    assert sorted(pair for name in ("train", "valid", "test") for pair in part(tmp_path, name)) == sorted(pairs)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "other", "text.de", "text.en"]


def test_a_trial_that_fails_leaves_the_folder_whole(
    init: Init, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has too little memory changes the configuration, or trains elsewhere."""

    def fails(request: object, log: object) -> Iterator[str]:
        yield "parameters: 7"
        raise UserError("not enough memory")

    monkeypatch.setattr("nmt.experiment.training.dry_run", fails)
    code, out, error = init(*write_files(tmp_path, sentences(400)))
    assert (code, out.splitlines()[-1], error) == (0, "nmt-train fails here: not enough memory", "")
    report = (tmp_path / "made" / "report.txt").read_text(encoding="utf-8")
    assert report.startswith(out.splitlines()[0])
    assert report.endswith("\n\nnmt-train --dry-run says:\nparameters: 7\nnmt-train fails here: not enough memory\n")
    assert len([*(tmp_path / "made").iterdir()]) == 9


def test_what_a_trial_warns_of_is_told_without_a_terminal_too(
    init: Init, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warns(request: object, log: Callable[[str], None]) -> Iterator[str]:
        log("warning: entities")
        log("subwords: 7")
        yield "time: measured"

    monkeypatch.setattr("nmt.experiment.training.dry_run", warns)
    assert init(*write_files(tmp_path, sentences(400)))[2] == "nmt-init: warning: entities\n"
    report = (tmp_path / "made" / "report.txt").read_text(encoding="utf-8")
    assert report.endswith("\nnmt-train --dry-run says:\nwarning: entities\nsubwords: 7\ntime: measured\n")


@pytest.mark.parametrize(
    ("rule", "pair"),
    [
        ("are blank, or not translated, on a side", ("Ba ke li.", " ")),
        ("have more than 1,000 characters on a side", ("ba " * 400, "ken " * 400)),
        ("have a tab, a row of a table, or tags of HTML", ("<td>Ba ke</td>", "Ken ban")),
        ("have a tab, a row of a table, or tags of HTML", ("Ba | ke | li", "Lin | ken | ban")),
        ("have the same text on both sides", ("Ba ke li.", "ba ke li. ")),
        ("have sides whose lengths differ more than 3 times as much as usual here", ("Ba.", "Ken ban lin " * 10)),
        ("have a side in another script than usual here", ("Ba ke li.", "Ба ке ли.")),
        ("repeat another pair", sentences(1)[0]),
    ],
)
def test_what_is_left_out_is_counted_and_shown(init: Init, tmp_path: Path, rule: str, pair: tuple[str, str]) -> None:
    pairs = sentences(300)
    code, out, _ = init(*write_files(tmp_path, [*pairs, pair, *pairs[:1]]))
    assert code == 0
    assert f"left out: {2 if 'repeat' in rule else 1} {rule}\n" in out
    report = (tmp_path / "made" / "report.txt").read_text(encoding="utf-8")
    example = report.partition(f"{rule}\n")[2].splitlines()[0]
    assert example.startswith("    " if "repeat" in rule else f"    {tmp_path / 'text.en'}, line 301: {pair[0][:20]}")
    assert f"train {300 - 100}" in out


def test_terms_of_some_words_are_no_list_of_words() -> None:
    """They are translated, and not spelled anew."""
    for target, units in (("maschinelles Lernen", "sentences"), ("Lernen", "words")):
        assert usual([Pair("machine learning", target, place="")]).units == units


def test_a_title_in_katakana_is_usual_in_japanese_and_not_in_chinese() -> None:
    texts = ("スーパーマーケット", "ｽｰﾊﾟｰﾏｰｹｯﾄ", "супермаркет")
    for line, expected in (("その店は大きい", ["", "", "script"]), ("这家商店很大", ["script"] * 3)):
        found = usual([Pair("the shop is big", line, place="")])
        assert [found.fault(Pair("a supermarket", text, place="")) for text in texts] == expected


def test_what_normalization_would_change_often_is_kept(init: Init, tmp_path: Path) -> None:
    """No model could write it, and each score would count it as a mistake."""
    pairs = sentences(300)
    pairs[::30] = [(source, target.replace(".", "…")) for source, target in pairs[::30]]
    assert init(*write_files(tmp_path, pairs))[0] == 0
    config = read_config(tmp_path / "made" / "my.yaml", families=FAMILIES).config
    assert config.subwords.normalization == "identity"


def test_words_keep_letters_that_normalization_would_make_others(init: Init, tmp_path: Path) -> None:
    words = [(f"k{'ʰ' * (number % 2)}a{number}", f"ka{number}") for number in range(300)]
    assert init(*write_files(tmp_path, words))[0] == 0
    config = read_config(tmp_path / "made" / "my.yaml", families=FAMILIES).config
    assert config.subwords.normalization == "identity"


def test_forms_are_learned_from_a_lemma_and_its_tags_and_no_lemma_is_in_two_parts(init: Init, tmp_path: Path) -> None:
    lemmas = [f"{source.split()[0].lower()}{number}" for number, (source, _) in enumerate(sentences(100))]
    features = {"N,PL": "N PL", "N | case={ACC/DAT},PL": "N case={ACC/DAT} PL", "N,poss=PSS1S": "N poss=PSS1S"}
    rows = [(lemma, cell, f"{lemma}{number}") for lemma in lemmas for number, cell in enumerate(features)]
    lines = [f"{number};{lemma} ;{form};{tags}" for number, (lemma, tags, form) in enumerate(rows)]
    file = write_lines(tmp_path / "a.csv", ["No;Lemma;Form;Tags", "0;;form;N", *lines])
    code, out, error = init("--input", str(file), "--columns", "lemma", "Tags", "Form")
    assert (code, error) == (0, "")
    assert "left out: 1 are blank, or not translated, on a side\n" in out
    parts = [part(tmp_path, name) for name in ("train", "valid", "test")]
    assert sorted(chain(*parts)) == sorted((f"{lemma} {features[cell]}", form) for lemma, cell, form in rows)
    assert sum(len({source.split()[0] for source, _ in pairs}) for pairs in parts) == len(set(lemmas))
    config = read_config(tmp_path / "made" / "my.yaml", families=FAMILIES).config
    assert config.subwords.symbols == ["PL", "case={ACC/DAT}", "poss=PSS1S"], "N may be the first letter of a word"
    assert "the model reads and writes characters, and reads 3 tags, with spaces between them\n" in out


def test_not_every_form_has_a_tag_in_every_column_or_is_one_word(init: Init, tmp_path: Path) -> None:
    lemmas = [f"{source.split()[0].lower()}{number}" for number, (source, _) in enumerate(sentences(100))]
    cells = {"N;N²;;": "ta", "N;N2;;": "te", "N;;;a▁b": "to", "V;;PST;": "ed", "V;;PRF;": " had"}
    rows = [f"{lemma};{cell};{lemma}{ending}" for lemma in lemmas for cell, ending in cells.items()]
    file = write_lines(tmp_path / "a.csv", ["Lemma;POS;Class;Tense;Mood;Form", *rows, "kitap;;;;;kitap"])
    code, out, _ = init("--input", str(file), "--columns", "Lemma", "POS", "Class", "Tense", "Mood", "Form")
    assert code == 0
    assert "left out: 1 are blank, or not translated, on a side\n" in out
    sources = [source.split(maxsplit=1)[1] for name in ("train", "valid", "test") for source, _ in part(tmp_path, name)]
    assert set(sources) == {"N N²", "N N2", "N a▁b", "V PST", "V PRF"}
    config = read_config(tmp_path / "made" / "my.yaml", families=FAMILIES).config
    assert config.subwords.type == "char"
    assert config.subwords.symbols == ["N2", "PRF", "PST"]


def test_words_of_a_meaning_are_no_tags(init: Init, tmp_path: Path) -> None:
    rows = [f"wort{number};meaning{number};worte{number}" for number in range(400)]
    file = write_lines(tmp_path / "a.csv", ["Lemma;Meaning;Form", *rows])
    assert init("--input", str(file), "--columns", "Lemma", "Meaning", "Form")[0] == 0
    config = read_config(tmp_path / "made" / "my.yaml", families=FAMILIES).config
    assert config.subwords.symbols == []


def test_accents_are_written_in_one_form(init: Init, tmp_path: Path) -> None:
    """As a Mac may have typed them, they repeat a pair, and no normalization has to be off for them."""
    pairs = [(source, target.replace("a", "ä")) for source, target in sentences(300)]
    typed = [(source, normalize("NFD", target)) for source, target in pairs[::5]]
    code, out, _ = init(*write_files(tmp_path, [*pairs, *typed]))
    assert (code, f"left out: {len(typed)} repeat another pair\n" in out) == (0, True)
    assert sorted([*part(tmp_path, "train"), *part(tmp_path, "valid"), *part(tmp_path, "test")]) == sorted(pairs)
    config = read_config(tmp_path / "made" / "my.yaml", families=FAMILIES).config
    assert config.subwords.normalization == "nmt_nfkc"


def test_sentences_of_several_pairs_are_all_in_the_training_text(init: Init, tmp_path: Path) -> None:
    pairs = sentences(300)
    doubled = [(source.upper().replace(" ", "\N{NO-BREAK SPACE} "), f"{target} Ban.") for source, target in pairs[:100]]
    assert init(*write_files(tmp_path, [*pairs, *doubled]))[0] == 0
    assert leaks(tmp_path) == 0
    assert {*pairs[:100], *doubled} <= {*part(tmp_path, "train")}


def test_single_words_are_learned_by_characters(init: Init, tmp_path: Path) -> None:
    words = [(f"{source.split()[0]}{number}", source.split()[0]) for number, (source, _) in enumerate(sentences(300))]
    words[1:200:2] = [(source, source) for source, _ in words[1:200:2]]
    code, out, _ = init(*write_files(tmp_path, words), languages=("de", "de"))
    assert (code, "the lines are words, not sentences: the model reads and writes characters\n" in out) == (0, True)
    assert len(part(tmp_path, "train", ("source", "target"))) == 200  # identical sides are usual there
    config = read_config(tmp_path / "made" / "my.yaml", families=FAMILIES).config
    assert (config.subwords.type, config.training.validation.tokenize) == ("char", "char")


def test_characters_with_spaces_between_them(init: Init, tmp_path: Path) -> None:
    letters = [(source.replace(" ", "")[:9], target.replace(" ", "")[:9]) for source, target in sentences(300)]
    words = [(f"{' '.join(source)} case=DAT", " ".join(target)) for source, target in letters]
    assert init(*write_files(tmp_path, words))[0] == 0
    config = read_config(tmp_path / "made" / "my.yaml", families=FAMILIES).config
    assert (config.subwords.type, config.training.validation.tokenize) == ("word", "none")


def as_csv(pairs: list[tuple[str, str]]) -> list[str]:
    return ['"number";"German";"en-US"', *(f'{number};"{de}";"{en}"' for number, (en, de) in enumerate(pairs))]


def as_tmx(pairs: list[tuple[str, str]]) -> list[str]:
    """Ten pairs a document, and a language that nobody asks for."""
    head = (
        '<!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx version="1.4"><header srclang="en"><prop type="file">x</prop></header>'
    )
    units = []
    for number, (en, de) in enumerate(pairs):
        target = f'<tuv xml:lang="de-DE"><seg>{de}<ph x="1">&lt;br/></ph></seg></tuv>'
        source = f'<tuv xml:lang="en_US"><seg><hi>{en[:2]}</hi><!-- no -->{en[2:]}</seg></tuv>'
        other = f'<prop type="file">{number // 10}.html</prop><tuv xml:lang="fr"><seg>La la</seg></tuv>'
        units.append(f"<tu>{other}{target}{source}</tu>")
    return [f"{head}<body>", *units, "</body></tmx>"]


def as_xliff(pairs: list[tuple[str, str]]) -> list[str]:
    units = [
        f"<trans-unit><source>{en}</source><seg-source>no</seg-source><target>{de}</target>"
        f"<alt-trans><source>{de}</source><target>{en}</target></alt-trans></trans-unit>"
        for en, de in pairs
    ]
    head = '<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" source-language="en"><body>'
    return [head, *units, "</body></file></xliff>"]


def as_po(pairs: list[tuple[str, str]]) -> list[str]:
    fuzzy = '#, fuzzy\nmsgid "no"\nmsgstr "nein"\n\nmsgid "yes"\nmsgstr ""\n'
    return [f'msgid "<b>{en}</b>"\nmsgstr "<b>{de}</b>"\n' for en, de in pairs] + [fuzzy]


@pytest.mark.parametrize(
    ("name", "made", "options"),
    [
        ("a.tsv", lambda pairs: [f"{en}\t{de}" for en, de in pairs], []),
        ("a.tsv", lambda pairs: ["tgt\tsrc", *(f"{de}\t{en}" for en, de in pairs)], []),
        ("a.csv", lambda pairs: ["source,target", *(f"{en},{de}" for en, de in pairs)], []),
        ("a.csv", lambda pairs: ["German;English", *(f"{de};{en}" for en, de in pairs)], []),
        ("a.tsv.gz", lambda pairs: ["EN\tid\tde", *(f'"{en[:2]}""{en[2:]}"\t1\t{de}' for en, de in pairs)], []),
        ("a.csv", as_csv, ["--columns", "EN-us", "german"]),
        ("A.CSV", as_csv, ["--columns", "3", "2"]),
        ("a.csv", lambda pairs: ["sep=;", *as_csv(pairs)], []),  # as Excel writes it
        ("a.tmx", as_tmx, []),
        ("a.xlf", as_xliff, []),
        ("a.po", as_po, []),
    ],
)
def test_files_with_both_languages(
    init: Init, tmp_path: Path, name: str, made: Callable[[list[tuple[str, str]]], list[str]], options: list[str]
) -> None:
    pairs = [(source, target.replace("a", "ä")) for source, target in sentences(400)]
    file = write_lines(tmp_path / name, [normalize("NFD", line) for line in made(pairs)])
    if name.endswith(".gz"):
        file.write_bytes(gzip.compress(file.read_bytes()))
        pairs = [(f'{en[:2]}"{en[2:]}', de) for en, de in pairs]
    code, out, error = init("--input", str(file), *options)
    assert (code, error) == (0, "")
    found = [*part(tmp_path, "train"), *part(tmp_path, "valid"), *part(tmp_path, "test")]
    assert sorted(found) == sorted(pairs)
    assert ("validation and test text are whole documents" in out) == (name == "a.tmx")
    assert ("left out: 2 are blank, or not translated, on a side\n" in out) == (name == "a.po")


@pytest.mark.parametrize("languages", [("en", "de"), ("de", "en")])
def test_a_folder_of_messages_has_them_in_many_languages(
    init: Init, tmp_path: Path, languages: tuple[str, str]
) -> None:
    pairs = sentences(400)
    of = {"de_DE": pairs, "fr": [(source, f"La {source}") for source, _ in pairs]}
    for code, those in of.items():
        header = '""\n"' if code == "fr" else '"X: a\\n'  # on several lines, or on one
        write_lines(tmp_path / f"{code}.po", [f'msgid ""\nmsgstr {header}Language: {code}\\n"\n', *as_po(those)])
    code, out, error = init("--input", *map(str, sorted(tmp_path.glob("*.po"))), languages=languages)
    assert (code, error) == (0, "")
    assert "left out: 402 are not in both languages\n" in out
    assert "fr.po: is in fr\n" in (tmp_path / "made" / "report.txt").read_text(encoding="utf-8")
    found = [pair for name in ("train", "valid", "test") for pair in part(tmp_path, name, languages)]
    assert sorted(found) == sorted(pairs if languages == ("en", "de") else [pair[::-1] for pair in pairs])


@pytest.mark.parametrize(("name", "made"), [("a.tmx", as_tmx), ("a.xlf", as_xliff), ("a.po", as_po)])
def test_pairs_are_the_same_however_accents_are_typed(
    init: Init, tmp_path: Path, name: str, made: Callable[[list[tuple[str, str]]], list[str]]
) -> None:
    pairs = [(source.replace("a", "á"), target) for source, target in sentences(300)]
    typed = [*pairs, *((normalize("NFD", source), target) for source, target in pairs[:5])]
    assert init("--input", str(write_lines(tmp_path / name, made(typed))))[0] == 0
    assert sorted(pair for part_of in ("train", "valid", "test") for pair in part(tmp_path, part_of)) == sorted(pairs)


@pytest.mark.parametrize(
    "code",
    ["<ph>&lt;br/></ph>", "<ph>\\n</ph>", '<ph type="lb"/>', '<x id="1" ctype="lb"/>', "<bpt>&lt;p class='a'></bpt>"],
)
def test_words_around_a_line_break_stay_apart(init: Init, tmp_path: Path, code: str) -> None:
    """Other codes, such as that of italics, may be in the middle of a word."""
    pairs = sentences(300)
    lines = as_tmx([(en.replace(" ", f" {code}<!-- no -->", 1).replace(" <", "<", 1), de) for en, de in pairs])
    lines = [line.replace("</hi>", "</hi><bpt>&lt;i></bpt><bpt>\\textit{</bpt>") for line in lines]
    assert init("--input", str(write_lines(tmp_path / "a.tmx", lines)))[0] == 0
    assert sorted(pair for name in ("train", "valid", "test") for pair in part(tmp_path, name)) == sorted(pairs)


@pytest.mark.parametrize("languages", [("de", "de"), ("de", "de-1600")])
def test_both_sides_of_a_memory_in_one_language(init: Init, tmp_path: Path, languages: tuple[str, str]) -> None:
    """Old spellings, lemmas, dialects: a text that is the source is never its own translation."""
    pairs = sentences(300)
    sides = [[f'<tuv xml:lang="{languages[side]}"><seg>{pair[side]}</seg></tuv>' for side in (0, 1)] for pair in pairs]
    lines = ["<tmx><body>", *(f"<tu>{source}{target}</tu>" for source, target in sides), "</body></tmx>"]
    assert init("--input", str(write_lines(tmp_path / "a.tmx", lines)), languages=languages)[0] == 0
    endings = ("source", "target") if languages[0] == languages[1] else languages
    found = [pair for name in ("train", "valid", "test") for pair in part(tmp_path, name, endings)]
    assert sorted(found) == sorted(pairs)


def test_what_is_usual_is_learned_from_pairs(init: Init, tmp_path: Path) -> None:
    """Of a memory that begins with a language that nobody asks for, or a table with what is not translated."""
    blank = [f"Ba ke {number}.\t" for number in range(init_folder.LOOKED_AT)]
    code, out, _ = init("--input", str(write_lines(tmp_path / "a.tsv", ["en\tde", *blank, *MANY])))
    assert code == 0
    assert out.splitlines()[:2] == [
        f"{tmp_path / 'made'}: 10,300 pairs read; train 200, valid 50, test 50",
        "left out: 10,000 are blank, or not translated, on a side",
    ]


def test_documents_stay_whole(init: Init, tmp_path: Path) -> None:
    pairs = sentences(400)
    pairs[5:400:10] = [(f"Ba {number}.", "Immer dasselbe.") for number in range(40)]
    code, out, _ = init("--input", str(write_lines(tmp_path / "a.tmx", as_tmx(pairs))))
    assert code == 0
    assert leaks(tmp_path) == 0
    documents = [{pairs.index(pair) // 10 for pair in part(tmp_path, name)} for name in ("train", "valid", "test")]
    assert sum(map(len, documents)) == len(set().union(*documents)) == 40
    held_out = len(documents[1]) + len(documents[2])
    assert f"left out: {held_out} are of a document that was held out, and share a sentence with another" in out


MANY = [f"{en}\t{de}" for en, de in sentences(300)]
TMX = as_tmx(sentences(300))


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("a.csv", [], "only 0 pairs of 0 can be used"),
        ("a.tsv", MANY[:50], "only 50 pairs of 50 can be used, and at least 200 are needed"),
        ("a.tsv", MANY[:1] * 500, "can be used, and at least 200 are needed\nleft out: 499 repeat another pair\n"),
        ("a.tsv", [f"{line}\tx" for line in MANY], "a.tsv, line 1: none of its columns, "),
        ("a.tsv", ["en\tx\ty", *MANY], "a.tsv, line 1: none of its columns, 'en', 'x', 'y', is de; give --columns"),
        ("a.tsv", [*MANY, "one cell", "Ba\tke\tli"], ""),
        (
            "a.tsv",
            [f"Ba ke {number}.\tImmer dasselbe." for number in range(300)],
            "only 0 pairs can be held out, of 100",
        ),
        ("a.csv", ["en,de", 'Ba,"ke', *MANY], "a.csv, line 2: cannot be read as a table (unexpected end of data)"),
        ("a.tmx", [*TMX[:100], "<tu>", *TMX[100:]], "a.tmx, line 303: cannot be read as XML (Opening and ending tag"),
        (
            "a.tmx",
            [line.replace('"de-DE"', '""') for line in TMX],
            "are not in both languages\n    {folder}/a.tmx, line 2: is in en_US, fr\n",
        ),
        (
            "a.tmx",
            [re.sub(' xml:lang="[^"]*"', "", line) for line in TMX],
            "are not in both languages\n    {folder}/a.tmx, line 2: is in no language\n",
        ),
        (
            "a.tmx",
            ['<!DOCTYPE tmx [<!ENTITY a "aaa">]>', TMX[0].partition(">")[2], TMX[1].replace("La", "&a;"), *TMX[2:]],
            "a.tmx, line 3: entities of a file's own are not read",
        ),
        ("a.po", ['msgid "a"', 'msgid "b"'], "a.po, line 2: cannot be read as po"),
        ("a.docx", MANY, "a.docx: allowed endings: .csv, .tsv, .tmx, "),
    ],
)
def test_what_cannot_be_used_leaves_nothing_behind(
    init: Init, tmp_path: Path, name: str, lines: list[str], message: str
) -> None:
    code, out, error = init("--input", str(write_lines(tmp_path / name, lines)))
    if not message:  # rows that are no pairs are only counted
        assert (code, "left out: 2 have more or fewer columns than the first row\n" in out) == (0, True)
        return
    assert code == 2
    assert message.replace("{folder}", str(tmp_path)) in error
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_without_the_package_for_memories(init: Init, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lxml", None)
    code, _, error = init("--input", str(write_lines(tmp_path / "a.tmx", TMX)))
    assert (code, "a.tmx: needs lxml, which is not installed: pip install 'nmt-toolkit[loc" in error) == (2, True)


def test_two_encodings_in_a_file(init: Init, tmp_path: Path) -> None:
    options = write_files(tmp_path, sentences(300))
    with open(tmp_path / "text.de", "ab") as file:
        file.write("Übel\n".encode("latin-1"))
    code, _, error = init(*options)
    assert (code, f"{tmp_path / 'text.de'}, line 301: not valid UTF-8 (byte 0xdc at column 1)" in error) == (2, True)
    assert not (tmp_path / "made").exists()


def test_swapped_sides(init: Init, tmp_path: Path) -> None:
    _, source, _, target = write_files(tmp_path, sentences(300))
    code, _, error = init("--source", target, "--target", source)
    assert (code, error) == (
        2,
        f"nmt-init: error: --source {target}: has the ending of --target-language de; swapped?\n",
    )
    more = sentences(300, seed=2)
    files = [write_lines(tmp_path / name, [pair[side] for pair in more]) for side, name in enumerate(("a", "b"))]
    code, _, error = init("--source", source, str(files[1]), "--target", target, str(files[0]))
    expected = f"{files[1]} and {files[0]}: its sides look swapped, compared with {source} and {target}"
    assert (code, error) == (0, f"nmt-init: warning: {expected}\n")


def test_all_mistakes_at_once(init: Init, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    write_lines(tmp_path / "made" / "mine", ["mine"])
    code, _, error = init("--source", str(tmp_path / "a.en"), "--columns", "1", languages=("../en", "de"))
    assert code == 2
    assert error.splitlines()[1:] == [
        "  - --columns has an effect only with --input",
        "  - --columns: name those of the source, and last that of the target",
        "  - --source-language ../en: allowed: letters, digits, - and _, such as en or pt-BR",
        f"  - --output {tmp_path / 'made'}: is there already, and not an empty folder; give the name of a new one",
        "  - --source has 1 file and --target 0: file i of the one must go with file i of the other",
        f"  - {tmp_path / 'a.en'}: no such file",
    ]
    assert (tmp_path / "made" / "mine").read_text() == "mine\n"


def test_the_current_folder_is_not_replaced(init: Init, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = write_files(tmp_path, sentences(300))
    (tmp_path / "made").mkdir()
    monkeypatch.chdir(tmp_path / "made")
    code, _, error = init(*options)
    assert (code, "made: is the current folder; give the name of a new one\n" in error) == (2, True)
    monkeypatch.chdir(tmp_path)
    assert init(*options)[0] == 0
