"""What a client asks for: a body in JSON or from a form, checked to the last field before any work begins.

The fields are those of LibreTranslate's POST /translate (https://docs.libretranslate.com), and `alignments`, which is
ours. It knows no HTTP but the type of a body, and that forms may stand in an address too.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

from nmt.data.corpus import half_of_a_pair
from nmt.documents.formats import FORMATS, Format
from nmt.errors import Checking, UserError
from nmt.serving.languages import Pair
from nmt.serving.limits import Limits

if TYPE_CHECKING:
    from nmt.serving.models import Served

FIELDS = frozenset({"q", "source", "target", "format", "alternatives", "alignments", "api_key"})
MOST_FIELDS = 100  # of a form
MOST_SHOWN = 40  # characters of a wrong value
MOST_WEIGHTS = 1_000_000  # of alignments, if a line becomes as many words as it has; 50 times what is usual
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


class Kind(NamedTuple):
    """What lines must share to be translated together."""

    pair: Pair
    n_best: int
    alignments: bool
    weights: bool = False  # whether alignments are told as weights too, those of the best translation


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request for translations that can be answered."""

    texts: Sequence[str]
    is_list: bool  # whether q was a list, so that the answer is one
    pair: Pair
    is_auto: bool  # whether the client has left open what the source is
    format: Format
    alternatives: int
    alignments: bool


def read_fields(body: bytes, content_type: str, query: bytes = b"") -> dict[str, Any]:
    """The fields of a body in JSON, or of a form and the `query` of the address together.

    Raises UserError, also for fields beside JSON in the address: they would have no effect.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == JSON:
        if misplaced := FIELDS & {name for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True)}:
            which = ", ".join(sorted(misplaced))
            raise UserError(f"{which} in the address: the body is JSON, and has all fields; put {which} there")
        return _of_json(body)
    if kind == FORM and body.lstrip().startswith(b"{"):  # as curl -d sends it
        raise UserError(f"the body looks like JSON, but its content-type is {FORM}; send content-type: {JSON}")
    if kind == FORM or not body:
        return _of_form(b"&".join(filter(None, (query, body))))
    raise UserError(f"a body of type {shown(kind)} cannot be read; send {JSON} or {FORM}")


def _of_json(body: bytes) -> dict[str, Any]:
    try:
        text = body.decode("utf-8").removeprefix("\ufeff")  # a byte order mark
        fields = json.loads(text, object_pairs_hook=_each_once)
    except UnicodeDecodeError as error:
        raise UserError(f"the body is not UTF-8: byte {error.start} is {body[error.start]:#04x}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"the body is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise UserError('the body must be a JSON object, such as {"q": "…", "source": "en", "target": "de"}')
    return fields


def _of_form(body: bytes) -> dict[str, Any]:
    try:
        text = body.decode("ascii")
        fields = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except UnicodeDecodeError:
        raise UserError("the form is not UTF-8 in percent-encoding") from None
    except ValueError:
        raise UserError(f"the form has more than {MOST_FIELDS} fields") from None
    return _each_once(fields)


def _each_once(fields: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The fields by their names. Raises UserError for names that several of them have."""
    twice = [name for name, count in Counter(name for name, _ in fields).items() if count > 1]
    if twice:
        raise UserError(*(f"{shown(name)} is given more than once" for name in sorted(twice)))
    return dict(fields)


def read_request(fields: Mapping[str, Any], models: "Served", limits: Limits) -> Checking[Request]:
    """Check the fields of a request; unknown ones are ignored, as clients of other servers send them."""
    texts = yield from _texts(fields.get("q"), limits)
    pair = yield from _pair(fields, models)
    markup = yield from _format(fields.get("format"))
    alternatives = yield from _alternatives(fields.get("alternatives"))
    alignments = yield from _alignments(fields.get("alignments"))
    if pair is not None and alternatives >= (most := models.most(pair)):
        yield f"alternatives is {shown(alternatives)}; this server has at most {most - 1} for {pair}"
    if pair is not None and alignments and not models.has_alignments(pair):
        yield f"alignments: the model for {pair} has no attention to read them from"
    if alignments and markup != "text":
        yield f"alignments go with format text, not {markup}"
    elif alignments and (weights := _weights(texts)) > MOST_WEIGHTS:
        yield f"alignments of these lines would have {weights} weights; at most {MOST_WEIGHTS} are told: send less"
    return Request(
        texts=texts,
        is_list=isinstance(fields.get("q"), list),
        pair=pair or Pair("", ""),
        is_auto=_is_auto(fields.get("source")),
        format=markup,
        alternatives=alternatives,
        alignments=alignments,
    )


def _texts(value: object, limits: Limits) -> Checking[list[str]]:
    """The texts of q, without those that may not be translated."""
    if value is None:
        yield "q is missing: a text, or a list of texts"
        return []
    texts = value if isinstance(value, list) else [value]
    if len(texts) > limits.texts:
        yield f"q has {len(texts)} texts; at most {limits.texts} are translated at once"
        return []
    right = []
    for number, text in enumerate(texts, 1):
        which = f"text {number} of q" if isinstance(value, list) else "q"
        if not isinstance(text, str):
            yield f"{which} is {shown(text)}; it must be a text"
        elif len(text) > limits.characters:
            yield f"{which} has {len(text)} characters; at most {limits.characters} are translated"
        elif (surrogate := half_of_a_pair(text)) is not None:
            yield f"{which} is no text: its character {surrogate + 1} is half of a surrogate pair"
        else:
            right.append(text)
    return right


def _weights(texts: Sequence[str]) -> int:
    """How many weights the alignments have, if each line becomes as many words as it has."""
    return sum(len(line.split()) ** 2 for text in texts for line in text.split("\n"))


def _pair(fields: Mapping[str, Any], models: "Served") -> Checking[Pair | None]:
    """The pair that is asked for, in either case, if a model has it; source "auto" is the only one for the target."""
    codes = {name: fields.get(name) for name in ("source", "target")}
    for name, code in codes.items():
        if not isinstance(code, str) or not code:
            value = "missing" if code in (None, "") else shown(code)
            yield f"{name} is {value}: the code of a language, such as {models.pairs[0].source}"
    source, target = codes["source"], codes["target"]
    if not (isinstance(source, str) and source and isinstance(target, str) and target):
        return None
    there = ", ".join(map(str, models.pairs))
    if _is_auto(source):
        sources = [pair for pair in models.pairs if pair.target.lower() == target.lower()]
        if len(sources) > 1:
            yield f"source is auto, but {' and '.join(pair.source for pair in sources)} can be translated; choose one"
        elif not sources:
            yield f"target is {shown(target)}; this server translates {there}"
        return sources[0] if len(sources) == 1 else None
    if (pair := Pair(source, target).among(models.pairs)) is not None:
        return pair
    yield f"{shown(source)} → {shown(target)} is not translated here; this server translates {there}"
    return None


def _is_auto(source: object) -> bool:
    return isinstance(source, str) and source.lower() == "auto"


def _format(value: object) -> Checking[Format]:
    for name in FORMATS:
        if value == name:
            return name
    if value not in (None, ""):
        yield f"format is {shown(value)}; it must be one of {', '.join(FORMATS)}"
    return "text"


def _alternatives(value: object) -> Checking[int]:
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 9 else value
    if isinstance(number, int) and not isinstance(number, bool) and number >= 0:
        return number
    if value not in (None, ""):
        yield f"alternatives is {shown(value)}; it must be a whole number, at least 0"
    return 0


def _alignments(value: object) -> Checking[bool]:
    words = {None: False, "": False, "false": False, "true": True}
    if isinstance(value, bool):
        return value
    if value is None or (isinstance(value, str) and value in words):
        return words[value]
    yield f"alignments is {shown(value)}; it must be true or false"
    return False


def shown(value: object) -> str:
    """A wrong value in a message: short, whatever it is."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):  # a number of thousands of digits
        return f"a very long {type(value).__name__}"
    text = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
    return json.dumps(text, ensure_ascii=False) if isinstance(value, str) else text
