"""From the configured files to subword models and binarised corpora, each made once and reused from a cache folder.

A cache entry is named by a hash of everything it was made from: the bytes of the corpus files, the subword settings
or models, and the filters. An entry is therefore never out of date, and runs may share a cache folder. Entries are
checked when they are opened (`sealed.py`, `binarised.py`), and damaged ones are made again. Corpora are read several
times; each time their bytes must match the hash, so an entry is never made from any others. Reports and warnings about
a corpus appear at every start, also when it is in the cache.
"""

import hashlib
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from nmt.config.schema import Config
from nmt.data.binarised import Filters, PairedIds
from nmt.data.binarising import binarise
from nmt.data.cache import Log, cache_key, reused
from nmt.data.checked_corpora import CheckedCorpus, checked_corpora, counted_faults, refuse_blank
from nmt.data.faults import fault_warnings
from nmt.data.subword_models import check_sampling, existing_vocabularies, trained_vocabularies, with_tags
from nmt.data.subwords import Vocabularies
from nmt.errors import UserError

_ENCODING = 1  # how text becomes ids; part of the cache keys
_WORDS = "one unknown piece for each unknown word"  # how text becomes ids in a word model; part of its cache keys
_TAGS = "a tag alone is an empty source"  # likewise, of corpora with tags


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
        corpora = checked_corpora([*config.data.train, config.data.valid, *config.data.watch], cache, log)
        count = len(config.data.train)
        counts = counted_faults(corpora, count, cache, log)
        for warning in fault_warnings(counts, [corpus.paths for corpus in corpora], train=count):
            log(f"warning: {warning}")
        refuse_blank(config, counts)
        train, valid, watched = corpora[:count], corpora[count : count + 1], corpora[count + 1 :]
        train = [corpus._replace(tag=files.tag) for corpus, files in zip(train, config.data.train, strict=True)]
        may_grow = vocabularies is None or config.training.vocabulary == "extended"
        vocabularies = vocabularies or existing_vocabularies(config.subwords, log)
        if vocabularies is None:
            vocabularies = trained_vocabularies(config.subwords, train, cache, log)
        vocabularies = with_tags(vocabularies, config.data.train, may_grow=may_grow, log=log)
        check_sampling(config.subwords, vocabularies)
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


def _encoded(
    name: str,
    corpora: Sequence[CheckedCorpus],
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
    key = cache_key([_ENCODING, [corpus.hashes for corpus in corpora], models, filters, with_text, *words, *tagged])
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

    ids, how = reused(folder, opened, log), "reused"
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
