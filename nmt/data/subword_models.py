"""The subword models of a training: those that the configuration names, or new ones, trained on its corpora or cached.

Tags of corpora become pieces of the source's.
"""

import time
from collections.abc import Sequence
from itertools import chain, islice
from pathlib import Path

from nmt.config.schema import TRAINED_SUBWORDS, VOCABULARIES, SubwordsConfig, TrainingFiles, changed, existing_models
from nmt.data.cache import Log, cache_key, reused
from nmt.data.checked_corpora import CheckedCorpus
from nmt.data.sealed import read_sealed, write_sealed
from nmt.data.subwords import Subwords, Vocabularies
from nmt.errors import UserError

_TRAINING_LINES = 1_000_000  # subword models are trained on at most about this many lines, evenly spread
_RECIPE = 1  # of training subword models; part of the cache keys
_USUAL_JOINER = "@@"
_MANY_CUT = 0.05  # of a vocabulary; in that of an uncut text there are none but typing errors


def existing_vocabularies(settings: SubwordsConfig, log: Log) -> Vocabularies | None:
    """Load the models or vocabularies that the configuration names; None if it names none. Raises UserError."""
    models: list[Subwords] = []
    problems: list[str] = []
    for key, path in existing_models(settings).items():
        try:
            models.append(named_subwords(settings, key, path))
            log(f"subwords: {models[-1].size:,} pieces, {key} {path}")
        except UserError as error:
            problems.extend(f"subwords.{key}: {message}" for message in error.messages)
    if problems:
        raise UserError(*problems)
    if not models:
        return None
    _check_joiner(settings, models, log)
    return Vocabularies(models[0], models[-1])


def named_subwords(settings: SubwordsConfig, key: str, path: Path) -> Subwords:
    """The model, or the vocabulary as a model, at the `path` that the key `key` names. Raises UserError."""
    if key in VOCABULARIES:
        return Subwords.of_vocabulary(path, joiner=settings.joiner or "")
    return Subwords.from_file(path)


def _check_joiner(settings: SubwordsConfig, models: Sequence[Subwords], log: Log) -> None:
    """Whether words end with the joiner: raise UserError where none does, and tell where they seem to need one."""
    mark = settings.joiner or _USUAL_JOINER
    cut = [sum(piece.endswith(mark) for piece in model.pieces(range(model.size))) for model in models]
    if settings.joiner is not None and not any(cut):
        raise UserError(
            f"subwords.joiner: no word of {' or '.join(map(str, existing_models(settings).values()))} ends with "
            f"{mark!r}; remove it if the text was not cut beforehand"
        )
    for model, count in zip(models, cut, strict=True):
        if settings.joiner is None and model.is_listed and count > _MANY_CUT * model.size:
            log(
                f"warning: {count:,} of {model.size:,} words end with {mark!r}, as subword-nmt cuts words, and "
                f"translations will be cut likewise; subwords.joiner: {mark!r} joins them"
            )


def trained_vocabularies(
    settings: SubwordsConfig, corpora: Sequence[CheckedCorpus], cache: Path, log: Log
) -> Vocabularies:
    """Train a joint model, or one for each side; or take them from the cache. Raises UserError for too little text."""
    if settings.joint:
        joint = _trained_on(settings, corpora, (0, 1), "joint", cache, log)
        return Vocabularies(joint, joint)
    return Vocabularies(
        _trained_on(settings, corpora, (0,), "source", cache, log),
        _trained_on(settings, corpora, (1,), "target", cache, log),
    )


def _trained_on(
    settings: SubwordsConfig, corpora: Sequence[CheckedCorpus], sides: Sequence[int], name: str, cache: Path, log: Log
) -> Subwords:
    used = settings.model_dump(include=set(TRAINED_SUBWORDS))
    key = cache_key([_RECIPE, used, [[corpus.digests[side] for side in sides] for corpus in corpora]])
    path = cache / "subwords" / f"{key}.model"
    known = reused(path, lambda path: Subwords(read_sealed(path)), log)
    if known is not None:
        log(f"subwords: {name} {settings.type}, {known.size:,} pieces, reused")
        return known
    began = time.monotonic()
    stride = -(-sum(corpus.lines for corpus in corpora) * len(sides) // _TRAINING_LINES)
    rows = chain.from_iterable(corpus.rows(sides) for corpus in corpora)
    subwords = Subwords.train(
        chain.from_iterable(islice(rows, 0, None, stride)),
        settings=settings,
        corpus="this corpus" if len(sides) == 2 else f"the {name} side of this corpus",
    )
    path.parent.mkdir(exist_ok=True)
    write_sealed(path, subwords.model)
    lines = "every line" if stride == 1 else f"one line in {stride}"
    seconds = time.monotonic() - began
    log(f"subwords: {name} {settings.type}, {subwords.size:,} pieces, trained on {lines} in {seconds:.1f} s")
    return subwords


def with_tags(vocabularies: Vocabularies, train: Sequence[TrainingFiles], *, may_grow: bool, log: Log) -> Vocabularies:
    """The vocabularies with the tags of the corpora among the source pieces.

    Raises UserError for a tag that cannot be one, or that normalization makes another one of, such as <bt> of <BT>; or,
    unless they `may_grow`, that is none of their pieces.
    """
    tags = list(dict.fromkeys(files.tag for files in train if files.tag is not None))
    source, problems = vocabularies.source, []
    known: dict[tuple[int, ...], str] = {}  # tags by their pieces
    for tag in tags:
        place = f"data.train.{next(index for index, files in enumerate(train) if files.tag == tag)}.tag"
        try:
            grown = source.with_symbols([tag])
        except ValueError as error:
            problems.append(f"{place}: {error}")
            continue
        if (same := known.setdefault(tuple(grown.encode(tag)), tag)) != tag:
            problems.append(f"{place}: {tag} and {same} are the same piece of the source vocabulary; choose another")
            continue
        if grown is source:
            continue
        if not may_grow:
            problems.append(
                f"{place}: {tag} is no symbol of the source vocabulary of the model to start from; "
                "training.vocabulary: extended adds it"
            )
            continue
        log(
            f"subwords: {tag} added to the {'joint' if vocabularies.target is vocabularies.source else 'source'} pieces"
        )
        source = grown
    if problems:
        raise UserError(*problems)
    if source is vocabularies.source:
        return vocabularies
    return Vocabularies(source, source if vocabularies.target is vocabularies.source else vocabularies.target)


def check_sampling(settings: SubwordsConfig, vocabularies: Vocabularies) -> None:
    """Raise UserError where the models cannot be sampled as the configuration says."""
    if settings.sampling is None:
        return
    for subwords in vocabularies:
        try:
            subwords.sample(["a"], sampling=settings.sampling, seed=0)
        except ValueError as error:
            raise UserError(f"subwords.sampling: {error}; set it to null") from None
    if changed(settings.sampling, "nbest_size") and all(subwords.of_merges for subwords in vocabularies):
        raise UserError(
            f"subwords.sampling.nbest_size: {settings.sampling.nbest_size} has no effect on a subword model of type "
            "bpe, which is sampled by alpha alone; remove it"
        )
