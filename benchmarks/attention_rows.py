"""The rows of the attention table: what each one sets in the configuration, and what Luong et al. published for it.

It knows names and options; it trains nothing and reads no files. Luong, Pham & Manning (2015), arXiv 1508.04025.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nmt.config.schema import OrderName
from nmt.errors import UserError
from nmt.models.decoders import DECODERS
from nmt.models.scores import SCORES

LOCAL_SCOPES = ("local-m", "local-p")
LOCAL_SCORES = ("dot", "general", "scaled_general")  # the paper's table has the first two


class Row(NamedTuple):
    """One model of the table."""

    score: str
    scope: str = "global"
    decoder: str = "luong"
    input_feeding: bool = True  # for luong; the cells of the other decoders read the context instead
    order: OrderName = "authors"  # for bahdanau

    @property
    def kind(self) -> str:
        """The decoder, with the order that it does not usually have."""
        return self.decoder if self.order == "authors" else f"{self.decoder}-{self.order}"

    @property
    def name(self) -> str:
        """Such as global-dot, local-p-general-no-feeding, none or bahdanau-paper-global-additive; a folder's name."""
        attention = self.score if self.score == "none" else f"{self.scope}-{self.score}"
        decoder = "" if self.decoder == "luong" else f"{self.kind}-"
        return f"{decoder}{attention}{'' if self.input_feeding else '-no-feeding'}"

    @property
    def title(self) -> str:
        """Such as "global, dot", for people."""
        words = [] if self.score == "none" else [self.scope]
        words += ["no attention" if self.score == "none" else self.score]
        words += [] if self.decoder == "luong" else [self.kind]
        return ", ".join([*words, *([] if self.input_feeding else ["no feeding"])])

    @property
    def overrides(self) -> list[str]:
        """What the row sets, as values of nmt-train's --set."""
        keys = [f"attention.score={self.score}", f"attention.scope={self.scope}", f"decoder.type={self.decoder}"]
        if not self.input_feeding:
            keys.append("decoder.input_feeding=false")
        if self.order != "authors":
            keys.append(f"decoder.order={self.order}")
        if self.score == "fixed":  # which goes with one direction only, whose states are too small to be copied
            keys += ["encoder.bidirectional=false", "decoder.initial_state=final"]
        return [f"model.{key}" for key in keys]


def _rows() -> Iterator[Row]:
    """In order of training: Luong's decoder with every score and then with the local scopes; the other decoders with
    the score of their papers, Bahdanau's in both orders; and Luong's again without input feeding. `fixed`, which needs
    another encoder, is not among them."""
    attentions = [("none", "global"), *((score, "global") for score in SCORES if score not in ("none", "fixed"))]
    attentions += [(score, scope) for scope in LOCAL_SCOPES for score in LOCAL_SCORES]
    yield from (Row(score, scope) for score, scope in attentions)
    yield from (Row("additive", decoder=decoder) for decoder in DECODERS if decoder != "luong")
    yield Row("additive", decoder="bahdanau", order="paper")
    yield from (Row(score, scope, input_feeding=False) for score, scope in attentions)


ROWS = {row.name: row for row in _rows()}


def chosen(names: str | None, *, option: str = "--rows") -> list[Row]:
    """The rows with these comma-separated names; None: all rows. Raises UserError for unknown names."""
    distinct = list(ROWS) if names is None else list(dict.fromkeys(name.strip() for name in names.split(",")))
    if unknown := [name for name in distinct if name not in ROWS]:
        raise UserError(f"{option} {names}: no row is called {', '.join(map(repr, unknown))}; rows: {', '.join(ROWS)}")
    return [ROWS[name] for name in distinct]


class Published(NamedTuple):
    """A row of Luong et al.'s Table 4, newstest2014; None: training did not converge."""

    row: str  # the name of our row, always with input feeding
    perplexity: str
    before: float | None  # BLEU before unknown words are replaced
    after: float | None


PUBLISHED = (
    Published("global-location", "6.4", 18.1, 19.3),
    Published("global-dot", "6.1", 18.6, 20.5),
    Published("global-general", "6.1", 17.3, 19.1),
    Published("local-m-dot", "> 7.0", None, None),
    Published("local-m-general", "6.2", 18.6, 20.4),
    Published("local-p-dot", "6.6", 18.0, 19.6),
    Published("local-p-general", "5.9", 19.0, 20.9),
)


class Order(NamedTuple):
    """Two rows that Luong et al. measured, the better one first, and how much more BLEU it has there."""

    better: str
    worse: str
    published: float


def _orders() -> Iterator[Order]:
    """What attention and input feeding bring in the paper's Table 1, and all pairs of its Table 4 but for ties."""
    yield Order("global-location-no-feeding", "none-no-feeding", 2.8)  # 14.0 -> 16.8
    yield Order("global-location", "global-location-no-feeding", 1.3)  # 16.8 -> 18.1
    converged = [(row, before) for row, _, before, _ in PUBLISHED if before is not None]
    converged.sort(key=lambda pair: -pair[1])
    for index, (better, high) in enumerate(converged):
        yield from (Order(better, worse, high - low) for worse, low in converged[index + 1 :] if low < high)


ORDERS = tuple(_orders())


class Choice(NamedTuple):
    """Two rows that differ in one option alone."""

    option: str
    row: str
    plain: str  # the row with the plain value of the option


_PLAIN = {"score": "dot", "scope": "global", "input feeding": False, "decoder": "luong", "order": "authors"}


def _choices() -> Iterator[Choice]:
    """Every row beside the one with the plain value of an option, where there is such a row."""
    for option, value in _PLAIN.items():
        for name, row in ROWS.items():
            plain = Row(**row._asdict() | {option.replace(" ", "_"): value})
            if plain != row and ROWS.get(plain.name) == plain:
                yield Choice(option, name, plain.name)


CHOICES = tuple(_choices())

_IN_PAPER = [*(published.row for published in PUBLISHED), *(row for order in ORDERS for row in order[:2])]
REPEATED = (*dict.fromkeys(_IN_PAPER), "global-additive", "conditional_gru-global-additive", "none")
"""The rows whose order is in question, which are worth several seeds."""


def concordance(pairs: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """How many pairs of rows both columns put in the same order, out of how many without ties."""
    signs = [
        (first[0] - second[0]) * (first[1] - second[1]) for index, first in enumerate(pairs) for second in pairs[:index]
    ]
    return sum(sign > 0 for sign in signs), sum(sign != 0 for sign in signs)
