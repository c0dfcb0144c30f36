"""Which continuations are worth a look: the best of each lane, in an order that leaves nothing to chance.

A lane is a set of hypotheses that compete with each other, see `loop.py`. Equal values keep the order of their places,
so that no result depends on how a library sorts. It knows tensors only.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from nmt.symbols import BEGIN, END, PAD

NEVER = float("-inf")
BLOCK = 64  # columns whose largest value PyTorch finds at the speed of the memory
MORE = 16  # blocks to look at in addition, where values at the border are equal


class NotNumbersError(RuntimeError):
    """A model's log-probabilities are NaN, or -inf for all that could be written."""


def not_numbers(length: int) -> NotNumbersError:
    """The error of NaN among the log-probabilities of token number `length`."""
    return NotNumbersError(f"the model's log-probabilities for target token {length} are not numbers (NaN)")


class Continuations(NamedTuple):
    """The best continuations of each lane, best first: (lanes, count) each."""

    totals: Tensor  # the summed log-probability, in float64
    origins: Tensor  # the hypothesis that is continued, as its place in the lane
    tokens: Tensor


class Ending(NamedTuple):
    """The hypotheses that end with a step: (lanes, any number) each."""

    totals: Tensor  # the summed log-probability, in float64; -inf stands for a hypothesis that does not end
    origins: Tensor


class Choice(NamedTuple):
    """The hypotheses that live on after a step, (lanes, at most beam_size) each, and those that end with it."""

    live: Tensor  # the summed log-probability, in float64; -inf where there is no hypothesis
    tokens: Tensor
    origins: Tensor  # the hypothesis that is continued, as its place in the lane
    ending: Ending | None = None  # None where nothing ends


def split(continuations: Continuations, beam_size: int) -> Choice:
    """An END among the first `beam_size` ends a hypothesis; of the others the first `beam_size` live on."""
    totals, origins, tokens = continuations
    ends = tokens == END
    if not bool(ends.any()):
        return Choice(totals[:, :beam_size], tokens[:, :beam_size], origins[:, :beam_size])
    ending = None
    if bool(ends[:, :beam_size].any()):
        ending = Ending(totals.masked_fill(~ends, NEVER)[:, :beam_size], origins[:, :beam_size])
    live, order = descending(totals.masked_fill(ends, NEVER), beam_size)
    return Choice(live, tokens.gather(1, order), origins.gather(1, order), ending)


def best_continuations(live: Tensor, log_probabilities: Tensor, count: int, time: int) -> Continuations:
    """The best `count` continuations of each lane, fewer if there are fewer.

    `live` (lanes, width) are the log-probabilities of the hypotheses, in float64, `log_probabilities` (lanes × width,
    vocabulary) those of their next tokens; in the latter, PAD and BEGIN are set to -inf in place. The result is that of
    a stable descending sort of each lane's sums, at a fraction of its cost; the order of impossible continuations, of
    total -inf, is not defined. Raises NotNumbersError for NaN.
    """
    log_probabilities[:, PAD] = NEVER
    log_probabilities[:, BEGIN] = NEVER
    vocabulary = log_probabilities.size(1)
    totals, places = _largest_sums(live, log_probabilities.view(*live.shape, vocabulary), count)
    if bool(totals[:, 0].isnan().any()):
        raise not_numbers(time + 1)
    if live.size(1) == 1:
        return Continuations(totals, torch.zeros_like(places), places)
    origins = torch.div(places, vocabulary, rounding_mode="floor")
    return Continuations(totals, origins, places - origins * vocabulary)


def best_tokens(log_probabilities: Tensor, count: int, time: int) -> tuple[Tensor, Tensor]:
    """The best `count` tokens of each row: values in float64, and ids; `best_continuations` of every row by itself."""
    nothing = torch.zeros(len(log_probabilities), 1, dtype=torch.float64, device=log_probabilities.device)
    totals, _, tokens = best_continuations(nothing, log_probabilities, count, time)
    return totals, tokens


def only_end(log_probabilities: Tensor, rows: Tensor) -> None:
    """Set all but END to -inf, in place, in the rows where `rows` (rows,) is True."""
    ends = log_probabilities[:, END].clone()
    log_probabilities.masked_fill_(rows.unsqueeze(1), NEVER)
    log_probabilities[:, END] = ends


def _largest_sums(live: Tensor, added: Tensor, count: int, extra: int = 1) -> tuple[Tensor, Tensor]:
    """The largest `count` of live_h + added_hv of each lane, and their places h × vocabulary + v.

    `live` (lanes, width), `added` (lanes, width, vocabulary). Only those `count` + `extra` blocks of columns
    are searched in which the largest sums are; more of them where a sum left out may be equal to one of the result.
    """
    _, width, vocabulary = added.shape
    blocks = -(-vocabulary // BLOCK)
    if width * blocks <= 2 * (count + extra):
        return descending((live.unsqueeze(2) + added).flatten(1), count)
    maxima = live.unsqueeze(2) + _block_maxima(added)
    border, chosen = maxima.flatten(1).topk(count + extra, dim=1)
    chosen = chosen.sort(dim=1).values  # so that all that follows is in the order of the places
    owners = torch.div(chosen, blocks, rounding_mode="floor")
    places = (chosen * BLOCK).unsqueeze(2) + torch.arange(BLOCK, device=live.device)
    if missing := blocks * BLOCK - vocabulary:  # columns, of each hypothesis's last block
        places -= (owners * missing).unsqueeze(2)
        beyond = places >= ((owners + 1) * vocabulary).unsqueeze(2)
        places.masked_fill_(beyond, 0)
    sums = live.gather(1, owners).unsqueeze(2) + added.flatten(1).gather(1, places.flatten(1)).view(places.shape)
    if missing:
        sums.masked_fill_(beyond, NEVER)
    sums, places = sums.flatten(1), places.flatten(1)
    largest, order = sums.topk(count + 1, dim=1)
    tied = ((largest[:, 1:] == largest[:, :-1]) & (largest[:, 1:] > NEVER)).any(dim=1)
    if not bool(tied.any()):
        return largest[:, :count], places.gather(1, order[:, :count])
    largest[tied], order[tied] = descending(sums[tied], count + 1)
    largest, places = largest[:, :count], places.gather(1, order[:, :count])
    left_out = tied & (largest[:, -1] == border[:, -1]) & (largest[:, -1] > NEVER)
    if bool(left_out.any()):
        more = MORE if extra < MORE else width * blocks
        largest[left_out], places[left_out] = _largest_sums(live[left_out], added[left_out], count, extra + more)
    return largest, places


def _block_maxima(values: Tensor) -> Tensor:
    """The largest value of every BLOCK columns, of which the last block may have fewer: (…, columns) → (…, blocks)."""
    whole = values.size(-1) // BLOCK * BLOCK
    maxima = values[..., :whole].unflatten(-1, (-1, BLOCK)).amax(dim=-1)
    if whole == values.size(-1):
        return maxima
    return torch.cat([maxima, values[..., whole:].amax(dim=-1, keepdim=True)], dim=-1)


def descending(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest `count` values of each row, and their places; equal values keep their order."""
    values, order = torch.sort(values, dim=1, descending=True, stable=True)
    return values[:, :count], order[:, :count]
