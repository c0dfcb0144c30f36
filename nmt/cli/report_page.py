"""The page of nmt-eval: the outcome of a comparison → forced decoding for attention → the file.

Wiring only, and apart from the options: NumPy and Jinja2, which it imports, take time that everyday scores need not.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from tqdm import tqdm

from nmt.cli.evaluate_report import ReportRequest
from nmt.cli.outputs import write_text
from nmt.config.schema import AlignmentStep
from nmt.data.corpus import read_lines
from nmt.evaluation.alignments import AlignmentScores, alignment_scores
from nmt.evaluation.comparison import Comparison
from nmt.evaluation.page.attention import packed
from nmt.evaluation.page.contents import LISTED, contents
from nmt.evaluation.page.render import page
from nmt.evaluation.page.texts import shown
from nmt.ops.memory import enough_memory

if TYPE_CHECKING:
    from nmt.decoding.scoring import Scored
    from nmt.decoding.translator import Translator

MEMORY = "leave out --attention-model, or shorten the longest lines"
MOST_WEIGHTS = 12_000_000  # characters of packed weights on a page


@enough_memory(MEMORY)
def write_page(
    request: ReportRequest,
    comparison: Comparison,
    *,
    tokenize: str,
    lowercase: bool,
    translators: Mapping[str, "Translator"],
    alignment_step: AlignmentStep,
) -> None:
    """Write the page. `translators`: by system, the model whose attention is shown."""
    attention: dict[str, list[str | None]] = {}
    errors: dict[int, AlignmentScores] = {}  # by model: several systems may have the same
    attentive = {name: one for name, one in translators.items() if not [*one.scorer.no_alignments()]}
    for candidate in comparison.systems:
        if candidate.name not in attentive:
            continue
        translator = attentive[candidate.name]
        most = MOST_WEIGHTS // len(attentive)
        attention[candidate.name] = _attention(translator, comparison, candidate.hypotheses, alignment_step, most)
        if request.gold and id(translator) not in errors:
            scores = _forced(translator, comparison, comparison.references[0], alignment_step)
            links = [scored.alignment.links for scored in scores if scored.alignment is not None]
            errors[id(translator)] = alignment_scores(links, request.gold)
    made = contents(
        comparison,
        tokenize=tokenize,
        lowercase=lowercase,
        attention=attention,
        alignments={name: errors[id(one)] for name, one in attentive.items() if id(one) in errors},
        training=None if request.training_text is None else read_lines(request.training_text),
    )
    write_text(request.path, page(made))


def _attention(
    translator: "Translator", comparison: Comparison, lines: Sequence[str], step: AlignmentStep, most: int
) -> list[str | None]:
    """The packed weights of the pairs that the page lists, until there are so many characters; None of the others."""
    assert comparison.source is not None
    weights: list[str | None] = [None] * len(lines)
    listed = islice(enumerate(zip(comparison.source, lines, strict=True)), LISTED)
    chosen = {place: pair for place, pair in listed if all(map(_shown_whole, pair))}
    scores = _forced(translator, comparison, lines, step, places=[*chosen])
    watched = tqdm(scores, total=len(chosen), desc="attention", unit=" sentences", disable=None)
    for (place, (source, line)), scored in zip(chosen.items(), watched, strict=True):
        assert scored.alignment is not None
        rows = scored.alignment.weights
        # The page's words are what stands between spaces; a vocabulary of cut words joins some.
        if tuple(rows.shape) == (len(line.split()), len(source.split()) + 1):
            text = packed(rows.numpy())
            most -= len(text)
            if most < 0:
                break
            weights[place] = text
    return weights


def _forced(
    translator: "Translator",
    comparison: Comparison,
    lines: Sequence[str],
    step: AlignmentStep,
    *,
    places: Sequence[int] | None = None,
) -> Iterator["Scored"]:
    """What the model says of the lines, or of those in some places, as translations of the source."""
    from nmt.decoding.scoring import score  # only here: scoring files needs no PyTorch

    assert comparison.source is not None
    chosen = range(len(lines)) if places is None else places
    return score(
        translator.scorer,
        translator.vocabularies,
        ((comparison.source[place], lines[place]) for place in chosen),
        batch_tokens=translator.decoding.batch_tokens,
        alignments=True,
        alignment_step=step,
    )


def _shown_whole(line: str) -> bool:
    """Whether a line has words, and the page shows all of them."""
    text = shown(line)
    return bool(text.text) and not text.omitted
