"""Warnings about a training: what can hardly be meant, or can hardly work. They stop nothing."""

from itertools import islice

from nmt.config import Config
from nmt.data.corpus import read_lines
from nmt.data.subwords import Subwords
from nmt.decoding.text.languages import CODE, NAMES, code_of
from nmt.errors import nearest
from nmt.evaluation.text_warnings import format_warnings, normalized_warning
from nmt.experiment.request import Request
from nmt.models.combinations import start_warnings
from nmt.text_form import form_of

FIRST_LINES = 1000  # of a file, that tell how all are written


def doubts_of_start(request: Request) -> list[str]:
    """Of languages without a code, or other ones than those of the model to start from, and of weights from which a
    model hardly learns; another one's have learned."""
    warnings = []
    for key in ("source_language", "target_language"):
        name = getattr(request.config.data, key)
        if CODE.fullmatch(name) is None:
            near = nearest(name, list(NAMES.values()))
            hint = f"; {near} is {code_of(near)}" if near else ", such as de"
            warnings.append(f"data.{key} is {name!r}; sentences and glossaries need the code of a language{hint}")
        if request.origin is not None and (before := getattr(request.origin.model.config.data, key)) != name:
            warnings.append(f"data.{key} is {name}, and that of the model to start from is {before}; is this meant?")
    if request.origin is not None:
        return warnings
    warnings += start_warnings(request.config.model, request.config.training)
    if request.config.training.minimum_risk is not None:
        warnings.append(
            "training.minimum_risk learns from translations of the model, which mean nothing at first; give a trained "
            "model with --init-from"
        )
    return warnings


def doubts_of_references(config: Config, target: Subwords) -> list[str]:
    """Of references that BLEU, as validation computes it, cannot take apart as it should, or that no model with these
    subwords can write."""
    validation = config.training.validation
    corpora = {"validation references": config.data.valid}
    corpora |= {f"references of {watched.name}": watched for watched in config.data.watch}
    warnings: list[str] = []
    for name, files in corpora.items():
        lines = [target.whole_words(line) for line in islice(read_lines(files.target), FIRST_LINES)]
        warnings += normalized_warning(name, lines, [target.normalized(line) for line in lines])
        option, cure = "training.validation.tokenize", "set subwords.joiner, or join the pieces"
        of_text = format_warnings(form_of(lines, name=name), validation.tokenize, option=option, cure=cure)
        warnings += [message for mark, message in of_text.items() if mark != "short" or validation.metric == "bleu"]
    return warnings
