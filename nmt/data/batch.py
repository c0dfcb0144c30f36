"""A batch: padded tensors of pairs, perhaps with links between their pieces and with candidates.

It knows ids; it knows no corpora and no devices.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt.data.padding import Ids, padded_with_end
from nmt.symbols import BEGIN

Indices = npt.NDArray[np.integer]


class PieceLinks(NamedTuple):
    """The links between the pieces of a batch: A_tj of row i, where it is not 0. All tensors are (links,)."""

    rows: Tensor  # i, int64, in order
    targets: Tensor  # t, int64, a position of the target output
    sources: Tensor  # j, int64, a position of the source
    shares: Tensor  # A_tj, float32; those of one target position sum to 1

    def of_rows(self, rows: slice) -> "PieceLinks":
        """The links of some rows, which are counted from 0 then."""
        first, last = torch.searchsorted(self.rows, torch.tensor([rows.start, rows.stop], device=self.rows.device))
        return PieceLinks(self.rows[first:last] - rows.start, *(part[first:last] for part in self[1:]))

    def doubled(self, rows: int) -> "PieceLinks":
        """The links of all `rows` rows, and then the same links of as many rows after them."""
        again = PieceLinks(self.rows + rows, *self[1:])
        return PieceLinks(*(torch.cat(parts) for parts in zip(self, again, strict=True)))

    def to(self, device: torch.device | str) -> "PieceLinks":
        """The same links with their tensors on the device."""
        return PieceLinks(*(part.to(device) for part in self))


class Candidates(NamedTuple):
    """Translations of the sources of a batch, for minimum risk training: of each first its reference, then others."""

    target: Tensor  # (rows, target_length + 1) int64: those of the first source, then of the next; as in `Batch`
    target_lengths: Tensor  # (rows,) int64, pieces and END
    mask: Tensor  # (batch, most), True at candidates; the k-th True, counted row by row, is row k of `target`
    costs: Tensor  # (batch, most) float32, 0 for the reference

    @property
    def sources(self) -> Tensor:
        """The row of the batch that each candidate translates, (rows,) int64."""
        return self.mask.nonzero()[:, 0]

    def of_rows(self, rows: slice) -> "Candidates":
        """Those of some rows of the batch, trimmed to the padding they need."""
        counts = self.mask.sum(dim=1)
        first = int(counts[: rows.start].sum())
        here, most = slice(first, first + int(counts[rows].sum())), int(counts[rows].max())
        lengths = self.target_lengths[here]
        target = self.target[here, : int(lengths.max()) + 1]
        return Candidates(target, lengths, self.mask[rows, :most], self.costs[rows, :most])

    def to(self, device: torch.device | str) -> "Candidates":
        """The same candidates with their tensors on the device."""
        return Candidates(*(part.to(device) for part in self))


class Batch(NamedTuple):
    """Padded pairs: the input of one forward pass.

    Sources end with END, targets begin with BEGIN and end with END; PAD fills up shorter rows.
    """

    source: Tensor  # (batch, source_length) int64
    source_lengths: Tensor  # (batch,) int64, including END
    target: Tensor  # (batch, target_length + 1) int64
    target_lengths: Tensor  # (batch,) int64, pieces and END: the tokens to predict
    indices: Indices  # (batch,) rows of the corpus
    links: PieceLinks | None = None  # of a corpus with alignments
    fed: Tensor | None = None  # (batch, target_length), what the decoder reads if that is not the target
    candidates: Candidates | None = None  # for minimum risk training

    @property
    def target_input(self) -> Tensor:
        """The decoder's input, (batch, target_length): BEGIN and the pieces, or `fed`."""
        return self.target[:, :-1] if self.fed is None else self.fed

    @property
    def target_output(self) -> Tensor:
        """What the decoder has to predict, (batch, target_length): the pieces and END."""
        return self.target[:, 1:]

    @property
    def target_tokens(self) -> int:
        """Number of tokens that the decoder has to predict, without padding."""
        return int(self.target_lengths.sum())

    def halves(self) -> list["Batch"]:
        """The batch as two with half the rows each, trimmed to the padding they need; itself if it has one row."""
        rows = len(self.indices)
        if rows == 1:
            return [self]
        return [self._rows(slice(0, rows // 2)), self._rows(slice(rows // 2, rows))]

    def with_candidates_within(self, positions: int) -> list["Batch"]:
        """The batch, or parts of it whose candidates have at most so many positions, with padding; or one source."""
        if self.candidates is None or len(self.indices) == 1 or self.candidates.target.numel() <= positions:
            return [self]
        return [part for half in self.halves() for part in half.with_candidates_within(positions)]

    def doubled(self) -> "Batch":
        """All its pairs, and then the same pairs again."""
        source, source_lengths, target, target_lengths = (torch.cat((tensor, tensor)) for tensor in self[:4])
        links = None if self.links is None else self.links.doubled(len(self.indices))
        fed = None if self.fed is None else torch.cat((self.fed, self.fed))
        return Batch(source, source_lengths, target, target_lengths, np.tile(self.indices, 2), links, fed)

    def _rows(self, rows: slice) -> "Batch":
        source_lengths, target_lengths = self.source_lengths[rows], self.target_lengths[rows]
        source = self.source[rows, : int(source_lengths.max())]
        target = self.target[rows, : int(target_lengths.max()) + 1]
        links = None if self.links is None else self.links.of_rows(rows)
        fed = None if self.fed is None else self.fed[rows, : target.size(1) - 1]
        candidates = None if self.candidates is None else self.candidates.of_rows(rows)
        return Batch(source, source_lengths, target, target_lengths, self.indices[rows], links, fed, candidates)

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch with its tensors on the device."""
        parts = {name: part for name, part in self._asdict().items() if name != "indices" and part is not None}
        return self._replace(**{name: part.to(device) for name, part in parts.items()})


def make_batch(sources: Sequence[Ids], targets: Sequence[Ids], indices: Indices) -> Batch:
    """Return these pairs of ids, without special symbols so far, as a padded batch."""
    source, source_lengths = pad_with_end(sources)
    target, target_lengths = pad_with_end(targets)
    begin = torch.full((len(targets), 1), BEGIN)
    return Batch(source, source_lengths, torch.cat((begin, target), dim=1), target_lengths, indices)


def make_candidates(translations: Sequence[Sequence[Ids]], costs: Sequence[Sequence[float]]) -> Candidates:
    """Return the ids of the translations of each source, the reference first, and their costs, as padded tensors."""
    target, lengths = pad_with_end([ids for several in translations for ids in several])
    begin = torch.full((len(target), 1), BEGIN)
    counts = torch.tensor([len(several) for several in translations])
    mask = torch.arange(int(counts.max())) < counts.unsqueeze(1)
    padded = torch.zeros(mask.shape)
    padded[mask] = torch.tensor([cost for several in costs for cost in several])
    return Candidates(torch.cat((begin, target), dim=1), lengths, mask, padded)


def pad_with_end(sentences: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    """What `padded_with_end` returns, as tensors."""
    padded, lengths = padded_with_end(sentences)
    return torch.from_numpy(padded), torch.from_numpy(lengths)
