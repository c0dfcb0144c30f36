"""Warnings about a training: what can hardly be meant, or can hardly work. They stop nothing."""

from collections.abc import Iterator
from itertools import islice

from nmt.config import Config
from nmt.config.contradictions import doubts
from nmt.data.corpus import read_lines
from nmt.data.planning import unfilled
from nmt.data.preparation import Prepared
from nmt.data.subwords import Subwords
from nmt.errors import counted
from nmt.evaluation.text_warnings import format_warnings, normalized_warning
from nmt.experiment.request import Request
from nmt.models.combinations import start_warnings
from nmt.symbols import UNKNOWN
from nmt.training.finetuning import language_warning
from nmt.training.scheduled_sampling import late

FIRST_LINES = 1000  # of a file, that tell how all are written
TAGGED = 0.01  # of these
UNMEASURED = "there is no guided loss to measure"


def doubts_of_start(request: Request) -> Iterator[str]:
    """Of the configuration, and of weights from which a model hardly learns; those of another model have learned."""
    yield from doubts(request.config)
    if request.origin is not None:
        if (other := language_warning(request.config, request.origin)) is not None:
            yield other
        return
    yield from start_warnings(request.config.model, request.config.training)
    if request.config.training.minimum_risk is not None:
        yield (
            "training.minimum_risk learns from translations of the model, which mean nothing at first; give a trained "
            "model with --init-from"
        )


def doubts_of_corpora(config: Config, prepared: Prepared) -> Iterator[str]:
    """Of the texts: sources with a tag of their own, how references are written, and alignments without links."""
    yield from _tag_warnings(config)
    yield from _format_warnings(config, prepared.vocabularies.target)
    yield from _alignment_warnings(prepared)


def doubts_of_updates(request: Request, prepared: Prepared) -> Iterator[str]:
    """Of what only the corpus shows: batches that stay small, and a run too short for scheduled sampling."""
    for warning in (unfilled(prepared.train, request.config), late(request.config, prepared.train)):
        if warning is not None:
            yield warning


def _tag_warnings(config: Config) -> Iterator[str]:
    """Messages about tags that were written into the text, too, so that its lines have them twice."""
    for corpus in config.data.train:
        if corpus.tag is None:
            continue
        lines = list(islice(read_lines(corpus.source), FIRST_LINES))
        tagged = sum(line.split(maxsplit=1)[:1] == [corpus.tag] for line in lines)
        if tagged and tagged >= TAGGED * len(lines):
            yield (
                f"{corpus.source}: {tagged:,} of the first {counted(len(lines), 'line')} begin with {corpus.tag}, the "
                "corpus's tag, which is put in front of every line; take it out of the text, or leave out the key tag"
            )


def _format_warnings(config: Config, target: Subwords) -> Iterator[str]:
    """Messages about references that BLEU, as validation computes it, cannot take apart as it should, or that no model
    with these subwords can write."""
    tokenize = config.training.validation.tokenize
    corpora = {"validation references": config.data.valid}
    corpora |= {f"references of {watched.name}": watched for watched in config.data.watch}
    for name, files in corpora.items():
        lines = [target.whole_words(line) for line in islice(read_lines(files.target), FIRST_LINES)]
        encoded = [target.encode(line) for line in lines]
        known = [place for place, ids in enumerate(encoded) if UNKNOWN not in ids]
        written = {place: target.decode(encoded[place]) for place in known}
        yield from normalized_warning(
            name, lines, [written.get(place, line) for place, line in enumerate(lines)], tokenize
        )
        yield from format_warnings(
            name,
            lines,
            tokenize,
            option="training.validation.tokenize",
            cure="set subwords.joiner, or join the pieces",
        )


def _alignment_warnings(prepared: Prepared) -> Iterator[str]:
    """Messages about alignments that may be those of another corpus, or none: no pair has a link."""
    watched = [(f"data.watch: {one.name}", one.ids, UNMEASURED) for one in prepared.watched]
    training = ("data.train", prepared.train, "training.guided_alignment has no effect")
    for name, corpus, effect in (training, ("data.valid", prepared.valid, UNMEASURED), *watched):
        if corpus.report.aligned == 0:
            yield f"{name}: the alignments have no link for any pair that is kept: {effect}; align the text again"
