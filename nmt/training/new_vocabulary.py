"""Fine-tuning with another vocabulary: pieces that the model knows keep their weights, new ones start at the mean.

A piece is known if the old vocabulary of its side has the same text. Of each table with a row for every piece (the
embeddings, and the output layer where it is none of them), with the old rows E_v of the pieces v ∈ V and the special
symbols S:

    E'_w = E_w                                 for a known piece w
    E'_w = 1 / |V \\ S| Σ_{v ∈ V \\ S} E_v     for a new one

So a new piece is at first as probable as an average one, and reads as nothing in particular. All other weights stay.
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from nmt.data.subwords import Subwords, Vocabularies
from nmt.errors import counted
from nmt.symbols import PIECES

_SOURCE, _TARGET = "source_embedding.weight", ("own_target_embedding.weight", "output_layer.weight")


def known_rows(old: Subwords, new: Subwords) -> Tensor:
    """For each piece of `new` its row in the tables of `old`, (new size,) int64, and -1 for a new piece.

    Special symbols have the same ids in both, whatever they are called.
    """
    special = len(PIECES)
    places = {piece: row for row, piece in enumerate(old.pieces(range(special, old.size)), start=special)}
    return torch.tensor([*range(special), *(places.get(piece, -1) for piece in new.pieces(range(special, new.size)))])


def with_vocabularies(weights: Mapping[str, Tensor], old: Vocabularies, new: Vocabularies) -> dict[str, Tensor]:
    """The weights of a model with the `old` vocabularies, for the `new` ones."""
    changed = dict(weights)
    source, target = (known_rows(*sides) for sides in zip(old, new, strict=True))
    for names, rows in (((_SOURCE,), source), (_TARGET, target)):
        changed |= {name: _with_rows(weights[name], rows) for name in names if name in weights}
    return changed


def vocabulary_report(old: Vocabularies, new: Vocabularies) -> Iterator[str]:
    """A line for each side, or one if both vocabularies are joint: how many of the new pieces the model knows."""
    is_joint = all(source is target for source, target in (old, new))
    names = ["joint"] if is_joint else ["source", "target"]
    for name, *sides in zip(names, old, new, strict=False):
        rows = known_rows(*sides)[len(PIECES) :]
        known = int((rows >= 0).sum())
        yield (
            f"{name} vocabulary: {known:,} of {len(rows):,} pieces are known to the model, "
            f"{counted(len(rows) - known, 'starts', 'start')} at the mean"
        )


def _with_rows(table: Tensor, rows: Tensor) -> Tensor:
    """These rows of the table (old size, units), and its mean for -1: (new size, units)."""
    mean = table[len(PIECES) :].double().mean(0).to(table.dtype)
    return torch.where((rows >= 0)[:, None], table[rows.clamp(min=0)], mean)
