"""What a client asks for: a body in JSON or from a form, checked to the last field before any work begins.

The fields are those of LibreTranslate's POST /translate (https://docs.libretranslate.com), and `alignments`, which is
ours. It knows no HTTP but the type of a body, and that fields may stand in an address too.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

from pydantic import BaseModel, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import from_json

from nmt.documents.formats import Format
from nmt.errors import UserError, refuse
from nmt.serving.limits import Limits, Pair

if TYPE_CHECKING:
    from nmt.serving.models import Served

MOST_FIELDS = 100  # of a form
MOST_WEIGHTS = 1_000_000  # of alignments, if a line becomes as many words as it has; 50 times what is usual
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


class Fields(BaseModel):
    """The fields of a request; unknown ones are ignored, as clients of other servers send them."""

    q: list[str]
    source: str = Field(min_length=1)
    target: str = Field(min_length=1)
    format: Format = "text"
    alternatives: int = Field(0, ge=0, lt=1000)
    alignments: bool = False

    @field_validator("q", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        if not isinstance(value, str | list):
            raise ValueError("must be a text, or a list of texts")
        return [value] if isinstance(value, str) else value

    @field_validator("format", "alternatives", "alignments", mode="before")
    @classmethod
    def _default_if_empty(cls, value: Any, info: ValidationInfo) -> Any:
        assert info.field_name is not None
        return cls.model_fields[info.field_name].default if value in (None, "") else value


class Kind(NamedTuple):
    """What lines must share to be translated together."""

    pair: Pair
    n_best: int
    alignments: bool
    weights: bool = False  # whether alignments are reported as weights too, those of the best translation


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
    """The fields of the `query` of an address and of a body, in JSON or a form; those of the body count more.

    Raises UserError.
    """
    fields = _of_form(query)
    kind = content_type.partition(";")[0].strip().lower()
    if kind == JSON:
        try:
            in_body = from_json(body.removeprefix(b"\xef\xbb\xbf"))  # a byte order mark
        except ValueError as error:
            raise UserError(f"the body is not JSON: {error}") from None
        if not isinstance(in_body, dict):
            raise UserError('the body must be a JSON object, such as {"q": "…", "source": "en", "target": "de"}')
        return {**fields, **in_body}
    if kind == FORM and body.lstrip().startswith(b"{"):  # as curl -d sends it
        raise UserError(f"the body looks like JSON, but its content-type is {FORM}; send content-type: {JSON}")
    if kind == FORM or not body:
        return {**fields, **_of_form(body)}
    raise UserError(f"content-type: must be {JSON} or {FORM}")


def _of_form(text: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(
            text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS, separator="&"
        )
    except UnicodeDecodeError:
        raise UserError("the form is not UTF-8 in percent-encoding") from None
    except ValueError:
        raise UserError(f"the form has more than {MOST_FIELDS} fields") from None
    fields = dict(pairs)
    if len(fields) < len(pairs):  # of two texts one would go untranslated
        counts = Counter(name for name, _ in pairs)
        refuse([f"{name[:40]!r} is given more than once" for name, count in counts.items() if count > 1])
    return fields


def read_request(raw: dict[str, Any], models: "Served", limits: Limits) -> Request:
    """The request in the fields `raw`. Raises UserError with everything that is wrong with them."""
    try:
        fields = Fields.model_validate(raw)
    except ValidationError as error:
        raise UserError(
            *(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
        ) from None
    problems = []
    if len(fields.q) > limits.texts:
        problems.append(f"q has {len(fields.q)} texts; at most {limits.texts} are translated at once")
    for number, text in enumerate(fields.q):
        if len(text) > limits.characters:
            problems.append(f"q.{number} has {len(text)} characters; at most {limits.characters} are translated")
    pair = _pair(fields, models.pairs, problems)
    if pair is not None and fields.alternatives >= (most := models.most(pair)):
        problems.append(f"alternatives is {fields.alternatives}; this server has at most {most - 1} for {pair}")
    if fields.alignments:
        if pair is not None and not models.has_alignments(pair):
            problems.append(f"alignments: the model for {pair} has no attention to read them from")
        if fields.format != "text":
            problems.append(f"alignments go with format text, not {fields.format}")
        if (weights := sum(len(line.split()) ** 2 for text in fields.q for line in text.split("\n"))) > MOST_WEIGHTS:
            problems.append(f"alignments would have {weights} weights, at most {MOST_WEIGHTS} are allowed: send less")
    refuse(problems)
    assert pair is not None
    return Request(
        texts=fields.q,
        is_list=isinstance(raw["q"], list),
        pair=pair,
        is_auto=fields.source.lower() == "auto",
        format=fields.format,
        alternatives=fields.alternatives,
        alignments=fields.alignments,
    )


def _pair(fields: Fields, pairs: Sequence[Pair], problems: list[str]) -> Pair | None:
    """The pair that is asked for, in upper or lower case; source "auto" is the only one for the target."""
    if fields.source.lower() != "auto":
        pair = Pair(fields.source, fields.target).among(pairs)
    else:
        sources = [pair for pair in pairs if pair.target.lower() == fields.target.lower()]
        if len(sources) > 1:
            names = " and ".join(pair.source for pair in sources)
            problems.append(f"source is auto, but {names} can be translated; choose one")
            return None
        pair = sources[0] if sources else None
    if pair is None:
        asked = f"{fields.source[:40]!r} → {fields.target[:40]!r}"
        problems.append(f"{asked} is not translated here; this server translates {', '.join(map(str, pairs))}")
    return pair
