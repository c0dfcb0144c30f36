"""Warnings of lines that may be translated badly: the same from the command and from Python."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.cli.translate import main
from nmt.decoding.doubts import Doubts
from nmt.decoding.translator import TranslationOptions, Translator
from nmt.errors import InputWarning
from nmt.models.model_file import LONGEST_SOURCE, load_model, longest_trained, save_model
from nmt.text_form import ENOUGH, FORMS, form_of
from tests.random_model import save_random_model

pytest.importorskip("sentencex", reason="needs sentencex, of the extra text")

TEXT = "A dog runs . Two men are reading .\na dog\n\na dog runs across the green field and across the field\n"  # 1 + 1
Make = Callable[[Any], Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A function that makes a model whose file says that its longest source line had so many pieces."""

    def made(longest: Any, *, forms: Any = None, **data: str) -> Path:
        file = load_model(save_random_model(tmp_path / "model.safetensors"))
        config = file.config.model_copy(update={"data": file.config.data.model_copy(update=data)})
        path = tmp_path / "other.safetensors"
        save_model(path, file._replace(config=config, training={LONGEST_SOURCE: longest, FORMS: forms}))
        return path

    return made


def warnings(capsys: pytest.CaptureFixture[str], model: Path, *options: object, about: str = "sentences") -> list[str]:
    """What is said about lines with several sentences, or about something else."""
    source = model.with_name("source")
    if not source.exists():
        source.write_text(TEXT, encoding="utf-8")
    arguments = ["--model", model, "--input", source, "--output", source.with_name("out"), *options]
    assert main([str(one) for one in arguments]) == 0
    return [line for line in capsys.readouterr().err.splitlines() if "warning" in line and about in line]


@pytest.mark.parametrize("options", [(), ("--chunk-lines", 1), ("--resume",)])
def test_one_warning_counts_both(make, capsys, options) -> None:
    (warning,) = warnings(capsys, make(12), *options)
    assert warning == (
        "nmt-translate: warning: 2 of 4 lines have several sentences or more pieces than the model was trained on, and "
        "may lose parts in translation; --split-sentences translates a line sentence by sentence"
    )


def test_lines_that_are_not_too_long(make, capsys) -> None:
    (warning,) = warnings(capsys, make(60))
    assert "warning: 1 of 4 lines has several sentences" in warning


def test_none_with_the_option(make, capsys) -> None:
    assert warnings(capsys, make(2), "--split-sentences") == []
    assert warnings(capsys, make(2), "--split-sentences", "--chunk-lines", 1) == []


def test_without_sentencex_there_is_the_length(make, capsys, monkeypatch) -> None:
    monkeypatch.setattr("nmt.decoding.text.sentences.find_spec", lambda name: None)
    (warning,) = warnings(capsys, make(12))
    assert "2 of 4 lines have several sentences or more pieces" in warning
    assert warning.endswith("(pip install 'nmt-toolkit[text]')")
    assert warnings(capsys, make(60)) == []


def test_a_language_that_has_no_code(make, capsys) -> None:
    (warning,) = warnings(capsys, make(12, source_language="Martian"))
    assert "2 of 4 lines have several sentences or more pieces" in warning


def test_lines_of_a_pipe(make, capfd, monkeypatch, tmp_path) -> None:
    model = make(12)
    (tmp_path / "source").write_text(TEXT, encoding="utf-8")
    with (tmp_path / "source").open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["--model", str(model), "--flush"]) == 0
    assert capfd.readouterr().err.count("warning: 2 of 4 lines") == 1


def test_characters_that_the_model_does_not_know(make, capsys) -> None:
    model = make(60)
    model.with_name("source").write_text(
        "a dog Ж and Łódź\nЖ\u0359 dog 😀 \u202a{名}\n字字\n字母ЖЖЩ {☃}\na dog\n", encoding="utf-8"
    )
    expected = "of 5 lines have characters that the model does not know"
    for options in ((), ("--chunk-lines", "2"), ("--split-sentences",)):
        assert warnings(capsys, model, *options, about="know") == [
            f"nmt-translate: warning: 4 {expected} (Ж Ł ó ź U+0359 …)"
        ]
    (warning,) = warnings(capsys, model, "--protect", about="know")
    assert warning.endswith(f"4 {expected} (Ж Ł ó ź U+0359 …)")


def test_documents_too(make, capsys) -> None:
    page = make(60).with_name("page.html")
    page.write_text("<p>a dog</p><p>two Ж</p>", encoding="utf-8")
    assert main(["--model", str(page.with_name("other.safetensors")), "--input", str(page)]) == 0
    assert capsys.readouterr().err == (
        "nmt-translate: warning: 1 of 2 lines has characters that the model does not know (Ж)\n"
    )


def test_the_same_from_python(make) -> None:
    translator = Translator.load(make(12))
    lines = ["a dog runs across the green field and across the field", "two Ж", "a dog"]
    with pytest.warns(InputWarning) as found:
        list(translator.translate(lines))
    why = "several sentences or more pieces than the model was trained on, and may lose parts in translation"
    assert [str(one.message) for one in found] == [
        f"1 of 3 lines has {why}; `split_sentences` translates a line sentence by sentence",
        "1 of 3 lines has characters that the model does not know (Ж)",
    ]
    assert all(one.filename == __file__ for one in found)
    list(translator.translate(lines, doubts=(doubts := Doubts())))
    assert (doubts.lines, doubts.long, doubts.unknown, list(doubts.characters)) == (3, 1, 1, ["Ж"])
    list(translator.translate(lines, split_sentences=False, doubts=(doubts := Doubts())))
    assert doubts.long == 0  # whoever says so knows


@pytest.mark.parametrize(("lines", "options"), [(19, ()), (20, ()), (20, ("--chunk-lines", 7))])
def test_text_of_another_form_than_the_training_text(make, capsys, lines, options) -> None:
    """Such as lower case; a few lines are no reason to warn."""
    cased = form_of(["A dog runs"] * 100, name="train.en")
    model = make(60, forms=[cased.counts, cased.counts])
    model.with_name("source").write_text("a dog runs\n" * lines, encoding="utf-8")
    expected = (
        "nmt-translate: warning: the model's training text: 100 of 100 lines (100.0%) have capital letters, but 0.0% "
        "of the text; give both in the same case"
    )
    assert warnings(capsys, model, *options, about="capital") == [expected] * (lines >= ENOUGH)


def test_texts_are_cut_into_sentences_and_lines_are_not(make) -> None:
    translator = Translator.load(make(60))
    sentences = ["A dog runs .", "Two men are reading .", "a dog"]
    alone = [best.text for best, *_ in translator.translate(sentences)]
    text = f"{sentences[0]}  {sentences[1]}\r\n\n{sentences[2]}"
    assert translator.translate_text(text) == f"{alone[0]}  {alone[1]}\n\n{alone[2]}"
    assert translator.translate_text("") == ""
    whole = [best.text for best, *_ in translator.translate(text.split("\n"))]
    for one in (
        translator.translate_text(text, split_sentences=False, beam_size=5),
        translator.translate_text(text, TranslationOptions(split_sentences=False)),
    ):
        assert one == "\n".join(whole)
    assert [best.text for best, *_ in translator.translate([text.split("\r")[0]], split_sentences=True)] == [
        "  ".join(alone[:2])
    ]


def test_a_text_in_no_known_language(make) -> None:
    translator = Translator.load(make(60, source_language="Martian"))
    with pytest.warns(
        InputWarning, match="the model: lines are not cut into sentences: 'martian'|'Martian' is no code"
    ):
        text = translator.translate_text("A dog runs . Two men are reading .")
    ((best,),) = translator.translate(["A dog runs . Two men are reading ."])
    assert text == best.text


@pytest.mark.parametrize("unknown", [None, 0, -3, True, "12", 1.5])
def test_files_that_do_not_say_have_their_limit(make, unknown) -> None:
    file = load_model(make(unknown))
    assert longest_trained(file) == file.config.data.max_length == 100
    assert longest_trained(file._replace(training={LONGEST_SOURCE: 12})) == 12
