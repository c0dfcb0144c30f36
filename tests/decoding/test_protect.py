"""What a model does not see, and what stands in its translation all the same, whatever it writes."""

import time
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config.schema import PROTECTED, DecodingConfig, SubwordsConfig
from nmt.data.subwords import Subwords
from nmt.decoding.text import protect
from nmt.decoding.text.glossary import Glossary
from nmt.decoding.text.marks import Mark, pieces
from nmt.decoding.text.protect import Protection, Sight, with_kept
from nmt.decoding.translator import TranslationOptions, Translator
from nmt.documents.html import HtmlDocument
from nmt.errors import UserError
from nmt.protected import PATTERNS, RARE_LETTERS, WITHOUT_LETTERS, Sets, compared, literals_of
from nmt.symbols import UNKNOWN
from tests.known_model import save_known_model
from tests.random_model import save_random_model

SETS = PROTECTED


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    """A hostile one: with random weights."""
    return Translator.load(model)


def test_a_symbol_of_the_vocabulary_is_shown(tmp_path: Path) -> None:
    model = Translator.load(save_random_model(tmp_path / "model.safetensors", symbols=["<BT>", "%s"]))
    lines = ["<BT> {x} a %s dog <b>", "<BT> A DOG RUNS"]
    [(_, of_lines)] = model.read(lines, TranslationOptions())
    assert [model.vocabularies.source.decode(one.source) for [one] in of_lines] == ["<BT> a %s dog", "<BT> a dog runs"]


def test_what_the_training_text_translates_is_shown(translator: Translator) -> None:
    line = "<es> dog {x} tense={PRS/FUT} <de>"
    sight = Sight(translator.vocabularies.source, Protection(SETS), learned={"<es>": False, "{PRS/FUT}": False})
    assert [line[slice(*mark.place)] for mark in sight.found(line)] == ["{x}", "<de>"]


@pytest.mark.parametrize(
    ("line", "learned", "shown"),
    [
        ("3. Mai", [], "Mai"),
        ("3. Mai", ["3."], "3. Mai"),
        ("4. Mai", ["3."], "Mai"),
        ("1979 - 05", [], ""),
        ("1979 - 05", [WITHOUT_LETTERS], "1979 - 05"),
        ("3. 4. 1999", [WITHOUT_LETTERS], "3. 4. 1999"),
        ("- 12 %", [WITHOUT_LETTERS], "- 12 %"),
        ("3. Mai", [WITHOUT_LETTERS], "Mai"),
    ],
)
def test_so_are_numbers_of_lists_and_lines_without_letters(
    translator: Translator, line: str, learned: list[str], shown: str
) -> None:
    sight = Sight(translator.vocabularies.source, Protection(SETS[:3]), learned=dict.fromkeys(learned, False))
    assert sight.seen(line, 0, len(line), sight.found(line)).text == shown


def test_the_sets_are_those_of_the_configuration() -> None:
    assert tuple(PATTERNS) == PROTECTED == ("placeholders", "addresses", "symbols", "numbers")
    assert DecodingConfig().protect == list(PROTECTED[:3])


def kept(line: str, *patterns: str) -> list[str]:
    return [mark.tags[0] for mark in with_kept((), Protection(patterns or SETS[:3]).spans(line), line)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Hello {name}, %s and %(count)d of %1$s: 100% sure, 5 %", ["{name}, %s", "%(count)d", "%1$s"]),
        ("{{ user.name }} or {% if x %} ${HOME} $PATH {}", ["{{ user.name }}", "{% if x %} ${HOME} $PATH {}"]),
        ("{n, plural, one {# file} other {{n} files}} deleted", ["{n, plural, one {# file} other {{n} files}}"]),
        ("see https://example.com/a_(b)?c=1, or www.Python.Org.", ["https://example.com/a_(b)?c=1", "www.Python.Org"]),
        ("mailto:ann or www.example", ["mailto:ann", "www.example"]),
        ("mail (ann@example.org), @ann, #tag: /usr/bin/python", ["(ann@example.org), @ann, #tag: /usr/bin/python"]),
        ("press <i class='x'>★</i> and", ["<i class='x'>★</i>"]),
        ("the {product}-file of {a}.{b} $x^2", ["{product}-file", "{a}.{b} $x^2"]),
        ("a 👩‍👩‍👧‍👦 and 🇩🇪 ❤️ x", ["👩‍👩‍👧‍👦", "🇩🇪 ❤️"]),
        ("either/or 1/2, I'm &amp; he's; a @-@ b & c < d > e 3 < 4", []),  # also as Moses writes it
        ("100% so, 50%de, a 20 %d, %discount", ["%d"]),
        ("say “{n}.”{x} dogs", ["{n}", "{x}"]),
        ("say “{n} dogs {x}” ({y} cats), {z}", ["{n}", "{x}", "{y}", "{z}"]),  # of brackets both stay, or none
        # beside words of scripts without spaces
        ("删除%d个、%(n)s的", ["%d", "%(n)s"]),
        ("copy %s_old to %d2", ["%s_old", "%d2"]),
        ("%-*.*s %.*s: %m, %p, %Zd, %n file(s) 5%m %mm", ["%-*.*s %.*s: %m, %p, %Zd, %n"]),
        ("OID%1$uを持つ$HOMEの%uか%Xは", ["OID%1$u", "$HOME", "%u", "%X"]),
        ("见http://a.org/b。谢谢www.b.org/ü（无），", ["http://a.org/b", "www.b.org/ü"]),
        ("联系ann@münchen.de吧 dog@home", ["ann@münchen.de"]),
        ("犬 https://ja.wikipedia.org/wiki/犬_(動物)#第1章 は", ["https://ja.wikipedia.org/wiki/犬_(動物)#第1章"]),
        ("访问http://例え.jp/の犬", ["http://例え.jp/の犬"]),  # where only its end is in doubt
        ("见www.中国.cn和ann@中国.cn和", ["www.中国.cn", "ann@中国.cn"]),
        ("/etc/犬/猫.txt 犬 ~/犬/猫/", ["/etc/犬/猫.txt", "~/犬/猫/"]),
        ("见 /etc/hosts中的 /用户/x是", ["/etc/hosts", "/用户/x"]),
        ("a { b", []),
        ("If a<b and c>d, <b>it</b> is <img src='x' alt=\"y\"/>", ["<b>", "</b>", "<img src='x' alt=\"y\"/>"]),
    ],
)
def test_what_is_kept(line: str, expected: list[str]) -> None:
    assert kept(line) == expected


@pytest.mark.parametrize("line", ["A dog runs. {x}", "{x}. A dog runs.", "A dog runs! %s! Two men.", "{x} 12", "{x}"])
def test_what_stands_alone_is_kept_also_where_lines_without_letters_are_learned(
    translator: Translator, line: str
) -> None:
    pytest.importorskip("sentencex", reason="cuts lines into sentences: pip install 'nmt-toolkit[text]'")
    knowing = Translator(translator.scorer, translator.vocabularies, learned={WITHOUT_LETTERS: False})
    [[best]] = knowing.translate([line], split_sentences="en")
    text = best.text
    assert all(kept in text for kept in ("{x}", "%s") if kept in line)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("({x} dogs) and “{y} cats”", "(dogs) and “cats”"),
        ("犬「{x} 猫」", "犬「猫」"),
        ("a ({x} ) dog", "a () dog"),
        ("a „dog“{x} cat", "a „dog“ cat"),
        ("（★ 犬）", "（犬）"),
    ],
)
def test_no_space_is_left_behind_an_opening_bracket(translator: Translator, line: str, shown: str) -> None:
    sight = Sight(translator.vocabularies.source, Protection(SETS[:3]))
    assert sight.seen(line, 0, len(line), sight.found(line)).text == shown


@pytest.mark.parametrize("end", ["", ".", "?", "!"])
@pytest.mark.parametrize("signs", ["😀", "★★", "→"])
def test_the_end_of_a_sentence_behind_a_sign_is_shown(signs: str, end: str) -> None:
    """Else a model writes one of its own, and the sentence has two."""
    line = f"the dog {signs}{end}"
    assert [line[start:stop] for start, stop in protect._around(line, 0, len(line))] == [signs]


@given(st.text(st.sampled_from("ab1w.:/\\{}%$<>@#*~-_ ☃→\ufe0f\u20e3🇩😀"), max_size=12))
def test_a_line_without_signs_has_nothing_that_the_sets_match(line: str) -> None:
    """Most lines are such, and are not searched further."""
    for names in (PROTECTED, PROTECTED[:3]):
        sets = Sets(names)
        assert sets._pattern is not None
        assert list(sets.matches(line)) or not sets._pattern.search(line)


def test_numbers_and_own_patterns() -> None:
    assert kept("in 1,984.5 of A4 at -3%", "numbers") == ["1,984.5", "-3%"]
    assert kept("order ART-77, now", r"ART-\d+") == ["ART-77"]


def test_the_name_of_a_set_that_is_mistyped() -> None:
    with pytest.raises(
        UserError, match=r"'numbres' is none of placeholders, .*; nearest: numbers; as a pattern: '\(\?:"
    ):
        TranslationOptions(protect=["numbres"])
    assert kept("Numb numbres", "(?:numbres)") == ["numbres"]


@pytest.mark.parametrize(
    ("patterns", "why"),
    [
        (["("], "and no regular expression: missing \\)"),
        ([".*"], "matches empty text or whole sentences"),
        ([".+"], "matches empty text or whole sentences"),
        (["a" * 201], "at most 200 characters"),
        (["a"] * 51, "at most 50 items"),
        # Of these, compiling would use up the memory:
        (["(?:[ab]c){99999999}"], "must not repeat anything more than 1,000 times"),
        (["(?:" * 20 + "a" + "{9})" * 20], "must not repeat anything more than 1,000 times"),
        ([r"\\{1001}"], "must not repeat anything more than 1,000 times"),
        (["(?ix:a{ 9 9 9 9 })"], r"or have \(\?x\)"),
    ],
)
def test_patterns_that_cannot_be_meant(patterns: list[str], why: str) -> None:
    with pytest.raises(UserError, match=rf"^`protect` is .*{why}"):
        TranslationOptions(protect=patterns)


def test_all_patterns_together_may_take_a_second() -> None:
    """The first that takes too long is refused, and none behind it is looked at."""
    slow = [rf"(?:(?:.|..|...)+)+[{number}]" for number in range(4, 44)]  # each takes some 0.4 s
    began = time.process_time()
    with pytest.raises(UserError, match=r"takes too long: what may be repeated in it repeats something itself$"):
        TranslationOptions(protect=slow)
    assert time.process_time() - began < 2.5


def test_patterns_that_repeat_something() -> None:
    hexadecimal = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    assert kept("see 123e4567-e89b-12d3-a456-426614174000.", hexadecimal) == ["123e4567-e89b-12d3-a456-426614174000"]
    assert kept("in 2024-05-06", r"\d{4}(?:-\d{2}){2}", r"\{1234\}") == ["2024-05-06"]


@pytest.mark.parametrize(
    ("lines", "seconds"), [(["a" * 60], 0.2), ([f"{'a' * 22}{number}" for number in range(99)], 0.1)]
)
def test_a_pattern_that_takes_too_long(
    translator: Translator, lines: list[str], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For one line, or for many together."""
    monkeypatch.setattr(protect, "SECONDS", seconds)
    monkeypatch.setattr(protect, "SECONDS_A_LINE", 0.0)
    options = TranslationOptions(protect=[r"(?:a|aa)+[bc]"])
    with pytest.raises(
        UserError, match=rf"^the pattern '\(\?:a\|aa\)\+\[bc\]' takes more than {seconds:g} s, for 'aaaa"
    ):
        list(translator.translate(lines, options))


def test_the_time_for_patterns_is_that_of_all_matches_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protect, "time", SimpleNamespace(monotonic=partial(next, count(0.0, 0.1))))
    assert len(Protection(["a", "b"]).spans("a b", 1.0)) == 2
    with pytest.raises(UserError, match=r"^the pattern 'b' takes more than 1 s"):
        Protection(["a", "b"]).spans("a b" * 6, 1.0)


SPANS = ("{name}", "%s", "https://example.com/x", "ann@example.org", "😀", "<b>", "⟦1⟧", "☃", "Łódź", "{{ x. Y }}")
WORDS = ("a", "dog", "runs", "Two", "men", "NEW", "–", "42", "1,234.5", "2024-05-06", "\u00ad")


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from((*SPANS, *WORDS)), min_size=1, max_size=9),
    st.sampled_from([False, "en"]),
    st.booleans(),
)
def test_everything_stands_in_the_translation_once(
    translator: Translator, words: list[str], split: bool | str, aligns: bool
) -> None:
    line = " ".join(words)
    if split:
        pytest.importorskip("sentencex", reason="needs sentencex, of the extra text")
    options = TranslationOptions(split_sentences=split, alignments=aligns, beam_size=2, word_scores=True)
    [[best]] = translator.translate([line], options)
    assert best.text.count("⟦") == line.count("⟦")
    assert best.word_scores is not None
    assert best.word_scores.words == best.text.split()
    for span in SPANS:
        assert best.text.count(span) == words.count(span), (line, best.text)
    numbers, others = ([text[slice(*span)] for span in literals_of(text)] for text in (line, best.text))
    assert len(compared(numbers, others)[0]) == len(numbers), (line, best.text)
    if aligns:
        assert best.alignment is not None
        source, target = line.split(), best.text.split()
        assert all(word < len(source) and place < len(target) for word, place in best.alignment)
        for word, place in best.alignment:
            if target[place] in SPANS[:-1]:
                assert source[word] == target[place]


@pytest.mark.parametrize(
    ("line", "expected"),
    [("a {x} dog .", "ein {x} Hund ."), ("{x} a dog .", "{x} ein Hund .")],
)
def test_what_is_kept_stands_beside_what_it_stood_beside(tmp_path: Path, line: str, expected: str) -> None:
    links = [(0, 0), (1, 1), (2, 2)]
    save_known_model(tmp_path / "model", ["a", "dog", "."], ["ein", "Hund", "."], links)
    [[best]] = Translator.load(tmp_path / "model").translate([line], TranslationOptions(alignments=True))
    assert best.text == expected
    assert best.alignment is not None
    assert (line.split().index("{x}"), best.text.split().index("{x}")) in best.alignment


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a <b>red dog</b> runs .", "ein <b>Hund rot</b> läuft ."),
        ("a <b>red <i>dog</i></b> runs .", "ein <b><i>Hund</i> rot</b> läuft ."),
        ("a <a href='x?y=1'>red</a> dog runs .", "ein Hund <a href='x?y=1'>rot</a> läuft ."),
        ("a red <b>d</b>og runs .", "ein <b>Hund</b> rot läuft ."),
        ("<p>a red dog runs .</p>", "<p>ein Hund rot läuft .</p>"),
        ("<b>A RED DOG RUNS .</b>", "<b>EIN HUND ROT LÄUFT .</b>"),
        ("a red dog<br>runs .", "ein Hund rot<br>läuft ."),
        ("<li>a red dog</li><li>runs .</li>", "<li>ein Hund rot</li> <li>läuft .</li>"),
        ("a <b>{x} red dog</b> <i>%s</i> runs .", "ein <b>{x} Hund rot</b> <i>%s</i> läuft ."),
        ("a <b>red <i>dog</b></i> runs .", "ein <b><i>Hund rot</b></i> läuft ."),  # of which one has its end inside
        ("<b>{x}</b> <i>-</i>", "<b>{x}</b> <i>-</i>"),
    ],
)
def test_tags_enclose_the_translations_of_their_words(tmp_path: Path, line: str, expected: str) -> None:
    words = ["a", "red", "dog", "runs", "."], ["ein", "Hund", "rot", "läuft", "."]
    save_known_model(tmp_path / "model", *words, [(0, 0), (2, 1), (1, 2), (3, 3), (4, 4)])
    [[best]] = Translator.load(tmp_path / "model").translate([line], TranslationOptions(alignments=True))
    assert best.text == expected
    assert best.soft_alignment is not None
    assert (best.soft_alignment.source_words, best.soft_alignment.target_words) == (line.split(), expected.split())


def test_what_a_glossary_says_stands_inside_of_tags(tmp_path: Path) -> None:
    words = ["a", "red", "dog", "runs"], ["ein", "Hund", "rot", "läuft"]
    save_known_model(tmp_path / "model", *words, [(0, 0), (2, 1), (1, 2), (3, 3)])
    options = TranslationOptions(glossary=Glossary({"dog": "Dackel"}))
    [[best]] = Translator.load(tmp_path / "model").translate(["a <b>red <i>dog</i></b> runs"], options)
    assert best.text == "ein <b><i>Dackel</i> rot</b> läuft"


def _tagged(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    words = st.lists(texts, min_size=1, max_size=4).map(" ".join)
    return words | st.tuples(st.sampled_from("abiu"), words).map(lambda pair: "<{0}>{1}</{0}>".format(*pair))


@settings(max_examples=40)
@given(st.recursive(st.sampled_from(["a", "dog", "runs", "men"]), _tagged, max_leaves=8))
def test_tags_in_a_line_are_as_in_a_document(translator: Translator, line: str) -> None:
    options, document = TranslationOptions(alignments=True, beam_size=2), HtmlDocument(line)
    [[best]], [[of_document]] = translator.translate([line], options), translator.translate(document.lines, options)
    assert best.text == document.written([of_document])


@pytest.mark.parametrize(
    ("joined", "word", "expected"),
    [("l’", "the", "the {x} Hund"), ("l'", "l'", "l'{x} Hund"), ("ב־", "in", "in {x} Hund")],
)
def test_what_an_elision_or_a_maqaf_joins_is_a_word(tmp_path: Path, joined: str, word: str, expected: str) -> None:
    save_known_model(tmp_path / "model", [joined, "dog"], [word, "Hund"], [(0, 0), (1, 1)])
    [[best]] = Translator.load(tmp_path / "model").translate([f"{joined}{{x}} dog"])
    assert best.text == expected


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        ("犬{x}は", True, True),
        ("。{x}、", True, False),
        ("「{x}」", False, False),
        ("（犬）{x} a", True, True),
        ("犬＜{x}＞走", False, False),
        ("犬＠{x}走", False, True),
        ("人々{x}々", True, True),
        ("a{x}b", False, False),
        ("{x}", False, False),
    ],
)
def test_where_spaces_belong_around_what_is_kept(line: str, before: bool, after: bool) -> None:
    start = line.index("{")
    [mark] = with_kept([], [(start, start + 3)], line)
    assert (mark.before, mark.after) == (before, after)


@pytest.mark.parametrize(
    ("source", "target", "line", "expected"),
    [
        (["犬", "走"], ["dog", "runs"], "{x}犬 走{y}", "{x} dog runs {y}"),
        (["犬", "走"], ["dog", "runs"], "犬{x} 走", "dog {x} runs"),
        (["dog", "runs"], ["犬", "走"], "{x} dog runs {y}", "{x}犬 走{y}"),
        (["dog", "runs"], ["犬", "走"], "dog {x} runs", "犬 {x} 走"),  # where the model writes one, it stays
    ],
)
def test_spaces_around_what_is_kept_are_those_of_the_target_script(
    tmp_path: Path, source: list[str], target: list[str], line: str, expected: str
) -> None:
    """Between words of a script without spaces, none is needed; beside those of other scripts, one is."""
    save_known_model(tmp_path / "model", source, target, [(0, 0), (1, 1)])
    [[best]] = Translator.load(tmp_path / "model").translate([line])
    assert best.text == expected


@pytest.mark.parametrize("line", ["---", "42", "1.", "😀", "{name}", "a@b.org, %s", "  ★  ", "…", "Собака"])
def test_what_has_nothing_to_translate_stays(translator: Translator, line: str) -> None:
    for options in (TranslationOptions(), TranslationOptions(split_sentences="en", alignments=True)):
        [[best]] = translator.translate([line], options)
        assert best.text == line
        assert best.score == 0.0


@pytest.mark.parametrize("line", ["42", "---", "{name}"])
def test_what_is_required_of_a_line_that_stays(translator: Translator, line: str) -> None:
    """It may say what stands there; nothing is invented around it."""
    [[best]] = translator.translate([line], prefixes=[line[0]], constraints=[f"{line[1]}\t{line}"])
    assert best.text == line
    with pytest.raises(UserError) as error:
        list(translator.translate([line], prefixes=["two"], constraints=["dog"]))
    assert str(error.value) == f"line 1 stays {line!r} and is to have 'two', 'dog'; do the files go together?"


@pytest.mark.parametrize(
    ("line", "is_so"),
    [
        ("DIE STRAßE", True),
        ("Nº 5 IN ŁÓDŹ, ПʼЯТЬ", True),
        ("DIE STRAßEn", False),
        ("我喜欢 NASA", False),
        ("123 45 %", False),
    ],
)
def test_what_is_in_capitals(translator: Translator, line: str, is_so: bool) -> None:
    """ß has no capital of one character; a script without capitals is in none."""
    sight = Sight(translator.vocabularies.source, Protection(["placeholders"]))
    assert sight.seen(line, 0, len(line), sight.found(line)).in_capitals == is_so


def test_capitals_that_a_vocabulary_has(tmp_path: Path) -> None:
    """Of a text in small letters it has none, and of a word perhaps one form alone."""
    (tmp_path / "words").write_text("two\nmen\nrun\nParis\n", encoding="utf-8")
    sight = Sight(Subwords.of_vocabulary(tmp_path / "words"), Protection(["placeholders"]))
    line = "TWO MEN RUN TO PARIS"
    assert sight.seen(line, 0, len(line), sight.found(line)).text == "two men run to Paris"


@pytest.mark.parametrize(
    ("line", "expected"),
    [("two Ctrl☃X dogs", "Ctrl☃X"), ("two dogs☃cats run", "☃"), ("two ☃\u0301 run", "☃\u0301")],
)
def test_an_unknown_sign_in_a_name(translator: Translator, line: str, expected: str) -> None:
    """The rest of the name is kept with it, but not that of words."""
    [(_, [[segment]])] = translator.read([line], TranslationOptions())
    assert [line[slice(*mark.place)] for mark in segment.seen.marks] == [expected]


@pytest.mark.parametrize(
    ("word", "shown", "kept"),
    [
        ("kÿth", "kyth", []),
        ("Kyth", "kyth", []),
        ("ky\u0303th", "kyth", []),
        ("ﬁth", "ﬁth", []),  # of which no single letter is as good
        ("wyth", "wyth", []),  # the model sees that there is a letter
        ("kyth.", "kyth.", ["."]),
        ("kythж.", "kythж.", ["."]),  # one unknown piece
        ("'ky-th", "'ky-th", ["'"]),
        ("ky9th", "ky9th", ["ky9th"]),
        ("kiſt", "kist", []),
        ("ж", "ж", ["ж"]),  # it would see nothing
    ],
)
def test_a_letter_that_is_unknown_in_a_word_that_is_spelled_anew(word: str, shown: str, kept: list[str]) -> None:
    """Elsewhere, as in names, the word stays."""
    settings = SubwordsConfig(type="char", size=14, normalization="identity")
    subwords = Subwords.train(["kyth", "hit", "sS"] * 9, settings=settings)
    sight = Sight(subwords, Protection(SETS), learned={RARE_LETTERS: False})
    seen = sight.seen(word, 0, len(word), sight.found(word))
    assert seen.text == shown
    unknown = sight.unknown(seen, sight.unknown_pieces(seen, subwords.encode(seen.text)))
    assert [word[slice(*span)] for span in unknown] == kept
    assert Sight(subwords, Protection(SETS)).seen(word, 0, len(word), []).text == word
    assert Sight(subwords, None, learned={RARE_LETTERS: False}).seen(word, 0, len(word), []).text == word
    replacing = Sight(subwords, Protection(SETS), learned={RARE_LETTERS: False}, keeps_unknown=False)
    assert replacing.seen(word, 0, len(word), []).text == shown


def test_letters_that_are_bytes_are_known() -> None:
    settings = SubwordsConfig(type="bpe", size=270, normalization="identity", byte_fallback=True)
    subwords = Subwords.train(["kyth", "hit"] * 9, settings=settings)
    sight = Sight(subwords, Protection(SETS), learned={RARE_LETTERS: False})
    for word in ("kÿth", "kyt\u0303h"):
        assert sight.seen(word, 0, len(word), []).text == word


@pytest.mark.parametrize(
    ("word", "shown", "in_capitals"),
    [("ÁRVÍZ", "árvíz", True), ("Árvíz", "árvíz", False), ("PIN", "PIN", False), ("pin", "PIN", False)],
)
def test_words_that_are_spelled_anew_are_seen_as_others(word: str, shown: str, in_capitals: bool) -> None:
    """In capitals, of which the translation has as many; or in lower case, also those of the names <pad> and <unk>."""
    settings = SubwordsConfig(type="char", size=13, normalization="identity")
    subwords = Subwords.train(["árvíz", "PIN"] * 9, settings=settings)
    seen = Sight(subwords, Protection(SETS), learned={RARE_LETTERS: False}).seen(word, 0, len(word), [])
    assert (seen.text, seen.in_capitals) == (shown, in_capitals)
    assert UNKNOWN not in subwords.encode(seen.text)


def texts(translator: Translator, *lines: str, **options: object) -> list[str]:
    return [best.text for best, *_ in translator.translate(lines, TranslationOptions(**options))]  # type: ignore[arg-type]


def test_what_the_model_sees_is_the_rest(translator: Translator) -> None:
    """Without the spaces that would be two, and characters that nobody sees."""
    usual = texts(translator, "a dog runs .")[0]
    for line in (
        "a {x} dog runs .",
        "{x} a dog runs .",
        "a dog runs {x}.",
        "1. a dog runs .",
        "\u2067a d\u00adog runs .",
        "a do\u0640g runs .",  # as kashidas in Arabic
        "a\u200cdog runs .",  # as the training text was read
    ):
        (text,) = texts(translator, line)
        assert text.replace("{x}", "").replace("1.", "", 1).split() == usual.split()


def test_marks_and_a_non_joiner_are_hidden_where_words_are_the_same_without_them(translator: Translator) -> None:
    """Without signs that are as good as letters, and without those on Latin letters, they are others."""
    russian = Subwords.train(["собака бежит"] * 9, settings=SubwordsConfig(size=20))
    identity = Subwords.train(["a dog runs"] * 9, settings=SubwordsConfig(normalization="identity", size=20))
    for subwords, line, shown in (
        (translator.vocabularies.source, "a do\u093fg", "a do\u093fg"),
        (translator.vocabularies.source, "a d\u0304og", "a d\u0304og"),
        (russian, "соба\u0301ка", "собака"),
        (translator.vocabularies.source, "a d\u200cog", "a d\u200cog"),
        (identity, "a d\u200cog", "a dog"),
    ):
        assert Sight(subwords, Protection(SETS)).seen(line, 0, len(line), []).text == shown


def test_capitals(translator: Translator) -> None:
    """A sentence of them is translated as one in small letters, and written in capitals; an abbreviation is a word."""
    small, capitals = texts(translator, "two men are reading", "TWO MEN ARE READING {Name}")
    assert capitals.removesuffix(" {Name}").replace("{Name} ", "") == small.upper()
    assert texts(translator, "NASA") == texts(translator, "NASA", protect=["placeholders"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("TWO MEN NOW", "ZWEI MÄNNER"),
        ("TWO MEN NOW {x}", "ZWEI MÄNNER {x}"),
        ("TWO MEN NOW!", "ZWEI MÄNNER ."),
        ("Two men now", "zwei Männer ."),
        ("Two men now :", "zwei Männer :"),
    ],
)
def test_a_title_and_what_goes_on_get_no_period(tmp_path: Path, line: str, expected: str) -> None:
    """From a model that always writes one; weights and scores are of what is left."""
    source, target = ["Two", "men", "now!" if "!" in line else "now"], ["zwei", "Männer", "."]
    save_known_model(path := tmp_path / "model.safetensors", source, target, [(0, 0), (1, 1), (2, 2)])
    options = TranslationOptions(word_scores=True, alignments=True)
    [[best]] = Translator.load(path).translate([line], options)
    assert best.text == expected
    assert best.word_scores is not None
    assert best.word_scores.words == expected.split()
    scores = [score for score in (*best.word_scores.scores, best.word_scores.end) if score]
    assert scores == pytest.approx([scores[0]] * len(scores), rel=0.1)  # as sure of all; 0 for {x}
    assert best.alignment is not None
    assert best.alignment[:2] == [(0, 0), (1, 1)]
    assert max(place for _, place in best.alignment) < len(expected.split())
    [[best]] = Translator.load(path).translate([line], prefixes=["zwei Männer ."])
    assert best.text.lower().startswith("zwei männer .")


def test_one_switch_turns_it_off(translator: Translator) -> None:
    lines = ["TWO MEN", "a {dog} runs ."]
    shown = texts(translator, *lines, protect=[])
    assert shown != texts(translator, *lines)
    assert "{dog}" not in shown[1]


def test_a_prefix_has_it(translator: Translator) -> None:
    [[best]] = translator.translate(["a {x} dog"], prefixes=["{x}: two"])
    assert best.text.startswith("{x}: two")
    assert best.text.count("{x}") == 1


def test_what_is_required_may_take_the_place_of_unknown_words(translator: Translator) -> None:
    [[best]] = translator.translate(["Łódź"])
    assert best.text == "Łódź"
    [[best]] = translator.translate(["Łódź"], constraints=["two men"])
    assert "two men" in best.text


def test_what_is_required_stays_as_it_is_given(translator: Translator) -> None:
    """In capitals too, without a mark in it, and with as many of what is kept as the line has."""
    lines = ["TWO MEN {x} ARE READING", "a {x} dog runs", "a dog {x} and a dog {x} run"]
    prefixes, constraints = ["the Boy is", "", "the {x} boy"], ["", "the green field", ""]
    texts = [best.text for best, *_ in translator.translate(lines, prefixes=prefixes, constraints=constraints)]
    assert [text.startswith(prefix) for text, prefix in zip(texts, prefixes, strict=True)] == [True] * 3
    assert "the green field" in texts[1]
    assert [text.count("{x}") for text in texts] == [1, 1, 2]


@pytest.mark.parametrize(
    "line",
    [
        "aЖ" * 20_000,
        "1 " * 50_000,
        "a,b," * 2_000,
        "dog 😀 man. " * 1_500,
        "12345678901234567890! " * 1_000,
        "Hi" + "!" * 50_000,
        "a.b@" * 10_000,
        "a" + "\u200f" * 100_000,
    ],
)
def test_long_lines_take_time_in_proportion(translator: Translator, line: str) -> None:
    """They would take minutes, or gigabytes, if it was the square."""
    options = TranslationOptions(
        split_sentences="en", alignments=True, beam_size=1, max_length_ratio=0, max_length_extra=3
    )
    [[best]] = translator.translate([line], options)
    assert best.alignment is not None


def test_alignments_of_what_is_kept(translator: Translator) -> None:
    """Its words are aligned with themselves; the weights of the others stay as they are without it."""
    options = TranslationOptions(alignments=True)
    [[best]] = translator.translate(["a {x} dog runs"], options)
    [[usual]] = translator.translate(["a dog runs"], options)
    assert best.soft_alignment is not None
    assert usual.soft_alignment is not None
    place = best.text.split().index("{x}")
    rows, others = best.soft_alignment.weights, usual.soft_alignment.weights
    assert rows[place].tolist() == [0, 1, 0, 0, 0]
    kept_rows = [row for row in range(len(rows)) if row != place]
    assert np.array_equal(rows[kept_rows][:, [0, 2, 3, 4]], others)
    assert replace(best.soft_alignment).target_words == best.text.split()


def test_a_long_line_is_cut_and_keeps_all(translator: Translator) -> None:
    short = Translator(translator.models, translator.vocabularies, longest_segment=8)
    line = " ".join(f"a dog {{x{number}}} runs" for number in range(20))
    (text,) = texts(short, line)
    found = [word for word in text.split() if word.startswith("{x")]
    assert sorted(found) == sorted(f"{{x{number}}}" for number in range(20))


CARRIED = {"%s": True, "%d": True}
MESSAGE, MELDUNG = ["cannot", "open", "%s", "now"], ["kann", "%s", "nicht", "öffnen"]


@pytest.mark.parametrize(
    ("source", "target", "links", "line", "shown", "expected"),
    [
        # The model writes it where it has learned to
        (MESSAGE, MELDUNG, [(0, 0), (2, 1), (1, 2), (3, 3)], "cannot open %s now", MESSAGE, "kann %s nicht öffnen"),
        # It loses one, which stands where the words around it are translated
        (MESSAGE, ["kann", "nicht", "jetzt"], [(0, 0), (1, 1), (3, 2)], "cannot open %s now", MESSAGE,
         "kann nicht %s jetzt"),
        # It writes one that the line does not have, with its quotes
        (["we", "cannot", "open"], ["kann", "„%s“", "nicht"], [(0, 0), (1, 1), (2, 2)], "we cannot open",
         ["we", "cannot", "open"], "kann nicht"),
        (["we", "cannot", "open"], ["%s", "nicht", "öffnen"], [(0, 0), (1, 1), (2, 2)], "we cannot open",
         ["we", "cannot", "open"], "nicht öffnen"),
        # Or another one, or the same twice
        (MESSAGE, ["kann", "%d", "nicht"], [(0, 0), (2, 1), (1, 2)], "cannot open %s now", MESSAGE, "kann %s nicht"),
        (MESSAGE, ["kann", "%s", "nicht", "(%s)"], [(0, 0), (2, 1), (1, 2), (3, 3)], "cannot open %s now", MESSAGE,
         "kann %s nicht"),
        # In the quotes of German books
        (["we", "cannot", "open"], ["kann", "»%s«", "nicht"], [(0, 0), (1, 1), (2, 2)], "we cannot open",
         ["we", "cannot", "open"], "kann nicht"),
        # What stands behind it does not come to the word before it
        (["we", "cannot", "open"], ["kann", "%s/dog", "nicht"], [(0, 0), (1, 1), (2, 2)], "we cannot open",
         ["we", "cannot", "open"], "kann /dog nicht"),
    ],
)  # fmt: skip
def test_what_the_training_text_carries_over_is_shown_and_there_as_often(
    tmp_path: Path,
    source: list[str],
    target: list[str],
    links: list[tuple[int, int]],
    line: str,
    shown: list[str],
    expected: str,
) -> None:
    save_known_model(path := tmp_path / "model.safetensors", source, target, links)
    translator = Translator.load(path)
    translator.learned = CARRIED
    options = TranslationOptions(alignments=True, word_scores=True)
    [(_, [[segment]])] = translator.read([line], options)
    assert segment.seen.text.split() == shown
    [[best]] = translator.translate([line], options)
    assert best.text == expected
    assert best.word_scores is not None
    assert best.word_scores.words == expected.split()
    assert best.soft_alignment is not None
    assert best.soft_alignment.target_words == expected.split()
    if "%s" in expected:
        assert best.alignment is not None
        assert (2, expected.split().index("%s")) in best.alignment


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("a dog %s", "a dog %s"),
        ("a dog %s %lld", "a dog %s"),  # only what is carried over
        ("a dog (%s)", "a dog (%s)"),
        ("%s: %d", ""),  # nothing to translate
        ("A GREEN DOG %s", "a green dog"),  # capitals, in which it would not stay as it is
        ("a dog http://a.org/%s", "a dog"),  # what is kept has it in it
    ],
)
def test_it_is_shown_beside_words(translator: Translator, line: str, shown: str) -> None:
    sight = Sight(translator.vocabularies.source, Protection(SETS), learned=CARRIED)
    assert sight.seen(line, 0, len(line), sight.found(line)).text == shown


def test_a_sentence_of_nothing_else_is_not_shown(translator: Translator) -> None:
    sight = Sight(translator.vocabularies.source, Protection(SETS), learned=CARRIED)
    line = "a dog. %s."
    assert [sight.seen(line, *span, sight.found(line)).text for span in ((0, 6), (7, 10))] == ["a dog.", ""]


def test_a_lost_one_parts_no_other() -> None:
    lost = Mark(2, 2, before=True, after=True, tags=("%d", ""))
    parts = pieces("a %d a", [lost], "%s", [(2, 0, 0.3)], whole=[(0, 2)])
    assert "".join(part.text for part in parts) == "%s %d"


def test_what_the_user_requires_keeps_only_its_own(tmp_path: Path) -> None:
    source, target = ["we", "cannot", "open", "it"], ["kann", "%s", "nicht", "(%s)"]
    save_known_model(path := tmp_path / "model.safetensors", source, target, [(place, place) for place in range(4)])
    translator = Translator.load(path)
    translator.learned = CARRIED
    [[best]] = translator.translate(["we cannot open it"], prefixes=["kann %s"])
    assert best.text == "kann %s nicht"


def test_a_term_and_an_own_pattern_come_before_it(translator: Translator) -> None:
    glossary = Glossary({"dog %s": "Hund %s"})
    line = "a dog %s ART-%d"
    sight = Sight(translator.vocabularies.source, Protection(["placeholders", r"ART-%d"]), glossary, learned=CARRIED)
    marks = sight.found(line)
    assert [(line[slice(*mark.place)], mark.instead) for mark in marks] == [("dog %s", "Hund %s"), ("ART-%d", None)]
