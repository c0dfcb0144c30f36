"""The page of nmt-eval: what is to be on it besides the scores; and the outcome of a comparison → forced decoding for
attention → the file.

Wiring only. NumPy and Jinja2 are imported when the page is written: everyday scores need not wait for them.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tqdm import tqdm

from nmt.cli.models import Models, read_models
from nmt.cli.outputs import STANDARD, Files, is_device, write_text
from nmt.config.schema import AlignmentStep
from nmt.data.corpus import read_lines
from nmt.errors import UserError, collected
from nmt.evaluation.comparison import Comparison
from nmt.ops.memory import enough_memory

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator

MEMORY = "leave out --attention-model, or shorten the longest lines"
MOST_WEIGHTS = 12_000_000  # characters of packed weights on a page

Pair = tuple[str, str]  # a line of the source, and its translation


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """The page to write, and what it shows besides the scores."""

    attention_model: Models | None  # for translations that come from files
    alignment_step: AlignmentStep
    command: argparse.Namespace  # what else it was given

    @property
    def files(self) -> Files:
        """The files to read, with their options."""
        models = [] if self.attention_model is None else self.attention_model.paths
        return [("--training-text", self.command.training_text), *(("--attention-model", path) for path in models)]


def read_report_request(options: argparse.Namespace, step: AlignmentStep, problems: list[str]) -> ReportRequest:
    """Read what the page shows."""
    if options.report == STANDARD:
        problems.append("--report -: standard output has the scores; give a file")
    models = None
    if options.attention_model is not None:
        if not options.source:
            problems.append("--attention-model needs --source FILE, the text that was translated")
        computing = {"model": [options.attention_model], "device": options.device, "ensemble": None}
        models = read_models(computing, problems)
    with collected(problems):
        # Of a pipe, which can be read only once, mistakes are met later.
        text = options.training_text
        if text is not None and not is_device(text) and not sum(1 for _ in read_lines(text)):
            problems.append(f"--training-text {text}: the file is empty")
    return ReportRequest(attention_model=models, alignment_step=step, command=options)


def check_attention(report: ReportRequest, translators: Mapping[str, "Translator"]) -> None:
    """Raise UserError where attention was asked for, and the models, by system, have none."""
    lacking = [one.scorer.without_attention for one in translators.values()]
    if report.attention_model is not None and translators and all(lacking):
        raise UserError(f"--attention-model {report.attention_model.paths[0]}: {lacking[0]}")


@enough_memory(MEMORY)
def write_page(
    request: ReportRequest,
    comparison: Comparison,
    *,
    tokenize: str,
    lowercase: bool,
    translators: Mapping[str, "Translator"],
) -> None:
    """Write the page. `translators`: by system, the model whose attention is shown."""
    from nmt.evaluation.page.contents import contents
    from nmt.evaluation.page.render import page

    attention: dict[str, list[str | None]] = {}
    attentive = {name: one for name, one in translators.items() if one.scorer.without_alignments is None}
    for candidate in comparison.systems:
        if (translator := attentive.get(candidate.name)) is None:
            continue
        pairs = list(zip(comparison.source or (), candidate.hypotheses, strict=True))
        attention[candidate.name] = _attention(request, translator, pairs, MOST_WEIGHTS // len(attentive))
    text = request.command.training_text
    made = contents(
        comparison,
        tokenize=tokenize,
        lowercase=lowercase,
        attention=attention,
        training=None if text is None else read_lines(text),
    )
    write_text(request.command.report, page(made))


def _attention(request: ReportRequest, translator: "Translator", pairs: Sequence[Pair], most: int) -> list[str | None]:
    """The packed weights of the pairs of source and translation that the page lists, as the model attends when it is
    made to write them, until there are so many characters; None of the others."""
    from nmt.decoding.scoring import score  # only here: scoring files needs no PyTorch
    from nmt.evaluation.page.contents import LISTED, packed

    weights: list[str | None] = [None] * len(pairs)
    chosen = [place for place, pair in enumerate(pairs[:LISTED]) if all(map(_shown_whole, pair))]
    scores = score(
        translator.scorer,
        translator.vocabularies,
        (pairs[place] for place in chosen),
        batch_tokens=translator.decoding.batch_tokens,
        alignments=True,
        alignment_step=request.alignment_step,
    )
    watched = tqdm(scores, total=len(chosen), desc="attention", unit=" sentences", disable=None)
    for place, scored in zip(chosen, watched, strict=True):
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


def _shown_whole(line: str) -> bool:
    """Whether a line has words, and the page shows all of them."""
    from nmt.evaluation.page.contents import shown

    text = shown(line)
    return bool(text.text) and not text.omitted
