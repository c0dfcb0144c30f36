"""From the configured files to subword models and binarised corpora, each made once and reused from a cache folder.

A cache entry is named by a hash of everything it was made from: the bytes of the corpus files, the subword settings
or models, and the filters. An entry is therefore never out of date, and runs may share a cache folder. Entries are
checked when they are opened (`sealed.py`, `binarised.py`), and damaged ones are made again. Corpora are read several
times; each time their bytes must match the hash, so an entry is never made from any others. Reports and warnings about
a corpus appear at every start, also when it is in the cache.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from nmt.config.schema import (
    TRAINED_SUBWORDS,
    VOCABULARIES,
    Config,
    ParallelFiles,
    SubwordsConfig,
    TrainingFiles,
    changed,
    existing_models,
)
from nmt.data.alignments import check_alignments
from nmt.data.binarised import Filters, PairedIds
from nmt.data.binarising import binarise
from nmt.data.corpus import check_corpora, digests, read_lines, read_pairs
from nmt.data.faults import NUMBERS, Counts, count_faults, fault_warnings
from nmt.data.sealed import discard, read_sealed, write_sealed
from nmt.data.subwords import Subwords, Vocabularies
from nmt.errors import Checking, UserError, caught, checked, counted
from nmt.pharaoh import links_of_line, pharaoh

_TRAINING_LINES = 1_000_000  # subword models are trained on at most about this many lines, evenly spread
_RECIPE = 1  # of training subword models; part of the cache keys
_ENCODING = 1  # how text becomes ids; part of the cache keys
_FAULTS = 2  # what is counted of them; part of the cache keys
_CHECKS = 1  # which lines and links are refused; part of the cache keys
_USUAL_JOINER = "@@"
_MANY_CUT = 0.05  # of a vocabulary; in that of an uncut text there are none but typing errors
_WORDS = "one unknown piece for each unknown word"  # how text becomes ids in a word model; part of its cache keys
_TAGS = "a tag alone is an empty source"  # likewise, of corpora with tags
Log = Callable[[str], None]
Entry = TypeVar("Entry")


class Watched(NamedTuple):
    """A further validation corpus."""

    name: str
    ids: PairedIds
    digests: tuple[str, str]  # of the files


class Prepared(NamedTuple):
    """All the data of one training run."""

    vocabularies: Vocabularies
    train: PairedIds
    valid: PairedIds
    valid_digests: tuple[str, str] | tuple[None, None] = (None, None)  # of the files, for reading their text again
    watched: Sequence[Watched] = ()


def prepare(config: Config, *, cache: Path, log: Log, vocabularies: Vocabularies | None = None) -> Prepared:
    """Check the corpora, train or load the subword models and encode both corpora, reusing whatever the cache has.

    `vocabularies`, if given, replace the subword models, as for fine-tuning; they must have the tags of the corpora,
    unless training.vocabulary is extended. Models that are trained or named get them. `log` receives a line for each
    result, and for each fault of the corpora that can hardly be meant.

    Raises:
        UserError: with all problems of the corpora; or of the subword models; or when no pair is left.
    """
    try:
        corpora = _checked([*config.data.train, config.data.valid, *config.data.watch], cache, log)
        count = len(config.data.train)
        counts = _counted_faults(corpora, count, cache, log)
        for warning in fault_warnings(counts, [corpus.paths for corpus in corpora], train=count):
            log(f"warning: {warning}")
        _refuse_blank(config, counts)
        train, valid, watched = corpora[:count], corpora[count : count + 1], corpora[count + 1 :]
        train = [corpus._replace(tag=files.tag) for corpus, files in zip(train, config.data.train, strict=True)]
        may_grow = vocabularies is None or config.training.vocabulary == "extended"
        if vocabularies is None:
            vocabularies = _existing(config.subwords, log) or _trained(config.subwords, train, cache, log)
        vocabularies = _with_tags(vocabularies, config.data.train, may_grow=may_grow, log=log)
        _check_sampling(config.subwords, vocabularies)
        filters = Filters(config.data.max_length, config.data.max_length_ratio)
        with_text = config.subwords.sampling is not None
        return Prepared(
            vocabularies,
            _encoded("training corpus", train, vocabularies, filters, with_text, cache, log),
            _encoded("validation corpus", valid, vocabularies, None, False, cache, log),
            valid[0].digests,
            [
                Watched(
                    files.name,
                    _encoded(f"watched corpus {files.name}", [corpus], vocabularies, None, False, cache, log),
                    corpus.digests,
                )
                for files, corpus in zip(config.data.watch, watched, strict=True)
            ],
        )
    except OSError as error:
        raise UserError(
            f"{error.filename or cache}: the data cache cannot be used ({error.strerror or error}); fix this, or give "
            "another data.cache_folder"
        ) from None


class _Corpus(NamedTuple):
    """One pair of checked files: paths and hashes, each in the order source, target; perhaps with alignments."""

    paths: tuple[Path, Path]
    digests: tuple[str, str]
    lines: int
    alignments: tuple[Path, str] | None  # path and hash
    tag: str | None = None  # what is put in front of every source that is not blank

    @property
    def hashes(self) -> tuple[str, ...]:
        """Those of all files."""
        return self.digests if self.alignments is None else (*self.digests, self.alignments[1])

    def alignment_lines(self) -> Iterator[str]:
        """One line a pair, empty where there are no alignments."""
        if self.alignments is None:
            return repeat("", self.lines)
        path, digest = self.alignments
        lines = read_lines(path, expected=digest)
        return lines if self.tag is None else map(_behind_tag, lines)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """The pairs of lines to encode, with the tag."""
        pairs = read_pairs(*self.paths, expected=self.digests)
        if self.tag is None:
            return pairs
        return ((f"{self.tag} {source}" if source.strip() else source, target) for source, target in pairs)


def _behind_tag(line: str) -> str:
    """The links of a line to the words of a source that has got a tag in front."""
    return pharaoh((source + 1, target) for source, target in links_of_line(line, place="an alignment"))


def _reused(path: Path, read: Callable[[Path], Entry], log: Log) -> Entry | None:
    """The cache entry as `read` returns it; None if there is none.

    A damaged entry, for which `read` raises ValueError, is removed so that it can be made again.
    """
    if not os.path.lexists(path):
        return None
    try:
        return read(path)
    except ValueError as error:
        log(f"{path}: damaged, or of another version, and rebuilt ({error})")
        discard(path)
        return None


def _checked(files: Sequence[ParallelFiles], cache: Path, log: Log) -> list[_Corpus]:
    """Hash all files, and check every line of them unless that has been done for these bytes before."""
    paths = [(pair.source, pair.target, *([pair.alignments] if pair.alignments else [])) for pair in files]
    try:
        hashes = digests(chain.from_iterable(paths))
    except UserError as error:
        checked(_checking(files, None, error.messages))  # reports every problem, not only unreadable files
        raise
    made_from = [[hashes[path] for path in group] for group in paths]
    entry = cache / "checked" / f"{_key([_CHECKS, made_from])}.json"
    expected = partial(_numbers, count=len(files), what=f"the line counts of {len(files)} corpora")
    counts = _reused(entry, expected, log)
    if counts is None:
        counts = checked(_checking(files, hashes))
        entry.parent.mkdir(parents=True, exist_ok=True)
        write_sealed(entry, json.dumps(counts).encode())
    return [
        _Corpus(
            (pair.source, pair.target),
            (hashes[pair.source], hashes[pair.target]),
            count,
            (pair.alignments, hashes[pair.alignments]) if pair.alignments else None,
        )
        for pair, count in zip(files, counts, strict=True)
    ]


def _checking(
    files: Sequence[ParallelFiles], hashes: dict[Path, str] | None, problems: Sequence[str] = ()
) -> Checking[list[int]]:
    """Read every line, after the `problems` so far; returns the number of lines of each corpus."""
    yield from problems
    pairs = [(pair.source, pair.target) for pair in files]
    counts: list[int] = yield from caught(lambda: check_corpora(pairs, expected=hashes), [])
    for pair in files:
        if pair.alignments is not None:
            texts = (pair.source, pair.target)
            check = partial(check_alignments, texts, pair.alignments)
            if hashes is not None:
                expected = (hashes[pair.source], hashes[pair.target])
                check = partial(check, expected=expected, expected_alignments=hashes[pair.alignments])
            yield from caught(check, None)
    return counts


def _numbers(path: Path, *, count: int, what: str) -> list[int]:
    """So many numbers, as counted before; raises ValueError when the file is damaged."""
    try:
        numbers = json.loads(read_sealed(path))
    except RecursionError:
        numbers = None
    if not (isinstance(numbers, list) and len(numbers) == count and all(map(_is_count, numbers))):
        raise ValueError(f"expected {what}")
    return numbers


def _is_count(number: Any) -> bool:
    return type(number) is int and 0 <= number < 1 << 63


def _counted_faults(corpora: Sequence[_Corpus], train: int, cache: Path, log: Log) -> Counts:
    """What was counted of the faults of all corpora, of which the first `train` are trained on."""
    entry = cache / "faults" / f"{_key([_FAULTS, train, [corpus.digests for corpus in corpora]])}.json"
    expected = partial(_numbers, count=2 + NUMBERS * len(corpora), what=f"counts of faults in {len(corpora)} corpora")
    numbers = _reused(entry, expected, log)
    if numbers is not None:
        return Counts.of_numbers(numbers)
    counts = count_faults((read_pairs(*corpus.paths, expected=corpus.digests) for corpus in corpora), train=train)
    entry.parent.mkdir(exist_ok=True)
    write_sealed(entry, json.dumps(counts.numbers()).encode())
    return counts


def _refuse_blank(config: Config, counts: Counts) -> None:
    """Raise UserError for corpora that validate with nothing; a training corpus without a pair is refused later."""
    keys = ["data.valid", *(f"data.watch.{index}" for index in range(len(config.data.watch)))]
    files = [config.data.valid, *config.data.watch]
    problems = [
        f"{key}: {pair.source} and {pair.target} have no pair with text on both sides, of "
        f"{counted(corpus.lines, 'pair')}, so that there is nothing to measure; give sentences with their translations"
        for key, pair, corpus in zip(keys, files, counts.corpora[len(config.data.train) :], strict=True)
        if corpus.pairs == 0
    ]
    if problems:
        raise UserError(*problems)


def _existing(settings: SubwordsConfig, log: Log) -> Vocabularies | None:
    """Load the models or vocabularies that the configuration names; None if it names none."""
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


def _trained(settings: SubwordsConfig, corpora: Sequence[_Corpus], cache: Path, log: Log) -> Vocabularies:
    """Train a joint model, or one for each side; or take them from the cache."""
    if settings.joint:
        joint = _trained_on(settings, corpora, (0, 1), "joint", cache, log)
        return Vocabularies(joint, joint)
    return Vocabularies(
        _trained_on(settings, corpora, (0,), "source", cache, log),
        _trained_on(settings, corpora, (1,), "target", cache, log),
    )


def _trained_on(
    settings: SubwordsConfig, corpora: Sequence[_Corpus], sides: Sequence[int], name: str, cache: Path, log: Log
) -> Subwords:
    used = settings.model_dump(include=set(TRAINED_SUBWORDS))
    key = _key([_RECIPE, used, [[corpus.digests[side] for side in sides] for corpus in corpora]])
    path = cache / "subwords" / f"{key}.model"
    reused = _reused(path, lambda path: Subwords(read_sealed(path)), log)
    if reused is not None:
        log(f"subwords: {name} {settings.type}, {reused.size:,} pieces, reused")
        return reused
    began = time.monotonic()
    stride = -(-sum(corpus.lines for corpus in corpora) * len(sides) // _TRAINING_LINES)
    rows = chain.from_iterable(_rows(corpus, sides) for corpus in corpora)
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


def _rows(corpus: _Corpus, sides: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """The lines of these sides of each pair."""
    if len(sides) == 2:
        return read_pairs(*corpus.paths, expected=corpus.digests)
    return ((line,) for line in read_lines(corpus.paths[sides[0]], expected=corpus.digests[sides[0]]))


def _with_tags(vocabularies: Vocabularies, train: Sequence[TrainingFiles], *, may_grow: bool, log: Log) -> Vocabularies:
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


def _check_sampling(settings: SubwordsConfig, vocabularies: Vocabularies) -> None:
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


def _encoded(
    name: str,
    corpora: Sequence[_Corpus],
    vocabularies: Vocabularies,
    filters: Filters | None,
    with_text: bool,
    cache: Path,
    log: Log,
) -> PairedIds:
    models = [hashlib.blake2b(subwords.model, digest_size=20).hexdigest() for subwords in vocabularies]
    words = [_WORDS] if any(subwords.of_words for subwords in vocabularies) else []
    tags = [corpus.tag for corpus in corpora]
    tagged = [_TAGS, tags] if any(tags) else []
    key = _key([_ENCODING, [corpus.hashes for corpus in corpora], models, filters, with_text, *words, *tagged])
    with_alignments = any(corpus.alignments for corpus in corpora)
    folder = cache / "ids" / key

    def opened(folder: Path) -> PairedIds:
        ids = PairedIds(folder)
        contents = (tuple(subwords.size for subwords in vocabularies), with_text, with_alignments)
        if (ids.pieces, ids.has_text, ids.has_alignments) != contents:
            raise ValueError("made with other vocabularies")
        if len(ids.sizes) != len(corpora):
            raise ValueError("it does not say how many pairs of each corpus it has")
        return ids

    ids, how = _reused(folder, opened, log), "reused"
    if ids is None:
        began = time.monotonic()
        lines = chain.from_iterable(corpus.alignment_lines() for corpus in corpora) if with_alignments else None
        ids = binarise(
            chain.from_iterable(corpus.pairs() for corpus in corpora),
            folder,
            vocabularies=vocabularies,
            filters=filters,
            with_text=with_text,
            alignments=lines,
            corpora=[corpus.lines for corpus in corpora],
            blank=[vocabularies.source.encode(f"{tag} ") for tag in dict.fromkeys(tags) if tag is not None],
        )
        how = f"encoded in {time.monotonic() - began:.1f} s"
    log(f"{name}: {'; '.join(ids.report.lines())}; {how}")
    return ids


def _key(made_from: Any) -> str:
    return hashlib.blake2b(json.dumps(made_from).encode(), digest_size=16).hexdigest()
