"""What a client asks for, a body in JSON or from a form, checked to the last field before any work begins; and what it
gets.

The fields are those of LibreTranslate (https://docs.libretranslate.com), and so are the messages where it has one;
`alignments` and the options of a translation are ours. It knows no HTTP but the type of a body, and that fields may
stand in an address too.
"""

import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple
from urllib.parse import parse_qsl

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, WithJsonSchema, model_validator
from pydantic_core import ErrorDetails, from_json
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import File, FormParser, parse_options_header

from nmt.data.corpus import text_of
from nmt.decoding.options import TranslationOptions
from nmt.decoding.text.languages import name_of
from nmt.documents.document import read_document, written
from nmt.documents.formats import FORMATS, Document
from nmt.errors import UserError, collected, refuse, shortened
from nmt.serving.limits import Detected, Detector, Limits, Pair, distance, matching

if TYPE_CHECKING:
    from nmt.decoding.translator import Translation
    from nmt.serving.models import Served

MOST_FIELDS = 100  # of a form
MOST_WEIGHTS = 1_000_000  # of alignments, if a line becomes as many words as it has; 50 times what is usual
MOST_TERMS = 10_000  # of a glossary
MOST_SHOWN = 40  # characters of a value, in messages
JSON, FORM, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
EXTENSIONS = {extension: name for name, kind in FORMATS.items() for extension in kind.extensions}
AUTO = "auto"  # in place of a source language
OF_TEXTS = ("alternatives", "alignments", "word_scores")  # what the answer to a file has no room for
OPTIONS = {field.name for field in dataclasses.fields(TranslationOptions)}
TERMS = {"type": "object", "additionalProperties": {"type": "string"}}  # of JSON Schema
STRINGS = {"type": "array", "items": {"type": "string"}}

logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # what clients do wrong is not for the log


def _texts(value: object) -> object:
    """With one message for all texts of a list, which may be a million."""
    if not (isinstance(value, str) or (isinstance(value, list) and all(isinstance(text, str) for text in value))):
        raise ValueError("must be a text, or a list of texts")
    return value


def _of_json_in_form(value: object) -> object:
    """What a text is in JSON, as OpenAPI has objects and lists in forms; a text that is no JSON, as it is."""
    with suppress(ValueError):
        return from_json(value) if isinstance(value, str) else value
    return value


IN_FORM = BeforeValidator(_of_json_in_form)


class Texts(BaseModel):
    """The fields of POST /detect. Unknown ones are ignored, as clients of other servers send them."""

    q: Annotated[str | list[str], BeforeValidator(_texts)] = Field(description="A text, or a list of texts.")
    api_key: Any = Field(None, description="Where the server wants one.")

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, raw: dict[str, Any], handler: Callable[[Any], Any]) -> Any:
        """What is empty in a form, or null, is as if it were not there. Raises UserError."""
        given = {name: value for name, value in raw.items() if value is not None and (value != "" or name == "q")}
        try:
            return handler(given)
        except ValidationError as error:
            raise UserError(*dict.fromkeys(map(_message, error.errors()))) from None

    @property
    def texts(self) -> list[str]:
        return [self.q] if isinstance(self.q, str) else self.q


class Fields(Texts):
    """The fields of POST /translate. One with the name of one of TranslationOptions is read by these."""

    source: str = Field(description="The code of a language, or auto.")
    target: str = Field(description="The code of a language.")
    format: Literal[tuple(FORMATS)] = "text"  # type: ignore[valid-type]
    alternatives: int = Field(0, description="How many other translations to add.")
    alignments: bool = Field(False, description="Whether to tell what each word was translated from.")
    word_scores: bool = Field(False, description="Whether to tell the log-probability of each word.")
    split_sentences: Annotated[bool | str, IN_FORM] = Field(
        True, description="Whether lines are translated sentence by sentence, or the language by whose rules they are."
    )
    glossary: Annotated[Any, IN_FORM, WithJsonSchema(TERMS)] = Field(
        None, description="Terms and their translations, instead of those that the server has."
    )
    forbidden: Annotated[Any, IN_FORM, WithJsonSchema(STRINGS)] = Field(
        None, description="Words and phrases that no translation has."
    )
    protect: Annotated[Any, IN_FORM, WithJsonSchema(STRINGS)] = Field(
        None, description="What stays as it is: placeholders, addresses, symbols, numbers, or regular expressions."
    )


class Kind(NamedTuple):
    """What lines must share to be translated together."""

    pair: Pair
    options: TranslationOptions
    weights: bool  # whether alignments are reported as weights too, those of the best translation


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """A request for translations that can be answered."""

    documents: Sequence[Document]
    characters: int
    is_list: bool  # whether q was a list, so that the answer is one
    detected: Detected | None  # the source language, if the client has left it open
    kind: Kind


def read_fields(body: bytes, content_type: str, query: bytes = b"") -> dict[str, Any]:
    """The fields of the `query` of an address and of a body, in JSON or a form; those of the body count more.

    Raises UserError.
    """
    fields = _of_form(query)
    kind = content_type.partition(";")[0].strip().lower()
    if kind == JSON:
        return {**fields, **_of_json(body)}
    if kind == MULTIPART:
        return {**fields, **_of_multipart(body, content_type)}
    if kind == FORM and body.lstrip().startswith(b"{"):  # as curl -d sends it
        raise UserError(f"the body looks like JSON, but its content-type is {FORM}; send content-type: {JSON}")
    if kind == FORM or not body:
        return {**fields, **_of_form(body)}
    raise UserError(f"content-type: must be {JSON}, {FORM}, or {MULTIPART}")


def _of_json(body: bytes) -> dict[str, Any]:
    try:
        fields = from_json(body.removeprefix(b"\xef\xbb\xbf"))  # a byte order mark
    except ValueError as error:
        raise UserError(f"the body is not JSON: {error}") from None
    if not isinstance(fields, dict):
        example = '{"q": "…", "source": "en", "target": "de"}'
        raise UserError(f"Invalid JSON format: the body must be an object, such as {example}")
    return fields


def _of_form(text: bytes) -> dict[str, Any]:
    try:
        return _each_once(
            parse_qsl(
                text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS, separator="&"
            )
        )
    except UnicodeDecodeError:
        raise UserError("the form is not UTF-8 in percent-encoding, as curl --data-urlencode sends it") from None
    except ValueError:
        raise UserError(f"the form has more than {MOST_FIELDS} fields") from None


def _of_multipart(body: bytes, content_type: str) -> dict[str, Any]:
    """The fields and files of a form in several parts (RFC 7578); nothing is written to the disk."""
    found: list[tuple[str, str | File]] = []
    ends: list[str] = []
    config = {"MAX_MEMORY_FILE_SIZE": len(body), "UPLOAD_ERROR_ON_BAD_CTE": True}

    def add(part: Any) -> None:
        value = part if isinstance(part, File) else (part.value or b"").decode()
        found.append((part.field_name.decode(), value))
        if len(found) > MOST_FIELDS:
            raise UserError(f"the form has more than {MOST_FIELDS} fields")

    try:
        boundary = parse_options_header(content_type)[1].get(b"boundary")
        FormParser(MULTIPART, add, add, lambda: ends.append(MULTIPART), boundary, config=config).write(body)
    except UnicodeDecodeError:
        raise UserError("the form is not UTF-8") from None
    except FormParserError as error:
        raise UserError(f"the body is no {MULTIPART}: {error}") from None
    if not ends:
        raise UserError(f"the body is no {MULTIPART}, or it is cut short: its last boundary is missing")
    return _each_once(found)


def _each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):  # of two texts one would go untranslated
        counts = Counter(name for name, _ in pairs)
        refuse([f"{name[:MOST_SHOWN]!r} is given more than once" for name, count in counts.items() if count > 1])
    return fields


def read_texts(raw: dict[str, Any], limits: Limits) -> list[str]:
    """The texts whose language is to be told. Raises UserError."""
    texts = Texts.model_validate(raw).texts
    refuse(["Invalid request: missing q parameter"] if not any(texts) else _too_large(texts, limits))
    return texts


def read_file_request(
    raw: dict[str, Any], models: "Served", limits: Limits, detector: Detector | None
) -> tuple[Request, PurePath]:
    """The request to translate a file, which may be as long as all texts of a request together, and its name.

    Raises UserError like `read_request`, and for what is no file in one of the formats.
    """
    file = raw.get("file")
    if not isinstance(file, File):
        raise UserError("Invalid request: missing file parameter")
    if not file.file_name:  # as browsers send what nobody has chosen
        raise UserError("Invalid request: empty file")
    path = PurePath(PurePath(file.file_name.decode(errors="replace")).name)
    if path.suffix.lower() not in EXTENSIONS:
        raise UserError(f"Invalid request: file format not supported; supported: {', '.join(EXTENSIONS)}")
    name = shortened(path.name, MOST_SHOWN)
    file.file_object.seek(0)
    text = text_of(file.file_object, name=name).removeprefix("\ufeff")
    fields = {**raw, "q": text, "format": EXTENSIONS[path.suffix.lower()], **dict.fromkeys(OF_TEXTS)}
    limits = dataclasses.replace(limits, characters=limits.characters * limits.texts)
    return read_request(fields, models, limits, detector, name=name), path


def read_request(
    raw: dict[str, Any], models: "Served", limits: Limits, detector: Detector | None, *, name: str = "q"
) -> Request:
    """The request in the fields `raw`. Raises UserError with everything that is wrong with them.

    `name` is what messages call the text.
    """
    fields = Fields.model_validate(raw)
    problems = _too_large(fields.texts, limits)
    documents: list[Document] = []
    for number, text in enumerate([] if problems else fields.texts):
        with collected(problems):
            called = f"{name}.{number}" if isinstance(fields.q, list) else name
            documents.append(read_document(text, format=fields.format, name=called))
    source = None if fields.source.lower() == AUTO else fields.source
    pairs = matching(source, fields.target, models.pairs)
    detected = None
    if not pairs:
        problems += _unsupported(source, fields.target, models.pairs)
    elif source is None:
        detected = _detected(documents, [pair.source for pair in pairs], detector, problems)
        pairs = [pair for pair in pairs if detected is not None and pair.source == detected.language]
    if pairs:
        problems += _unable(fields, pairs[0], models)
    refuse(problems)
    wishes = {name: getattr(fields, name) for name in fields.model_fields_set & OPTIONS}
    if wishes.get("split_sentences") is True:
        wishes["split_sentences"] = pairs[0].source  # as the server calls it
    if any(document.is_marked for document in documents):
        wishes["alignments"] = models.has_alignments(pairs[0])
    wishes["n_best"] = max(0, fields.alternatives) + 1
    return Request(
        documents=documents,
        characters=sum(map(len, fields.texts)),
        is_list=isinstance(fields.q, list),
        detected=detected,
        kind=models.kind(pairs[0], weights=fields.alignments, **wishes),
    )


def _message(problem: ErrorDetails) -> str:
    """LibreTranslate's, where it has one."""
    name = str(problem["loc"][0])
    if problem["type"] == "missing":
        return f"Invalid request: missing {name} parameter"
    if name == "alternatives":
        return "Invalid request: alternatives parameter is not a number"
    if name == "format":
        given = shortened(str(problem["input"]), MOST_SHOWN)
        return f"{given} format is not supported; supported: {', '.join(FORMATS)}"
    return f"Invalid request: {name} parameter {problem['msg'].removeprefix('Value error, ')}"


def _too_large(texts: Sequence[str], limits: Limits) -> list[str]:
    sizes = [(len(texts), limits.texts), (max(map(len, texts), default=0), limits.characters)]
    return [f"Invalid request: request ({size}) exceeds text limit ({most})" for size, most in sizes if size > most]


def _unsupported(source: str | None, target: str, pairs: Sequence[Pair]) -> list[str]:
    """Why none of the pairs is what is asked for."""
    served = {code for pair in pairs for code in pair}
    asked = [code for code in (source, target) if code is not None]
    unknown = [code for code in asked if all(distance(code, one) is None for one in served)]
    if unknown:
        return [f"{shortened(code, MOST_SHOWN)} is not supported" for code in unknown]
    names = [f"{name_of(code)} ({code})" for code in reversed(asked)]
    return [" from ".join([f"{names[0]} is not available as a target language", *names[1:]])]


def _detected(
    documents: Iterable[Document], sources: Sequence[str], detector: Detector | None, problems: list[str]
) -> Detected | None:
    """The most likely of the source languages; a single one needs no detector."""
    lines = [line for document in documents for line in document.lines]
    found = detector.languages(lines) if detector is not None else []
    found += [Detected(sources[0], 0)] if len(set(sources)) == 1 else []
    likely = [one for one in found if one.language in sources]
    if not likely:
        names = " and ".join(dict.fromkeys(sources))
        problems.append(f"source is auto, but {names} can be translated; choose one, or install the extra detect there")
    return likely[0] if likely else None


def _unable(fields: Fields, pair: Pair, models: "Served") -> list[str]:
    """What of the request the model for the pair cannot give, and what is too much."""
    problems = []
    if isinstance(fields.glossary, Mapping) and len(fields.glossary) > MOST_TERMS:
        problems.append(f"Invalid request: glossary parameter must have at most {MOST_TERMS:,} terms")
    if fields.alternatives >= (most := models.most(pair)):
        problems.append(f"Invalid request: alternatives parameter must be <= {most - 1}")
    if fields.alignments and not models.has_alignments(pair):
        problems.append(f"alignments: the model for {pair} has no attention to read them from")
    if fields.alignments and fields.format != "text":
        problems.append(f"alignments go with format text, not {fields.format}")
    sizes = [len(line.split()) for text in fields.texts for line in text.split("\n")] if fields.alignments else []
    if (weights := sum(size**2 for size in sizes)) > MOST_WEIGHTS:
        problems.append(f"alignments would have {weights} weights, at most {MOST_WEIGHTS} are allowed: send less")
    return problems


def answer_to(request: Request, translations: "Sequence[Sequence[Translation]]") -> dict[str, Any]:
    """What a client gets, as LibreTranslate has it, from the translations of the lines of all documents."""
    left, (pair, options, weights) = iter(translations), request.kind
    has = {"translatedText": True, "detectedLanguage": request.detected is not None}
    has |= {"alternatives": options.n_best > 1, "alignments": weights, "wordScores": options.word_scores}
    answer: dict[str, list[Any]] = {name: [] for name, is_there in has.items() if is_there}
    for document in request.documents:
        lines = [next(left) for _ in document.lines]
        ranks = range(max(map(len, lines), default=1))  # where a line has fewer, its last one stands again
        ranked = ([line[min(rank, len(line) - 1)] for line in lines] for rank in ranks)
        text, *others = dict.fromkeys(written(document, of_rank, pair) for of_rank in ranked)
        soft = [one for line in lines if weights and (one := line[0].soft_alignment) is not None]
        values = {
            "translatedText": text,
            "detectedLanguage": request.detected and request.detected._asdict(),
            "alternatives": [other for other in others if other],
            "alignments": [  # for each target word the weights of the source words, and of the source's end
                {"source": one.source_words, "target": one.target_words, "weights": one.rounded()} for one in soft
            ],
            "wordScores": [line[0].word_scores.rounded() for line in lines if line[0].word_scores is not None],
        }
        for name, several in answer.items():
            several.append(values[name])
    return answer if request.is_list else {name: several[0] for name, several in answer.items()}
