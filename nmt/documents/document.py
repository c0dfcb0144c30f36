"""Whole documents in one of several formats: text with one sentence a line, HTML, Markdown, subtitles, messages.

`read_document` gives the lines that are to be translated, and writes the document again around their translations;
`translate_document` does both with a translator.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from nmt.decoding.options import TranslationOptions
from nmt.decoding.text.languages import RIGHT_TO_LEFT, code_of
from nmt.decoding.text.lines import check_text
from nmt.decoding.text.segments import SENTENCE_END
from nmt.decoding.text.sentences import FULL_STOPS
from nmt.decoding.translator import Translation, Translator
from nmt.documents.formats import FORMATS, Document, PlainText
from nmt.errors import UserError

_PERIOD = re.compile(rf"(?<=[^\W\d])[{FULL_STOPS}]\s*\Z")


def read_document(text: str, *, format: str, name: str = "the document") -> Document:  # noqa: A002
    """Read a document. Raises UserError, which calls it `name`, for an unknown format and for what it cannot have."""
    if format not in FORMATS:
        raise UserError(f"format {format!r}: unknown; choose one of {', '.join(FORMATS)}")
    check_text(text, name)
    try:
        return FORMATS[format].read(text, name)
    except ModuleNotFoundError as error:
        install = "pip install 'nmt-toolkit[localization,text]'"
        raise UserError(f"format {format} needs {error.name}, which is not installed: {install}") from None


def document_options(document: Document, options: TranslationOptions, translator: Translator) -> TranslationOptions:
    """The options with which the lines of a document are translated, those of HTML and subtitles by sentences.

    Raises UserError for those of lines alone.
    """
    if options.n_best != 1:
        raise UserError(f"n_best is {options.n_best}; a document is translated in one way: leave it out")
    split = options.split_sentences
    return replace(
        options,
        alignments=options.alignments or (document.is_marked and translator.scorer.without_attention is None),
        split_sentences=True if split is None and not isinstance(document, PlainText) else split,
    )


def written(document: Document, translations: Sequence[Translation], languages: tuple[str | None, str | None]) -> str:
    """The document with translations of its lines; one that says to be in the source language is in the target's.

    Where that is read from the other side, its format has it say so. Titles and labels, which end without a period, do
    so in translation, whatever the model has seen of them.
    """
    if not isinstance(document, PlainText):
        pairs = zip(document.lines, translations, strict=True)
        translations = [
            one if SENTENCE_END.search(line) else one._replace(text=_PERIOD.sub("", one.text)) for line, one in pairs
        ]
    text, (source, target) = document.written(translations), languages
    if document.language is None or not (source and target):
        return text
    text = document.language.code.sub(lambda code: target if code_of(code[0]) == code_of(source) else code[0], text)
    before, direction = ("rtl" if code_of(language) in RIGHT_TO_LEFT else "ltr" for language in (source, target))
    return text if direction == before else document.language.direction(text, direction)


def translate_document(
    translator: Translator,
    text: str,
    *,
    format: str = "text",  # noqa: A002
    options: TranslationOptions | None = None,
) -> str:
    """The document `text` in another language, with its markup.

    Where tags belong is told by the attention of the model; without attention they go where they stood in proportion.
    Raises UserError like `read_document` and `Translator.translate`.
    """
    document = read_document(text, format=format)
    options = document_options(document, options or TranslationOptions(), translator)
    translations = [best for best, *_ in translator.translate(document.lines, options, first=None)]
    return written(document, translations, translator.languages)
