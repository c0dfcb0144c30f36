"""Shortlists: the target pieces that may translate a sentence, instead of the whole vocabulary.

A sentence may be translated with the most probable translations of its pieces, by IBM Model 1 (see
`nmt.ops.translation_table`), with the most frequent target pieces, and with the four special symbols; where one
vocabulary serves both sides also with its own pieces, as names are copied. So the output layer computes hundreds of
logits instead of all. Here are the table, its training, its file, and the columns that it allows a batch.

Jean et al. (2015), ACL P15-1001, section 3.3; Mi, Wang & Ittycheriah (2016), ACL P16-2021.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt.config.schema import SubwordSampling
from nmt.data.subwords import Vocabularies
from nmt.decoding.search.hypotheses import Array
from nmt.errors import UserError
from nmt.files import new_digest
from nmt.symbols import BEGIN, END, PAD, UNKNOWN
from nmt.tensor_file import open_tensors, write_tensors

KIND = "shortlist"
TRANSLATIONS, MOST_FREQUENT = 100, 100  # the defaults
LONGEST = 100  # pieces of a side; longer pairs say little about which piece translates which, and cost most
MULTIPLE = 64  # columns are filled up to a multiple of this: a library keeps a kernel for each size of a product
_SIDES, _ARRAYS = ("source", "target"), ("translations", "frequent")
_CHUNK = 8192  # pairs encoded at once


class Shortlist(NamedTuple):
    """Which target pieces go with which source pieces."""

    translations: Array  # (source vocabulary, translations) ids, int64, filled up with PAD
    frequent: Array  # (most_frequent,) ids, int64
    target_size: int  # of the vocabulary
    vocabularies: tuple[str, str]  # fingerprints of the source's and the target's
    digest: str | None = None  # the checksum that is in its file; None before it is in one
    name: str = "the shortlist"  # what messages call it

    def checked(self, vocabularies: Vocabularies) -> "Shortlist":
        """Itself. Raises UserError where it was made for other vocabularies, or its parts do not fit these."""
        pairs = zip(self.vocabularies, fingerprints(vocabularies), strict=True)
        differing = [side for side, (ours, theirs) in zip(_SIDES, pairs, strict=True) if ours != theirs]
        if differing:
            raise UserError(
                f"{self.name} was made for another model, with another {' and '.join(differing)} vocabulary; make one "
                "with nmt-shortlist for this model"
            )
        ids = np.concatenate([self.translations.ravel(), self.frequent.ravel()])
        fits = self.translations.shape[:1] == (vocabularies.source.size,) and self.frequent.ndim == 1
        fits &= self.translations.ndim == 2 and self.target_size == vocabularies.target.size
        fits = fits and bool((self.translations[PAD] == PAD).all())  # or results would depend on a batch's padding
        if not fits or bool(((ids < 0) | (ids >= self.target_size)).any()):
            raise UserError(f"{self.name}: damaged: its parts do not fit the vocabularies it was made for")
        return self

    def columns(self, source: Array, required: Sequence[list[int]]) -> "Columns":
        """The columns of sentences `source` (sentences, length), ids with END and PAD, that each require some ids."""
        allowed = np.zeros((len(source), self.target_size), dtype=np.bool_)
        allowed[:, [PAD, UNKNOWN, BEGIN, END]] = True
        allowed[:, self.frequent] = True
        np.put_along_axis(allowed, self.translations[source].reshape(len(source), -1), True, axis=1)
        for sentence, pieces in enumerate(required):
            allowed[sentence, pieces] = True
        (used,) = allowed.any(axis=0).nonzero()
        ids = np.pad(used, (0, -len(used) % MULTIPLE), constant_values=PAD)
        barred = ~allowed[:, ids]
        barred[:, len(used) :] = True
        return Columns(ids, barred)


class Columns(NamedTuple):
    """The target pieces of a batch: all that any of its sentences may be translated with, in the order of their ids.

    To a search they are a small vocabulary, in which the special symbols have their usual ids. Each sentence may use
    only its own among them, so that its translations do not depend on its batch.
    """

    ids: Array  # (columns,), ascending; behind them PAD fills up
    barred: Array  # (sentences, columns), True at columns that a sentence may not use


def train_shortlist(
    pairs: Iterable[tuple[str, str]],
    vocabularies: Vocabularies,
    *,
    translations: int = TRANSLATIONS,
    most_frequent: int = MOST_FREQUENT,
    sampling: SubwordSampling | None = None,
) -> tuple[Shortlist, int]:
    """Learn a shortlist from pairs of lines, all of whose ids are held in memory; and from how many.

    For each source piece the `translations` most probable target pieces; the `most_frequent` target pieces of the
    pairs. Of equal ones the smaller id is preferred. `sampling`: that of the model's training, from which the model
    writes words in other pieces too; each pair is then learned a second time, the target cut at random. The source of a
    translation is never cut so. Pairs that are blank on a side, or have more than LONGEST pieces, are left out. Raises
    UserError if none is left.
    """
    from nmt.ops.translation_table import Pair, ibm_model_1, most_probable

    used: list[Pair] = []
    count = 0
    for source, target, sampled in _encoded(pairs, vocabularies, sampling):
        if source and target and max(len(source), len(target)) <= LONGEST:
            count += 1
            targets = [target, sampled] if sampled and len(sampled) <= LONGEST else [target]
            used += [(np.array(source, dtype=np.int32), np.array(pieces, dtype=np.int32)) for pieces in targets]
    if not used:
        raise UserError(f"no sentence pair is left to learn from: all are blank or have more than {LONGEST} pieces")
    source_size, target_size = (side.size for side in vocabularies)
    table = ibm_model_1(used, source_size=source_size, target_size=target_size)
    best = most_probable(table, translations, source_size=source_size, filling=PAD).numpy()
    marks = fingerprints(vocabularies)
    if marks[0] == marks[1]:
        best = np.concatenate([best, np.arange(source_size)[:, None]], axis=1)
    counts = np.bincount(np.concatenate([target for _, target in used]), minlength=target_size)
    frequent = np.argsort(-counts, kind="stable")[:most_frequent]
    return Shortlist(best, frequent, target_size, marks), count


def _encoded(
    pairs: Iterable[tuple[str, str]], vocabularies: Vocabularies, sampling: SubwordSampling | None
) -> Iterator[tuple[list[int], list[int], list[int]]]:
    """The ids of each source and target, and of the target cut at random, or nothing."""
    rest = iter(pairs)
    for number, chunk in enumerate(iter(lambda: list(islice(rest, _CHUNK)), [])):
        targets = [target for _, target in chunk]
        sampled: list[list[int]] = [[]] * len(chunk)
        if sampling is not None:
            sampled = vocabularies.target.sample(targets, sampling=sampling, seed=number)
        sources = vocabularies.source.encode_batch([source for source, _ in chunk])
        yield from zip(sources, vocabularies.target.encode_batch(targets), sampled, strict=True)


def fingerprints(vocabularies: Vocabularies) -> tuple[str, str]:
    """What tells the vocabularies of the two sides from others."""
    source, target = (new_digest(side.model).hexdigest() for side in vocabularies)
    return source, target


def save_shortlist(path: Path, shortlist: Shortlist) -> None:
    """Write `path` so that a crash leaves the old file or the new one."""
    import torch

    tensors = {name: torch.tensor(getattr(shortlist, name), dtype=torch.int32) for name in _ARRAYS}
    texts = dict(zip(_SIDES, shortlist.vocabularies, strict=True))
    write_tensors(path, tensors, kind=KIND, texts={**texts, "target_size": str(shortlist.target_size)})


def load_shortlist(path: Path) -> Shortlist:
    """Read a shortlist, which is still to be `checked`. Raises UserError when the file is damaged, or no shortlist."""
    with open_tensors(path, kind=KIND) as file:
        contents, tensors, texts = file.contents(), file.tensors, file.texts
    try:
        translations, frequent = (
            np.frombuffer(contents[name], dtype=np.int32).astype(np.int64).reshape(tensors[name].shape)
            for name in _ARRAYS
        )
        vocabularies_of = texts["source"], texts["target"]
        return Shortlist(translations, frequent, int(texts["target_size"]), vocabularies_of, file.digest, str(path))
    except (KeyError, ValueError) as error:  # also of other shapes than NumPy takes
        raise UserError(f"{path}: damaged: its parts do not fit together ({error})") from error
