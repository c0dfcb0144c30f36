"""What a client gets for its translations: LibreTranslate's answer, or a whole file. It knows no HTTP."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nmt.documents.document import written
from nmt.documents.formats import Document
from nmt.serving.limits import Pair
from nmt.serving.requests import Request

if TYPE_CHECKING:
    from nmt.decoding.translator import Translation


def answer_to(request: Request, translations: "Sequence[Sequence[Translation]]") -> dict[str, Any]:
    """LibreTranslate's answer, from the translations of the lines of all documents."""
    left, pair = iter(translations), request.kind.pair
    texts = [(document, [next(left) for _ in document.lines]) for document in request.documents]
    answer: dict[str, list[Any]] = {
        "translatedText": [written(document, _nth(lines, 0), pair) for document, lines in texts]
    }
    if request.detected is not None:
        answer["detectedLanguage"] = [request.detected._asdict()] * len(texts)
    if request.kind.options.n_best > 1:
        answer["alternatives"] = [_alternatives(document, lines, pair) for document, lines in texts]
    if request.kind.weights:
        answer["alignments"] = [[_alignment(line[0]) for line in lines] for _, lines in texts]
    if request.kind.options.word_scores:
        scores = [[line[0].word_scores for line in lines] for _, lines in texts]
        answer["wordScores"] = [[one.rounded() for one in of_text if one is not None] for of_text in scores]
    return answer if request.is_list else {name: values[0] for name, values in answer.items()}


def _alternatives(document: Document, lines: "Sequence[Sequence[Translation]]", pair: Pair) -> list[str]:
    """The other translations of a document, each once, and none that is empty."""
    most = max(map(len, lines), default=1)
    _, *others = dict.fromkeys(written(document, _nth(lines, number), pair) for number in range(most))
    return [text for text in others if text]


def _nth(lines: "Sequence[Sequence[Translation]]", number: int) -> "list[Translation]":
    """The translation of that number of each line, or the last where a line has fewer."""
    return [line[min(number, len(line) - 1)] for line in lines]


def _alignment(translation: "Translation") -> dict[str, Any]:
    """Words of source and target, and for each target word the weight of each source word and of the source's end."""
    soft = translation.soft_alignment
    assert soft is not None
    return {"source": soft.source_words, "target": soft.target_words, "weights": soft.rounded()}
