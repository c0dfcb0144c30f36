#!/usr/bin/env python3
"""Luong's decoder once more, without the toolkit, trained by the recipe of configs/attention_synthetic.yaml.

    python scripts/make_synthetic_corpus.py --output data/synthetic
    python benchmarks/plain_luong.py --score general
    python benchmarks/plain_luong.py --score dot --no-input-feeding --range 0.2

Where models of the table learn worse than expected, is it the model or our code? This is a second opinion on training:
layers, loss, gradients and optimiser are PyTorch's own, batches and subwords are made here, and nothing of nmt is
imported. It knows the global scope with dot and general. The last line has the perplexity of the validation
corpus, a subword piece, and how many of its sentences have every piece right, given those before.
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
BATCH, RATE, STEADY_EPOCHS, SMOOTHING, LONGEST_GRADIENT = 32, 4e-3, 6, 0.1, 1.0
PAD, UNKNOWN, BEGIN, END = range(4)
MIXED = 20  # batches of similar length are cut from this many batches' sentences at a time

Pair = tuple[Tensor, Tensor]  # pieces of source and target, END included


class Batch(NamedTuple):
    """Padded sentences, (sentences, length) each."""

    source: Tensor
    lengths: Tensor  # of the sources
    read: Tensor  # by the decoder: BEGIN and the target without its END
    target: Tensor


class PlainLuong(nn.Module):
    """h_t = GRU([E y_{t-1}; h̃_{t-1}], h_{t-1}); a_t = softmax(m·h_t or m·W_a h_t); h̃_t = tanh(W_c [Σ a_t m; h_t])."""

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
    """The pairs of train and valid, in pieces of one BPE model learned from both sides of train."""
    with tempfile.TemporaryDirectory() as made:
        sentencepiece.SentencePieceTrainer.train(
            input=[str(folder / "train.en"), str(folder / "train.de")], model_prefix=f"{made}/bpe", model_type="bpe",
            vocab_size=PIECES, character_coverage=1.0, minloglevel=2,
            pad_id=PAD, bos_id=BEGIN, eos_id=END, unk_id=UNKNOWN,
        )  # fmt: skip
        pieces = sentencepiece.SentencePieceProcessor(model_file=f"{made}/bpe.model")

    def side(name: str) -> list[Tensor]:
        lines = (folder / name).read_text(encoding="utf-8").splitlines()
        return [torch.tensor(ids) for ids in pieces.encode(lines, add_eos=True)]

    return {part: list(zip(side(f"{part}.en"), side(f"{part}.de"), strict=True)) for part in ("train", "valid")}


def batched(pairs: Sequence[Pair]) -> Batch:
    source, target = (pad_sequence(list(side), batch_first=True) for side in zip(*pairs, strict=True))
    read = torch.cat((torch.full((len(pairs), 1), BEGIN), target[:, :-1]), dim=1)
    return Batch(source, torch.tensor([len(pair[0]) for pair in pairs]), read, target)


def shuffled(pairs: Sequence[Pair]) -> Iterator[Batch]:
    """An epoch: sentences of similar length together, everything in an order of chance."""
    order = torch.randperm(len(pairs)).tolist()
    groups = [order[first : first + MIXED * BATCH] for first in range(0, len(order), MIXED * BATCH)]
    ordered = [sorted(group, key=lambda index: len(pairs[index][1])) for group in groups]
    chosen = [group[first : first + BATCH] for group in ordered for first in range(0, len(group), BATCH)]
    for index in torch.randperm(len(chosen)).tolist():
        yield batched([pairs[number] for number in chosen[index]])


def loss_of(logits: Tensor, batch: Batch) -> Tensor:
    """The smoothed cross-entropy, a mean over the pieces."""
    logits, targets = logits.flatten(0, 1), batch.target.flatten()
    return nn.functional.cross_entropy(logits, targets, ignore_index=PAD, label_smoothing=SMOOTHING)


def train_epoch(model: PlainLuong, optimizer: torch.optim.Optimizer, pairs: Sequence[Pair]) -> None:
    model.train()
    for batch in shuffled(pairs):
        optimizer.zero_grad()
        loss_of(model(batch), batch).backward()
        nn.utils.clip_grad_norm_(model.parameters(), LONGEST_GRADIENT)
        optimizer.step()


@torch.no_grad()
def validate(model: PlainLuong, pairs: Sequence[Pair]) -> tuple[float, int]:
    """Perplexity a piece, and the number of sentences whose every piece is the most probable one."""
    model.eval()
    loss, words, right = 0.0, 0, 0
    for first in range(0, len(pairs), BATCH):
        batch = batched(pairs[first : first + BATCH])
        logits = model(batch)
        padding = batch.target == PAD
        loss += nn.functional.cross_entropy(
            logits.flatten(0, 1), batch.target.flatten(), ignore_index=PAD, reduction="sum"
        ).item()
        words += int((~padding).sum())
        right += int(((logits.argmax(dim=2) == batch.target) | padding).all(dim=1).sum())
    return math.exp(loss / words), right


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--score", choices=("dot", "general"), default="general", help="of the attention")
    parser.add_argument("--no-input-feeding", dest="input_feeding", action="store_false", help="h̃ is not fed")
    parser.add_argument("--range", type=float, default=0.1, metavar="R", help="weights start from [-R, R]")
    parser.add_argument("--epochs", type=int, default=10, metavar="N", help="over the training corpus")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of weights, order and dropout")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of PyTorch")
    parser.add_argument("--corpus", type=Path, default=Path("data/synthetic"), metavar="DIR", help="train and valid")
    given = parser.parse_args(arguments)
    torch.set_num_threads(given.threads)
    torch.manual_seed(given.seed)
    corpus = read(given.corpus)
    model = PlainLuong(given.score, input_feeding=given.input_feeding, start=given.range)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for epoch in range(1, given.epochs + 1):
        for group in optimizer.param_groups:
            group["lr"] = RATE * 0.5 ** max(0, epoch - STEADY_EPOCHS)
        train_epoch(model, optimizer, corpus["train"])
        perplexity, right = validate(model, corpus["valid"])
        whole = f"{right} of {len(corpus['valid'])} sentences right"
        print(f"epoch {epoch}: perplexity {perplexity:.3f}, {whole}", flush=True)


if __name__ == "__main__":
    main()
