"""Documents with a model: one set by hand, whose alignment is known, and one without attention."""

from pathlib import Path
from unicodedata import normalize

import pytest

from nmt.decoding.options import TranslationOptions
from nmt.decoding.translator import Translator
from nmt.decoding.writing import Translation
from nmt.documents.document import read_document, translate_document
from nmt.documents.document import written as document_written
from nmt.errors import UserError
from nmt.serving.limits import Limits, Pair
from nmt.serving.models import Served
from nmt.serving.requests import answer_to, read_request
from tests.decoding.conftest import network
from tests.known_model import save_known_model

pytest.importorskip("sentencex", reason="documents are cut into sentences: pip install 'nmt-toolkit[text]'")

SOURCE, TARGET = ["Today", "our", "men", "can", "dance", "."], ["Heute", "können", "unsere", "Männer", "tanzen", "."]
LINKS = [(0, 0), (3, 1), (1, 2), (2, 3), (4, 4), (5, 5)]


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    path = tmp_path_factory.mktemp("known") / "model.safetensors"
    save_known_model(path, SOURCE, TARGET, LINKS)
    return Translator.load(path)


def test_html(translator: Translator) -> None:
    html = "<p>Today <b>our <i>men</i></b> <a href=x>can</a> dance .</p>"
    expected = "<p>Heute <a href=x>können</a> <b>unsere <i>Männer</i></b> tanzen .</p>"
    assert translate_document(translator, html, format="html") == expected
    assert translate_document(translator, html, format="html", options=TranslationOptions(beam_size=2)) == expected


def test_tags_of_text_whose_accents_are_characters_of_their_own(tmp_path: Path) -> None:
    """As a Mac types them; they are translated as one character with their letter."""
    save_known_model(tmp_path / "model", ["réélégéré", "dog"], ["Hund", "re"], [(1, 0), (0, 1)])
    html = normalize("NFD", "<p>réélégéré <b>dog</b></p>")
    assert translate_document(Translator.load(tmp_path / "model"), html, format="html") == "<p><b>Hund</b> re</p>"


def test_subtitles(translator: Translator) -> None:
    cue = "{}\r\n00:00:0{},000 --> 00:00:0{},500\r\n{}\r\n\r\n"
    text = "\ufeff" + cue.format(1, 1, 1, "Today our men") + cue.format(2, 2, 2, "<i>can</i> dance .")
    expected = "\ufeff" + cue.format(1, 1, 1, "Heute können unsere") + cue.format(2, 2, 2, "<i></i>Männer tanzen .")
    assert translate_document(translator, text, format="srt") == expected


def test_sentences_are_translated_one_by_one(translator: Translator) -> None:
    html = "<p>Today <b>our men</b> can dance .<br>Today <i>our</i> men can dance .</p>"
    expected = "<p>Heute können <b>unsere Männer</b> tanzen .<br>Heute können <i>unsere</i> Männer tanzen .</p>"
    assert translate_document(translator, html, format="html") == expected


def test_text(translator: Translator) -> None:
    line = "Today our men can dance ."
    assert translate_document(translator, f"{line}\r\n\n{line}") == f"{' '.join(TARGET)}\r\n\n{' '.join(TARGET)}"


def test_wrapped_text(translator: Translator) -> None:
    """A paragraph is translated sentence by sentence, and its lines are as wide as they were."""
    text = "> Today our men can\n> dance . Today our men\n> can dance .\n\nToday our men can dance .\n"
    expected = "> Heute können unsere\n> Männer tanzen . Heute\n> können unsere Männer\n> tanzen .\n\n{}\n"
    assert translate_document(translator, text, format="paragraphs") == expected.format(" ".join(TARGET))


def known(folder: Path, source: list[str], target: list[str], links: list[tuple[int, int]]) -> Translator:
    """A translator of pieces that are one letter each."""
    save_known_model(folder / "model.safetensors", source, target, links, split=True)
    return Translator.load(folder / "model.safetensors")


TO_CHINESE = (
    ["Xa", "yb", "zc", "wd", "."],
    ["老狗喜欢我猫。"],
    [(1, 0), (0, 1), (4, 2), (5, 3), (7, 4), (6, 5), (8, 6)],  # letters; of "yb" there is nothing
)
FROM_CHINESE = (["老狗喜欢我猫"], ["x", "y", "z", "w"], [(4, 0), (0, 1), (3, 2), (1, 3)])


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p><b>Xa</b> yb zc wd .</p>", "<p><b>老狗</b>喜欢我猫。</p>"),
        ("<p>Xa <b>yb</b> zc <a href=y>wd</a> .</p>", "<p>老狗<b></b>喜欢<a href=y>我猫</a>。</p>"),
        ("<p>Xa yb <i>zc wd</i> .</p>", "<p>老狗<i>喜欢我猫</i>。</p>"),
        ("<p>Xa yb <img>zc wd .</p>", "<p>老狗<img>喜欢我猫。</p>"),
        (
            "<p>Xa yb zc <b>wd</b> .<br>Xa yb <b>zc</b> wd .</p>",
            "<p>老狗喜欢<b>我猫</b>。<br>老狗<b>喜欢</b>我猫。</p>",
        ),
    ],
)
def test_into_a_script_without_spaces(tmp_path: Path, html: str, expected: str) -> None:
    translator = known(tmp_path, *TO_CHINESE)
    assert translate_document(translator, html, format="html") == expected
    assert served(translator, html, "html") == expected


def served(translator: Translator, text: str, form: str) -> object:
    """What the server answers."""
    pair = Pair("en", "de")
    models = Served({pair: translator}, {pair: TranslationOptions(split_sentences="en")})
    fields = {"q": text, "source": "en", "target": "de", "format": form}
    request = read_request(fields, models, Limits(), None)
    lines = [line for document in request.documents for line in document.lines]
    return answer_to(request, models.translate(lines, request.kind))["translatedText"]


LINE = "Today <b>our men</b> can dance ."
ENTRY = "<source>Today our men</source>"


@pytest.mark.parametrize(
    ("form", "text", "stated"),
    [
        ("text", "Today our men\r\n\ncan dance .\n{}", ""),
        ("html", f"{{}}<body><p lang='en'>{LINE}", "<html lang='{}'>"),
        ("html", f"{{}}<body><p lang='en'>{LINE}", '<html xml:lang="{}" lang="{}">'),
        ("ttml", f"{{}}<p begin='1s' end='2s' xml:lang='en'>{LINE}</p></tt>", "<tt xmlns='' xml:lang='{}'>"),
        ("po", f'msgid ""\nmsgstr ""\n{{}}\nmsgid "{LINE}"\nmsgstr ""\n', '"Language: {}\\n"\n'),
        ("json", '{{{}, "a": "' + LINE + '"}}', '"@@locale": "{}"'),
        (
            "ts",
            f"{{}}<context><name>a</name><message>{ENTRY}<translation/></message></context></TS>",
            '<TS version="2.1" language="{}">',
        ),
        (
            "xliff",
            f'<xliff version="1.2">{{}}<body><trans-unit id="1">{ENTRY}</trans-unit></body></file></xliff>',
            '<file source-language="en" target-language="{}" original="a" datatype="x">',
        ),
    ],
)
def test_a_document_and_the_server(translator: Translator, form: str, text: str, stated: str) -> None:
    """It says in translation which language it is in, but not of its parts; and the server writes the same."""
    text = text.format(stated.replace("{}", "en-US"))
    written = translate_document(translator, text, format=form)
    assert "Heute" in written
    assert stated.replace("{}", "de") in written
    assert ("='en'>" in written) == ("='en'>" in text)
    assert served(translator, text, form) == written


def test_a_message_that_is_like_a_header_stays(translator: Translator) -> None:
    header, one, other = (
        'msgstr "Language: {}\\n"\n',
        'msgid "A\\nLanguage: en"',
        'msgid ""\n"A\\n"\n"Language: en\\n"\n',
    )
    text = f'msgid ""\n{header.format("en")}\n{one}\nmsgstr ""\n\n{other}msgstr ""\n'
    written = translate_document(translator, text, format="po")
    assert all(part in written for part in (header.format("de"), one, other))


@pytest.mark.parametrize(
    ("languages", "tag", "expected"),
    [
        (("en", "ar-EG"), '<html class="a">', '<html class="a" dir="rtl">'),
        (("en", "he"), "<HTML Dir=ltr lang='en'>", "<HTML dir=\"rtl\" lang='he'>"),
        (("fa", "en"), "<html lang='fa' dir='rtl'>", "<html lang='en' dir=\"ltr\">"),
        (("fa", "en"), "<html dir = 'rtl' lang = 'fa'>", "<html dir=\"ltr\" lang = 'en'>"),
        (("fa", "en"), "<html data-dir=rtl class='dir=rtl' dir>", "<html data-dir=rtl class='dir=rtl' dir=\"ltr\">"),
        (("fa", "en"), "<!-- <html dir=rtl> --><html\n\tdir=\n rtl>", '<!-- <html dir=rtl> --><html\n\tdir="ltr">'),
        (("ar", "ur"), "<html dir='rtl'>", "<html dir='rtl'>"),
        (("en", "de"), "<html>", "<html>"),
        (("en", "ar"), "<html><!-- <html> -->", '<html dir="rtl"><!-- <html> -->'),
        (("en", "ar"), "<htmlx>", "<htmlx>"),
    ],
)
def test_in_which_direction_a_page_is_read(languages: tuple[str, str], tag: str, expected: str) -> None:
    document = read_document(f"{tag}<p dir='ltr'>a", format="html")
    assert document_written(document, [Translation("b", 0.0, [])], languages) == f"{expected}<p dir='ltr'>b"


@pytest.mark.parametrize(
    ("languages", "expected"),
    [(("fa", "en"), "- B."), (("fa", "ar"), "&rlm;- B.\u202c"), (("en", "ar"), "&rlm;- B.\u202c")],
)
def test_subtitles_from_left_to_right_are_not_marked_otherwise(languages: tuple[str, str], expected: str) -> None:
    begin = "WEBVTT\n\n00:01.000 --> 00:02.000\n"
    document = read_document(f"{begin}&rlm;- a.\u202c\n", format="vtt")
    assert document_written(document, [Translation("B.", 0.0, [])], languages) == f"{begin}{expected}\n"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>老狗喜欢<b>我</b>猫</p>", "<p><b>x</b> y z w</p>"),
        ("<p>老<a href=y>狗</a>喜<i>欢</i>我猫</p>", "<p>x y <i>z</i> <a href=y>w</a></p>"),
        ("<p><b>老</b>狗喜欢<img>我猫</p>", "<p><img> x <b>y</b> z w</p>"),  # what parts words stands apart from them
    ],
)
def test_from_a_script_without_spaces(tmp_path: Path, html: str, expected: str) -> None:
    assert translate_document(known(tmp_path, *FROM_CHINESE), html, format="html") == expected


def test_subtitles_in_a_script_without_spaces(tmp_path: Path) -> None:
    """Cut where the fewest links are crossed, with the styles of the words."""
    cue = "{}\n00:00:0{},000 --> 00:00:0{},500\n{}\n\n"
    text = cue.format(1, 1, 1, "<i>Xa</i> yb") + cue.format(2, 2, 2, "zc <b>wd</b> .")
    expected = cue.format(1, 1, 1, "<i>老狗</i>") + cue.format(2, 2, 2, "喜欢<b>我猫</b>。")
    assert translate_document(known(tmp_path, *TO_CHINESE), text, format="srt") == expected


@pytest.fixture(scope="module")
def without(translator: Translator) -> Translator:
    """A model without attention."""
    source, target = translator.vocabularies
    model = network(source_size=source.size, target_size=target.size, score="none")
    without = Translator([model], translator.vocabularies, languages=translator.languages)
    assert without.scorer.without_attention
    return without


def test_a_model_without_attention_places_tags_in_proportion(without: Translator) -> None:
    written = translate_document(without, "<p>Today <b>our men</b> can</p>", format="html")
    assert written.startswith("<p>")
    assert written.count("<b>") == written.count("</b>") == 1


@pytest.mark.parametrize("html", ["<p>Today <b>our men</b> can dance .</p>", "<p>Today</p>", "<p>5</p>"])
def test_options_of_alignments_place_tags(translator: Translator, html: str) -> None:
    """And are no mistake where there are none to place."""
    options = TranslationOptions(alignment_step="next", end_links="none")
    written = translate_document(translator, html, format="html", options=options)
    assert written.count("<b>") == html.count("<b>")
    if "<b>" in html:
        assert written != translate_document(translator, html, format="html")
    replacing = TranslationOptions(alignment_step="next", end_links="none", replace_unknown={})
    assert translate_document(translator, html, format="html", options=replacing).count("<b>") == html.count("<b>")


@pytest.mark.parametrize("format", ["text", "paragraphs", "html", "srt", "vtt"])
def test_half_a_character(translator: Translator, format: str) -> None:  # noqa: A002
    with pytest.raises(
        UserError, match=r"^the document: character 5 is half of a surrogate pair, U\+D83D, which is no"
    ):
        translate_document(translator, "<b>\n\ud83d</b>", format=format)  # type: ignore[arg-type]


def test_a_nul_is_text_like_any_other(translator: Translator) -> None:
    assert translate_document(translator, "<p>\0<b>\0 5</b></p>", format="html") == "<p>\0<b>\0 5</b></p>"
    assert "<b>" in translate_document(translator, "<p>Today\0 <b>our\0</b></p>", format="html")


def test_titles_end_without_a_period() -> None:
    """As in the source, whatever sentences the model has learned from; behind a digit it may be of an ordinal."""
    document = read_document("<h1>Two dogs</h1><p>Two <b>dogs</b>.&rlm;</p><p>5 dogs<p>Two", format="html")
    texts = ("Zwei Hunde.", "Zwei Hunde.", "Hunde, 5.", "Երկու։")  # the last is Armenian
    translations = [Translation(text, 0.0, []) for text in texts]
    expected = "<h1>Zwei Hunde</h1><p>Zwei <b>Hunde</b>.</p><p>Hunde, 5.<p>Երկու"
    assert document_written(document, translations, (None, None)) == expected


def test_mistakes(translator: Translator) -> None:
    with pytest.raises(
        UserError, match=r"^format 'docx': unknown; choose one of text, paragraphs, html, markdown, srt, "
    ):
        read_document("", format="docx")  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"^n_best is 2; a document is translated in one way"):
        translate_document(translator, "a", options=TranslationOptions(n_best=2))
