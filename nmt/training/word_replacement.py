"""Random words instead of some that the model reads in training, so that it learns to do without any one of them.

    x̃_i = x_i with probability 1 - p, and otherwise a word drawn uniformly from the vocabulary, x_i among them

for each position i by itself, and likewise for what the decoder reads; what it has to predict stays. Special symbols
are neither replaced nor drawn. Wang, Pham, Dai & Neubig (2018), "SwitchOut", arXiv 1808.07512, draw the words in this
way, too, but first how many of a sentence are replaced, and replace those of the reference as well.
"""

import torch
from torch import Tensor

from nmt.config.schema import WordReplacement
from nmt.data.batch import Batch
from nmt.symbols import PIECES


def with_replaced_words(batch: Batch, rates: WordReplacement, *, sizes: tuple[int, int]) -> Batch:
    """The batch with words of both sides replaced; `sizes` are those of the vocabularies."""
    source = replaced(batch.source, rates.source, size=sizes[0])
    return batch._replace(source=source, fed=replaced(batch.target_input, rates.target, size=sizes[1]))


def replaced(words: Tensor, rate: float, *, size: int) -> Tensor:
    """`words` (batch, length) with random ones in their places, drawn from PyTorch's generator of their device."""
    if rate == 0.0:
        return words
    first = len(PIECES)
    drawn = torch.randint(first, size, words.shape, device=words.device)
    leaves = (torch.rand(words.shape, device=words.device) < rate) & (words >= first)
    return torch.where(leaves, drawn, words)
