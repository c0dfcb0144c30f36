"""The page of nmt-eval: the outcome of a comparison → forced decoding for attention → the file.

Wiring only. NumPy and Jinja2 are imported when the page is written: everyday scores need not wait for them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.common import watched
from nmt.cli.outputs import write_text
from nmt.data.corpus import read_lines
from nmt.evaluation.comparison import Comparison
from nmt.ops.memory import enough_memory

if TYPE_CHECKING:
    from nmt.decoding.options import TranslationOptions
    from nmt.decoding.translator import Translator

MEMORY = "shorten the longest lines"
MOST_WEIGHTS = 12_000_000  # characters of packed weights on a page

Pair = tuple[str, str]  # a line of the source, and its translation


@enough_memory(MEMORY)
def write_page(
    path: str,
    comparison: Comparison,
    translators: Mapping[str, "Translator"],
    how: "TranslationOptions | None",
    *,
    training_text: Path | None,
) -> None:
    """Write the page of a comparison.

    `translators`: by system, the model whose attention is shown, if it translated as `how` says. `training_text`: the
    text whose rare words are looked at.
    """
    from nmt.evaluation.page.contents import contents
    from nmt.evaluation.page.render import page

    attention: dict[str, list[str | None]] = {}
    attentive = {name: one for name, one in translators.items() if one.scorer.without_alignments is None}
    for candidate in comparison.systems:
        if (translator := attentive.get(candidate.name)) is None:
            continue
        pairs = list(zip(comparison.source or (), candidate.hypotheses, strict=True))
        attention[candidate.name] = _attention(translator, pairs, how, MOST_WEIGHTS // len(attentive))
    training = None if training_text is None else read_lines(training_text)
    write_text(path, page(contents(comparison, attention=attention, training=training)))


def _attention(
    translator: "Translator", pairs: Sequence[Pair], how: "TranslationOptions | None", most: int
) -> list[str | None]:
    """The packed weights of the pairs of source and translation that the page lists, as the model attends when it is
    made to write them, until there are so many characters; None of the others."""
    from nmt.decoding.options import TranslationOptions
    from nmt.decoding.scoring import score  # only here: scoring files needs no PyTorch
    from nmt.evaluation.page.contents import LISTED, packed, shown

    weights: list[str | None] = [None] * len(pairs)
    chosen = [place for place, pair in enumerate(pairs[:LISTED]) if all(shown(line).is_whole for line in pair)]
    options = replace(how or TranslationOptions(), alignments=True)
    scores = score(translator, (pairs[place] for place in chosen), options)
    shown_scores = watched(scores, "sentences", total=len(chosen), label="attention")
    for place, scored in zip(chosen, shown_scores, strict=True):
        assert scored.alignment is not None
        rows = scored.alignment.weights
        source, line = pairs[place]
        # The page's words are what stands between spaces; a vocabulary of cut words joins some.
        if tuple(rows.shape) == (len(line.split()), len(source.split()) + 1):
            text = packed(rows)
            most -= len(text)
            if most < 0:
                break
            weights[place] = text
    return weights
