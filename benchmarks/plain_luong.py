#!/usr/bin/env python3
"""Luong's decoder again, without the toolkit, trained by the recipe of configs/research/attention_synthetic.yaml.

    python scripts/make_synthetic_corpus.py --output data/synthetic
    python benchmarks/plain_luong.py --score general
    python benchmarks/plain_luong.py --score dot --no-input-feeding --range 0.2

If a model in research/attention_table.md learns worse than expected, is it the model or our code? This is a second
opinion on training: layers, loss, gradients and optimizer are PyTorch's, batches and subwords are made here, and
nothing is imported from nmt. It knows the global scope with dot and general. It uses every pair, as all of the
synthetic corpus are shorter than the recipe's max_length.

The line for each epoch has the validation perplexity per subword piece, and the number of validation sentences in which
every piece is the most probable one after the preceding pieces of the reference.
"""

import argparse
import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import sentencepiece
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

PIECES, EMBEDDING, UNITS, DROPOUT = 800, 192, 128, 0.1
START, EPOCHS, BATCH, RATE, STEADY_EPOCHS, SMOOTHING, LONGEST_GRADIENT = 0.1, 10, 32, 4e-3, 6, 0.1, 1.0
PAD, UNKNOWN, BEGIN, END = range(4)

Pair = tuple[Tensor, Tensor]  # pieces of source and target, including END


class Batch(NamedTuple):
    """Padded sentences, each field (sentences, length)."""

    source: Tensor
    lengths: Tensor  # of the sources
    read: Tensor  # what the decoder reads: BEGIN and the target without END
    target: Tensor


class PlainLuong(nn.Module):
    """Global attention (Luong et al. 2015, equations 5, 7 and 8) to the annotations m_s, from h_0 = [→m_S; ←m_1]:

    h_t = GRU([E y_{t-1}; h̃_{t-1}], h_{t-1})        h̃_{t-1}, after its dropout, only with input feeding
    a_t = softmax(h_t·m_s, or h_t·W_a m_s)          dot, or general
    h̃_t = tanh(W_c [Σ_s a_t(s) m_s; h_t])
    """

    def __init__(self, score: str, *, input_feeding: bool, start: float) -> None:
        super().__init__()
        self.input_feeding = input_feeding
        self.source_embedding = nn.Embedding(PIECES, EMBEDDING)
        self.target_embedding = nn.Embedding(PIECES, EMBEDDING)
        self.encoder = nn.GRU(EMBEDDING, UNITS // 2, bidirectional=True, batch_first=True)
        self.cell = nn.GRUCell(EMBEDDING + (UNITS if input_feeding else 0), UNITS)
        self.general = nn.Linear(UNITS, UNITS, bias=False) if score == "general" else nn.Identity()
        self.combine = nn.Linear(2 * UNITS, UNITS, bias=False)
        self.output = nn.Linear(UNITS, PIECES, bias=False)
        self.drop = nn.Dropout(DROPOUT)
        for name, parameter in self.named_parameters():
            if "bias" in name:
                nn.init.zeros_(parameter)
            else:
                nn.init.uniform_(parameter, -start, start)

    def forward(self, batch: Batch) -> Tensor:
        """Logits, (sentences, target length, PIECES)."""
        embedded = self.drop(self.source_embedding(batch.source))
        packed = pack_padded_sequence(embedded, batch.lengths, batch_first=True, enforce_sorted=False)
        annotations, last = self.encoder(packed)
        memory, _ = pad_packed_sequence(annotations, batch_first=True)
        padding = torch.arange(memory.size(1)) >= batch.lengths.unsqueeze(1)
        keys = self.general(memory)
        state = torch.cat((last[0], last[1]), dim=1)
        fed = torch.zeros_like(state)
        vectors = []
        for word in self.drop(self.target_embedding(batch.read)).unbind(1):
            state = self.cell(torch.cat((word, fed), dim=1) if self.input_feeding else word, state)
            scores = (keys @ state.unsqueeze(2)).squeeze(2)
            weights = scores.masked_fill(padding, -torch.inf).softmax(dim=1)
            context = (weights.unsqueeze(1) @ memory).squeeze(1)
            fed = self.drop(self.combine(torch.cat((context, state), dim=1)).tanh())
            vectors.append(fed)
        return self.output(torch.stack(vectors, dim=1))


def read(folder: Path) -> dict[str, list[Pair]]:
    """The pairs of train and valid, in pieces of one BPE model learned from both sides of train.

    Raises OSError for a missing file, ValueError for unequal or no lines, RuntimeError if PIECES is too large.
    """
    files = {part: [folder / f"{part}.{language}" for language in ("en", "de")] for part in ("train", "valid")}
    lines = {part: [file.read_text(encoding="utf-8").splitlines() for file in both] for part, both in files.items()}
    for part, (source, target) in lines.items():
        if len(source) != len(target) or not source:
            raise ValueError(f"{part}.en has {len(source)} lines, {part}.de {len(target)}")
    with tempfile.TemporaryDirectory() as made:
        sentencepiece.SentencePieceTrainer.train(
            input=[str(file) for file in files["train"]], model_prefix=f"{made}/bpe", model_type="bpe",
            vocab_size=PIECES, character_coverage=1.0, minloglevel=2,
            pad_id=PAD, bos_id=BEGIN, eos_id=END, unk_id=UNKNOWN,
        )  # fmt: skip
        pieces = sentencepiece.SentencePieceProcessor(model_file=f"{made}/bpe.model")
    in_pieces = {part: [pieces.encode(side, add_eos=True) for side in both] for part, both in lines.items()}
    return {
        part: [(torch.tensor(a), torch.tensor(b)) for a, b in zip(*both, strict=True)]
        for part, both in in_pieces.items()
    }


def batched(pairs: Sequence[Pair]) -> Batch:
    source, target = (pad_sequence(list(side), batch_first=True) for side in zip(*pairs, strict=True))
    read = torch.cat((torch.full((len(pairs), 1), BEGIN), target[:, :-1]), dim=1)
    return Batch(source, torch.tensor([len(pair[0]) for pair in pairs]), read, target)


def shuffled(pairs: Sequence[Pair], sorted_together: int) -> Iterator[Batch]:
    """An epoch in random order, with pairs of similar length together among each `sorted_together` pairs."""
    order = torch.randperm(len(pairs)).tolist()
    groups = [order[first : first + sorted_together] for first in range(0, len(order), sorted_together)]
    ordered = [sorted(group, key=lambda index: len(pairs[index][1])) for group in groups]
    chosen = [group[first : first + BATCH] for group in ordered for first in range(0, len(group), BATCH)]
    for index in torch.randperm(len(chosen)).tolist():
        yield batched([pairs[number] for number in chosen[index]])


def loss_of(logits: Tensor, batch: Batch, *, smoothing: float = SMOOTHING) -> Tensor:
    """The smoothed cross-entropy, averaged over the pieces."""
    logits, targets = logits.flatten(0, 1), batch.target.flatten()
    return nn.functional.cross_entropy(logits, targets, ignore_index=PAD, label_smoothing=smoothing)


def rate(epoch: int) -> float:
    """The learning rate of an epoch, counted from 1."""
    return RATE * 0.5 ** max(0, epoch - STEADY_EPOCHS)


def train_epoch(model: PlainLuong, optimizer: torch.optim.Optimizer, batches: Iterator[Batch]) -> None:
    model.train()
    for batch in batches:
        optimizer.zero_grad()
        loss_of(model(batch), batch).backward()
        nn.utils.clip_grad_norm_(model.parameters(), LONGEST_GRADIENT)
        optimizer.step()


@torch.no_grad()
def validate(model: PlainLuong, pairs: Sequence[Pair]) -> tuple[float, int]:
    """Perplexity per piece, and the number of sentences in which every piece is the most probable one."""
    model.eval()
    loss, pieces, right = 0.0, 0, 0
    for first in range(0, len(pairs), BATCH):
        batch = batched(pairs[first : first + BATCH])
        logits = model(batch)
        padding = batch.target == PAD
        real = int((~padding).sum())
        loss += loss_of(logits, batch, smoothing=0.0).item() * real
        pieces += real
        right += int(((logits.argmax(dim=2) == batch.target) | padding).all(dim=1).sum())
    return math.exp(loss / pieces), right


def positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("--score", choices=("dot", "general"), default="general", help="of the attention (default: general)")
    add("--no-input-feeding", dest="input_feeding", action="store_false", help="do not feed h̃")
    add("--range", type=float, default=START, metavar="R", help="draw weights from [-R, R] (default: %(default)s)")
    add("--epochs", type=positive, default=EPOCHS, metavar="N", help="passes over the corpus (default: %(default)s)")
    add("--seed", type=int, default=1, metavar="N", help="of weights, order and dropout (default: %(default)s)")
    together = "pairs sorted by length together (default: %(default)s, 20 batches)"
    add("--sort-pairs", type=positive, default=20 * BATCH, metavar="N", help=together)
    add("--threads", type=positive, default=1, metavar="N", help="of PyTorch (default: %(default)s)")
    where = "folder with train and valid, .en and .de (default: %(default)s)"
    add("--corpus", type=Path, default=Path("data/synthetic"), metavar="DIR", help=where)
    options = parser.parse_args(arguments)
    if not options.range > 0:
        parser.error(f"--range: {options.range} is not positive")
    try:
        corpus = read(options.corpus)
    except (OSError, RuntimeError, ValueError) as error:
        parser.error(f"--corpus {options.corpus}: {error}; scripts/make_synthetic_corpus.py makes one")
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    model = PlainLuong(options.score, input_feeding=options.input_feeding, start=options.range)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for epoch in range(1, options.epochs + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate(epoch)
        train_epoch(model, optimizer, shuffled(corpus["train"], options.sort_pairs))
        perplexity, right = validate(model, corpus["valid"])
        sentences = f"{right} of {len(corpus['valid'])} sentences right"
        print(f"epoch {epoch}: perplexity {perplexity:.3f}, {sentences}", flush=True)


if __name__ == "__main__":
    main()
