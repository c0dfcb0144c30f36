"""nmt-translate --format: documents in, documents out, with a tiny random model; what is said about mistakes."""

import gzip
import sys
from pathlib import Path

import pytest

from nmt.cli.translate import main
from nmt.decoding.translator import Translator
from nmt.documents.document import translate_document
from tests.cli.conftest import refused

pytest.importorskip("sentencex", reason="documents are cut into sentences: pip install 'nmt-toolkit[text]'")

FIXTURES = Path(__file__).parent.parent / "documents" / "fixtures"
HTML = "\ufeff<p>a <b>dog</b>\r\n runs</p>\r\n<!-- two men -->"


@pytest.mark.parametrize("header", ['msgstr "Language: {}\\n"', 'msgstr ""\n"X: a\\n"\n"Language: {}\\n"'])
@pytest.mark.parametrize("language", ["en_US", "fr"])
def test_messages_in_a_third_language_are_warned_of(
    model: Path, tmp_path: Path, header: str, language: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("translate", reason="messages need nmt-toolkit[localization]")
    source = tmp_path / "a.po"
    source.write_text(f'msgid ""\n{header.format(language)}\n\nmsgid "a dog"\nmsgstr ""\n', encoding="utf-8")
    assert main(["--model", str(model), "--input", str(source)]) == 0
    warning = f"nmt-translate: warning: {source}: says to be in fr, and the model translates from en to en\n"
    assert capsys.readouterr().err == (warning if language == "fr" else "")


@pytest.mark.parametrize("name", ["page.html", "subtitles.srt", "subtitles.vtt"])
def test_a_document(model: Path, tmp_path: Path, name: str) -> None:
    """The same as in Python, from a file or, as the subtitles are here, a packed one, with its byte order mark and line
    ends."""
    source, form, output = FIXTURES / name, name[-4:].strip("."), tmp_path / "output"
    text = source.read_bytes().decode()
    expected = translate_document(Translator.load(model), text, format=form)  # type: ignore[arg-type]
    if form != "html":
        source = tmp_path / "packed.gz"
        source.write_bytes(gzip.compress(text.encode()))
    assert main(["--model", str(model), "--format", form, "--input", str(source), "--output", str(output)]) == 0
    assert output.read_bytes().decode() == expected != text


def test_standard_input_and_output(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for content, code in ((HTML.encode(), 0), (gzip.compress(HTML.encode()), 2)):
        (tmp_path / "page").write_bytes(content)
        with (tmp_path / "page").open() as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            assert main(["--model", str(model), "--format", "html"]) == code
        output, errors = capsysbinary.readouterr()
        if code == 0:
            assert output.decode() == translate_document(Translator.load(model), HTML, format="html")
            assert output.endswith(b"</p>\r\n<!-- two men -->")
    assert errors.startswith(b"nmt-translate: error: standard input is gzip, and only files are unpacked")


def test_a_document_with_nothing_to_translate_is_warned_of(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "page.html"
    source.write_text("<p translate=no>a dog</p>", encoding="utf-8")
    assert main(["--model", str(model), "--input", str(source)]) == 0
    out, err = capsys.readouterr()
    assert out == source.read_text(encoding="utf-8")
    assert err == f"nmt-translate: warning: {source}: has nothing to translate, read as html\n"
    source.write_text("", encoding="utf-8")
    assert main(["--model", str(model), "--input", str(source)]) == 0
    assert capsys.readouterr() == ("", "")


def complaints(capsys: pytest.CaptureFixture[str], model: Path, source: Path, *options: str) -> list[str]:
    lines = refused(capsys, main, "--model", model, "--input", source, *options)
    return [line.removeprefix("nmt-translate: error: ") for line in lines]


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.HTM", "html"), ("a.html.gz", "html"), ("a.srt", "srt"), ("a.Markdown", "markdown"), ("a.md.gz", "markdown")],
)
def test_the_ending_tells_the_format(
    model: Path, tmp_path: Path, name: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\n<i>a dog</i> runs\n" if form == "srt" else "# <b>a dog</b>\n"
    (source := tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert main(["--model", str(model), "--input", str(source), "--output", str(tmp_path / "output")]) == 0
    assert capsys.readouterr().err == ""
    assert (tmp_path / "output").read_text() == translate_document(Translator.load(model), text, format=form)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "what_to_do"),
    [
        ("a.docx", "save it as HTML"),
        ("a.tex.gz", "convert it, as pandoc does, to HTML or Markdown"),
        ("a.xlsx", "save the column of texts as a file with one text a line"),
        ("Localizable.strings", "convert its texts to PO or XLIFF, and back again"),
        ("a.txt.xz", "unpack it, or pack it with gzip"),
    ],
)
def test_an_ending_that_is_not_read(
    model: Path, tmp_path: Path, name: str, what_to_do: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (source := tmp_path / name).write_text("a dog\n")
    ending = "." + name.lower().removesuffix(".gz").rpartition(".")[2]
    (line,) = complaints(capsys, model, source)
    assert line == f"--input {source}: {ending} is not read; {what_to_do}, or give --format"
    assert main(["--model", str(model), "--input", str(source), "--format", "text"]) == 0


@pytest.mark.parametrize(
    ("form", "encoding", "text", "same"),
    [
        ("text", "cp1250", "a łódź dog\r\nruns", None),
        ("text", "utf-32", "a łódź dog\r\nruns", None),
        ("html", "cp1250", "<meta charset='cp1250'><p>a łódź</p>", "<meta charset='UTF-8'>"),
        ("po", "latin-1", 'msgid ""\nmsgstr "charset=iso-8859-1\\n"\n\nmsgid "a é"\nmsgstr ""\n', "charset=UTF-8"),
    ],
)
def test_another_encoding(model: Path, tmp_path: Path, form: str, encoding: str, text: str, same: str | None) -> None:
    """The output is UTF-8, and says so."""
    source, output = tmp_path / "source", tmp_path / "output"
    source.write_bytes(text.encode(encoding))
    arguments = ["--model", str(model), "--input", str(source), "--output", str(output), "--format", form]
    assert main([*arguments, "--encoding", encoding]) == 0
    written = output.read_bytes()
    source.write_text(text.replace("cp1250", "UTF-8").replace("iso-8859-1", "UTF-8"), newline="")
    assert main([*arguments, "--encoding", "utf-8"]) == 0
    assert output.read_bytes() == written
    assert (same or "\r\n") in written.decode()


def test_options_of_lines_alone(capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path) -> None:
    (source := tmp_path / "a.html").write_text(HTML)
    options = ["--n-best", "2", "--scores", "--flush", "--resume", "--output", str(tmp_path / "out")]
    lines = complaints(capsys, model, source, "--format", "html", *options, "--alignments", str(tmp_path / "b"))
    text = " goes with --format text in UTF-8 alone; --format html is one whole document"
    for option in ("--n-best", "--scores", "--flush", "--resume", "--alignments"):
        assert f"  - {option}{text}" in lines
    (line,) = complaints(capsys, model, source, "--scores")
    by_ending = f"--input {source} (html, by its ending)"
    assert line == f"--scores goes with --format text in UTF-8 alone; {by_ending} is one whole document"
    (line,) = complaints(capsys, model, source, "--format", "text", "--encoding", "cp1252", "--scores")
    assert line == "--scores goes with --format text in UTF-8 alone; --encoding cp1252 is one whole document"


def test_mistakes(capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path) -> None:
    source = tmp_path / "a.srt"
    source.write_text("1\n00:00:01,000 -> 00:00:02,000\na dog\n")
    (line,) = complaints(capsys, model, source, "--format", "docx")
    assert line.startswith("--format docx: unknown; choose one of text, paragraphs, html, markdown, srt, ")
    (line,) = complaints(capsys, model, source, "--format", "srt")
    assert line.startswith(f"{source}, line 2: '00:00:01,000 -> 00:00:02,000' is damaged; expected times such as ")
    (line,) = complaints(capsys, model, tmp_path / "none", "--format", "html")
    assert line == f"{tmp_path / 'none'}: no such file"
    source.write_bytes(b"<p>\n<b>\xff</b>")
    (line,) = complaints(capsys, model, source, "--format", "html")
    assert line.startswith(f"{source}, line 2: not valid UTF-8 (byte 0xff at column 4); correct it if only this line ")
    (line,) = complaints(capsys, model, source, "--format", "html", "--encoding", "ascii")
    assert line == (
        f"{source}: not valid ascii ('ascii' codec can't decode byte 0xff in position 7: ordinal not in range(128))"
    )
    (line,) = complaints(capsys, model, source, "--format", "html", "--encoding", "rot13")
    assert line == "--encoding rot13: unknown; give a name such as cp1250, latin-1, or utf-16"


def test_a_document_that_is_too_large(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr("nmt.data.corpus.LARGEST_TEXT", 7)
    (source := tmp_path / "a.html").write_text("<p>12345")
    (line,) = complaints(capsys, model, source, "--format", "html")
    assert line == f"{source}: has more than 7 bytes, the most that a document may have"
