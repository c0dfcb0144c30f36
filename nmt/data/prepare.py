"""From the configured files to subword models and token ids, each made once and reused from the cache.

Corpora are hashed, and checked line by line unless that was done for these bytes before. They are read several times;
each time their bytes must have the same hash afterwards, so nothing in the cache is ever made from any others. Reports
and warnings about a corpus appear at every start, also when it is in the cache.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat, zip_longest
from pathlib import Path
from typing import NamedTuple

from nmt.config.schema import (
    TRAINED_SUBWORDS,
    VOCABULARIES,
    Config,
    ParallelFiles,
    SubwordsConfig,
    TrainingFiles,
    existing_models,
)
from nmt.data.alignments import check_alignments
from nmt.data.cache import Log, built, cache_key, reused
from nmt.data.corpus import check_corpora, digests, read_lines, read_pairs, read_weights, unchanged
from nmt.data.lint import Forms, Read, checked
from nmt.data.store import Filters, PairedIds, write_ids
from nmt.data.subwords import Subwords, Vocabularies
from nmt.errors import UserError, collected, counted, first_of, refuse, visible
from nmt.files import new_digest
from nmt.pharaoh import links_of_line, pharaoh
from nmt.protected import Learned
from nmt.text_form import TextForm, disagreements, together

_CHECKS = 15  # version of what is refused and counted; a run resumes where it has changed
_VERSION = 6  # of how subword models are trained and text becomes ids; no run resumes where it has changed
_TRAINING_LINES = 1_000_000  # subword models are trained on at most about this many lines, evenly spread
_LACKING_LINES, _LACKING, _MOST_LACKING = 0.02, 0.05, 0.5  # of lines with unknown characters; of unknown pieces


class Prepared(NamedTuple):
    """All the data of one training run."""

    vocabularies: Vocabularies
    train: PairedIds
    valid: PairedIds
    watched: Mapping[str, PairedIds] = {}  # the further validation corpora, by their names
    forms: Sequence[TextForm] = ()  # of both sides of the training text
    learned: Mapping[str, bool | str] = {}  # what a model learns of what is no words, see `nmt.protected`


def prepare(config: Config, *, cache: Path, log: Log, vocabularies: Vocabularies | None = None) -> Prepared:
    """Check the corpora, train or load the subword models and encode the corpora, reusing whatever the cache has.

    `vocabularies`, if given, replace the subword models, as for fine-tuning; they must have the symbols of the
    configuration, unless training.vocabulary is extended. Models that are trained or named get them. `log` receives a
    line for each result, and for each fault of the corpora that can hardly be meant.

    Raises:
        UserError: with all problems of the corpora; or of the subword models; or when no pair is left.
    """
    try:
        return _prepared(config, cache, log, vocabularies)
    except OSError as error:
        raise UserError(
            f"{error.filename or cache}: the data cache cannot be used ({error.strerror or error}); fix this, or give "
            "another data.cache_folder"
        ) from None


def _prepared(config: Config, cache: Path, log: Log, vocabularies: Vocabularies | None) -> Prepared:
    train, (valid, *watched), learned = _checked_corpora(config, cache, log)
    may_grow = vocabularies is None or config.training.vocabulary == "extended"
    vocabularies = vocabularies or existing_vocabularies(config.subwords, log)
    if vocabularies is None:
        by_name = {"joint": (0, 1)} if config.subwords.joint else {"source": (0,), "target": (1,)}
        models = [_trained_on(config.subwords, train, sides, name, cache, log) for name, sides in by_name.items()]
        vocabularies = Vocabularies(models[0], models[-1])
    vocabularies = _with_symbols(vocabularies, config, may_grow=may_grow, log=log)
    _check_sampling(config.subwords, vocabularies)
    forms = [_compared(side, train, [valid, *watched], vocabularies[side], config, log) for side in (0, 1)]

    def encoded(name: str, corpora: Sequence[_Corpus], filters: Filters | None, with_text: bool) -> PairedIds:
        return _encoded(name, corpora, vocabularies, filters, with_text, cache, log)

    filters = Filters(config.data.max_length, config.data.max_length_ratio)
    return Prepared(
        vocabularies,
        encoded("training corpus", train, filters, config.subwords.sampling is not None),
        encoded("validation corpus", [valid], None, True),
        {
            files.name: encoded(f"watched corpus {files.name}", [corpus], None, True)
            for files, corpus in zip(config.data.watch, watched, strict=True)
        },
        forms,
        learned,
    )


# ----------------------------------------------------------------------------------------------------------- corpora


class _Corpus(NamedTuple):
    """One pair of checked files, perhaps with alignments."""

    files: ParallelFiles
    hashes: dict[Path, str]  # of all of its files
    lines: int
    forms: Forms

    @property
    def tag(self) -> str | None:
        """What is put in front of every source that is not blank."""
        return self.files.tag if isinstance(self.files, TrainingFiles) else None

    def alignment_lines(self) -> Iterator[str]:
        """One line a pair, empty where there are no alignments; with a tag, the source's words count from 1."""
        if self.files.alignments is None:
            return repeat("", self.lines)
        lines = read_lines(self.files.alignments)
        if self.tag is None:
            return lines
        links = (links_of_line(line, place="an alignment") for line in lines)
        return (pharaoh((source + 1, target) for source, target in of_line) for of_line in links)

    def pair_weights(self) -> Iterator[float]:
        """One a pair, 1 where the corpus has none."""
        path = _pair_weights(self.files)
        return repeat(1.0, self.lines) if path is None else read_weights(path)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """The pairs of lines to encode, with the tag."""
        pairs = read_pairs(self.files.source, self.files.target)
        if self.tag is None:
            return pairs
        return ((f"{self.tag} {source}" if _is_visible(source) else source, target) for source, target in pairs)


def _is_visible(text: str) -> bool:
    """Whether there is more in a text than spaces and characters such as U+200B, which normalization removes."""
    return any(character.isprintable() and not character.isspace() for character in text)


def _checked_corpora(config: Config, cache: Path, log: Log) -> tuple[list[_Corpus], list[_Corpus], Learned]:
    """The corpora to train on, those to validate with, and what a model learns of what is no words; with warnings about
    their faults.

    Raises UserError with all problems of the files; a training corpus without a pair is refused later.
    """
    data = config.data
    files = data.corpora()
    try:
        hashes = digests(chain.from_iterable(map(_paths, files.values())))
    except UserError:
        _line_counts(files.values())  # which finds this, and what is wrong in the other files
        raise
    made_from = [[[str(path), hashes[path]] for path in _paths(pair)] for pair in files.values()]
    weighted = _weighted(files.values())
    entry = cache / "corpora" / cache_key([_CHECKS, len(data.train), made_from, *weighted])
    found = reused(entry, lambda _, facts: facts, log)
    if found is None:
        with unchanged(hashes):
            lines = _line_counts(files.values())
            texts = [
                Read(key, (pair.source, pair.target), read_pairs(pair.source, pair.target))
                for key, pair in files.items()
            ]
            warnings, forms, learned = checked(texts, train=len(data.train))
            found = {"lines": lines, "warnings": warnings, "learned": learned}
            found["forms"] = [[*map(vars, sides)] for sides in forms]
        with built(entry) as (_, facts):
            facts.update(found)
    for warning in found["warnings"]:
        log(f"warning: {warning}")
    corpora = [
        _Corpus(pair, {path: hashes[path] for path in _paths(pair)}, lines, (TextForm(**source), TextForm(**target)))
        for pair, lines, (source, target) in zip(files.values(), found["lines"], found["forms"], strict=True)
    ]
    return corpora[: len(data.train)], corpora[len(data.train) :], found["learned"]


def _compared(
    side: int, train: Sequence[_Corpus], others: Sequence[_Corpus], subwords: Subwords, config: Config, log: Log
) -> TextForm:
    """The form of a side of the training text as the model reads or writes it, which that of other corpora must have.

    It warns of those that have another one. Case does not matter where subwords or scores ignore it.
    """
    several = f"the {('source', 'target')[side]} side of data.train"
    name = several if len(train) > 1 else train[0].forms[side].name
    lowercases = subwords.normalized("A") == "a"
    trained = together([corpus.forms[side] for corpus in train], name=f"{name} in lower case" if lowercases else name)
    if lowercases:
        trained = trained.without_case() if side == 0 else trained.lowercased()
    compared = trained.without_case() if side == 1 and config.training.validation.lowercase else trained
    for corpus in others:
        for mark, message in disagreements(corpus.forms[side], compared).items():
            ignored = "; training.validation.lowercase ignores case" if side == 1 and mark == "cased" else ""
            log(f"warning: {message}{ignored}")
    return trained


def _paths(files: ParallelFiles) -> list[Path]:
    return [path for path in (files.source, files.target, files.alignments, _pair_weights(files)) if path is not None]


def _pair_weights(files: ParallelFiles) -> Path | None:
    return files.pair_weights if isinstance(files, TrainingFiles) else None


def _weighted(files: Iterable[ParallelFiles]) -> list[int]:
    """The numbers of the corpora with weights of pairs, so that none is taken for alignments in the cache."""
    return [number for number, pair in enumerate(files) if _pair_weights(pair) is not None]


def _line_counts(files: Iterable[ParallelFiles]) -> list[int]:
    """The lines of each pair of files, all of which are read to their ends. Raises UserError with all that is wrong."""
    lines: list[int] = []
    problems: list[str] = []
    with collected(problems):
        lines = check_corpora((pair.source, pair.target) for pair in files)
    for pair, count in zip_longest(files, lines):
        if (path := _pair_weights(pair)) is not None:
            with collected(problems):
                weights = sum(1 for _ in read_weights(path))
                if count is not None and weights != count:
                    problems.append(
                        f"{path} has {counted(weights, 'line')}, but {pair.source} has {count:,}; line i must have the "
                        "weight of pair i"
                    )
        if pair.alignments is not None:
            with collected(problems):
                check_alignments((pair.source, pair.target), pair.alignments)
    refuse(problems)
    return lines


# ------------------------------------------------------------------------------------------------------ subword models


def existing_vocabularies(settings: SubwordsConfig, log: Log) -> Vocabularies | None:
    """Load the models or vocabularies that the configuration names; None if it names none. Raises UserError."""
    models: list[Subwords] = []
    problems: list[str] = []
    for key, path in existing_models(settings).items():
        with collected(problems, of=f"subwords.{key}"):
            if key in VOCABULARIES:
                models.append(Subwords.of_vocabulary(path, joiner=settings.joiner or ""))
            else:
                models.append(Subwords.from_file(path))
            log(f"subwords: {models[-1].size:,} pieces, {key} {path}")
    refuse(problems)
    return Vocabularies(models[0], models[-1]) if models else None


def _trained_on(
    settings: SubwordsConfig, corpora: Sequence[_Corpus], sides: Sequence[int], name: str, cache: Path, log: Log
) -> Subwords:
    """A model of these sides, trained or from the cache. Raises UserError for too little text."""
    used = settings.model_dump(include=set(TRAINED_SUBWORDS))
    paths = [[(corpus.files.source, corpus.files.target)[side] for side in sides] for corpus in corpora]
    hashes = {path: corpus.hashes[path] for corpus, files in zip(corpora, paths, strict=True) for path in files}
    key = cache_key([_VERSION, used, [[hashes[path] for path in files] for files in paths]])
    entry = cache / "subwords" / key
    known = reused(entry, lambda folder, _: Subwords((folder / "model").read_bytes()), log)
    if known is not None:
        log(f"subwords: {name} {settings.type}, {known.size:,} pieces, reused")
        return known
    began = time.monotonic()
    stride = -(-sum(corpus.lines for corpus in corpora) * len(sides) // _TRAINING_LINES)
    rows = chain.from_iterable(zip(*map(read_lines, files), strict=False) for files in paths)
    with built(entry) as (folder, _), unchanged(hashes):
        subwords = Subwords.train(
            chain.from_iterable(islice(rows, 0, None, stride)),
            settings=settings,
            corpus="this corpus" if len(sides) == 2 else f"the {name} side of this corpus",
        )
        (folder / "model").write_bytes(subwords.model)
    lines = "every line" if stride == 1 else f"one line in {stride}"
    seconds = time.monotonic() - began
    log(f"subwords: {name} {settings.type}, {subwords.size:,} pieces, trained on {lines} in {seconds:.1f} s")
    return subwords


def _with_symbols(vocabularies: Vocabularies, config: Config, *, may_grow: bool, log: Log) -> Vocabularies:
    """The vocabularies with the symbols of the configuration, and the tags of the corpora among the source pieces.

    Raises UserError for a symbol that cannot be one, or, unless they `may_grow`, that is none of their pieces.
    """
    places = {symbol: f"subwords.symbols.{index}" for index, symbol in enumerate(config.subwords.symbols)}
    of_source = dict(places)
    for index, files in enumerate(config.data.train):
        if files.tag is not None:
            of_source.setdefault(files.tag, f"data.train.{index}.tag")
    is_joint = vocabularies.target is vocabularies.source
    source = _grown(vocabularies.source, of_source, "joint" if is_joint else "source", may_grow, log)
    return Vocabularies(source, source if is_joint else _grown(vocabularies.target, places, "target", may_grow, log))


def _grown(subwords: Subwords, places: Mapping[str, str], side: str, may_grow: bool, log: Log) -> Subwords:
    """The subwords with symbols, of which `places` says where the configuration has them."""
    problems: list[str] = []
    words: dict[str, str] = {}
    added: list[str] = []
    for symbol, place in places.items():
        if (other := words.setdefault(subwords.normalized(symbol), symbol)) != symbol:
            problems.append(f"{place}: normalization makes {symbol} the same as {other}; choose another symbol")
        try:
            grown = subwords.with_symbols([symbol])
        except ValueError as error:
            problems.append(f"{place}: {error}")
            continue
        if grown is not subwords and not may_grow:
            problems.append(
                f"{place}: {symbol} is no symbol of the {side} vocabulary of the model to start from; "
                "training.vocabulary: extended adds it"
            )
        elif grown is not subwords:
            added.append(symbol)
            subwords = grown
    refuse(problems)
    if added:
        log(f"subwords: {', '.join(first_of(added, 5))} added to the {side} pieces")
    return subwords


def _check_sampling(settings: SubwordsConfig, vocabularies: Vocabularies) -> None:
    """Raise UserError where the models cannot be sampled as the configuration says."""
    if settings.sampling is None:
        return
    for subwords in vocabularies:
        try:
            subwords.sample(["a"], sampling=settings.sampling, seed=0)
        except ValueError as error:
            raise UserError(f"subwords.sampling: {error}; set it to null") from None


# ----------------------------------------------------------------------------------------------------------------- ids


def _encoded(
    name: str,
    corpora: Sequence[_Corpus],
    vocabularies: Vocabularies,
    filters: Filters | None,
    with_text: bool,
    cache: Path,
    log: Log,
) -> PairedIds:
    """The token ids of corpora, one after the other."""
    models = [new_digest(subwords.model).hexdigest() for subwords in vocabularies]
    tags = [corpus.tag for corpus in corpora]
    hashes_of_corpora = [list(corpus.hashes.values()) for corpus in corpora]
    weighted = _weighted(corpus.files for corpus in corpora)
    key = cache_key([_VERSION, hashes_of_corpora, tags, models, filters, with_text, *weighted])
    entry = cache / "ids" / key
    ids, how = reused(entry, PairedIds, log), "reused"
    if ids is None:
        began = time.monotonic()
        is_aligned = any(corpus.files.alignments for corpus in corpora)
        lines = chain.from_iterable(corpus.alignment_lines() for corpus in corpora) if is_aligned else None
        weights = chain.from_iterable(corpus.pair_weights() for corpus in corpora) if weighted else None
        hashes = {path: digest for corpus in corpora for path, digest in corpus.hashes.items()}
        with built(entry) as (folder, facts), unchanged(hashes):
            facts.update(
                write_ids(
                    folder,
                    chain.from_iterable(corpus.pairs() for corpus in corpora),
                    vocabularies=vocabularies,
                    filters=filters,
                    with_text=with_text,
                    alignments=lines,
                    weights=weights,
                    corpora=[corpus.lines for corpus in corpora],
                )
            )
        ids = PairedIds(entry, facts)  # not before: Windows renames no folder with mapped files
        how = f"encoded in {time.monotonic() - began:.1f} s"
    log(f"{name}: {'; '.join(ids.report.lines())}; {how}")
    _check_unknown(name, ids, vocabularies, log, is_learned=filters is not None)
    if ids.report.aligned == 0:
        log(f"warning: {name}: the alignments have no link for any pair that is kept; align the text again")
    return ids


def _check_unknown(name: str, ids: PairedIds, vocabularies: Vocabularies, log: Log, *, is_learned: bool) -> None:
    """Warn of what the vocabulary lacks of a corpus. Raises UserError where that is most of one to be learned."""
    problems = []
    for (side, unknown), subwords in zip(ids.unknown.items(), vocabularies, strict=True):
        share_of_lines = unknown.lines / max(len(ids), 1)
        characters = [
            f"'{visible(character)}' in {counted(lines, 'line')}" for character, lines in unknown.characters.items()
        ]
        named = f": {', '.join(first_of(characters, 5))}" if characters else ""
        lacks = (
            f"{name}: the vocabulary lacks {unknown.share:.1%} of the {side} pieces, in {share_of_lines:.1%} of the "
            f"lines{named}"
        )
        if is_learned and unknown.share > _MOST_LACKING:
            problems.append(f"{lacks}; is it the vocabulary of this language and this text?")
        elif unknown.share >= _LACKING or (characters and share_of_lines > _LACKING_LINES):
            cure = "a larger vocabulary" if subwords.of_words else "subwords.byte_fallback"
            log(f"warning: {lacks}; use {cure}, or with --init-from training.vocabulary: new")
    refuse(problems)
