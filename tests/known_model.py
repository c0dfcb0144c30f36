"""A translator set by hand, weight by weight, whose translations and alignments are known before it is run.

It translates one sentence. Every state is the one-hot code of one word: the encoder's of the word it stands on, the
decoder's of the word it has just read (its update gate is shut and its recurrent weights are 0, so it forgets the
rest). The attention score W_a (word just read, source word) is large exactly where the next source word is meant, and
the vector that the output layer reads is the code of that source word's translation. So attention decides what is
written, and what it attends to is the right alignment.

Or the attention knows the places of words as well: those of a window around the target position (local-m), those around
a position that the word just read predicts (local-p), or places alone (location).

Bahdanau's decoder in the paper's order attends before it reads, with the state that has read the word before last; that
is the one difference between the decoders.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.config.schema import Config, SubwordsConfig
from nmt.data.subwords import Subwords
from nmt.models.model_file import ModelFile, save_model
from nmt.models.scopes import LocalPredictiveScope
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.pharaoh import Link
from nmt.symbols import BEGIN, END, PAD

DECODERS: dict[str, dict[str, Any]] = {
    "luong": {"type": "luong", "cell": "gru"},
    "luong without feeding": {"type": "luong", "cell": "gru", "input_feeding": False},
    "bahdanau": {"type": "bahdanau", "cell": "gru"},
    "bahdanau in the paper's order": {"type": "bahdanau", "cell": "gru", "order": "paper"},
    "conditional_gru": {"type": "conditional_gru", "cell": "gru"},
}
ATTENTIONS: dict[str, dict[str, Any]] = {  # each as narrow as it can be
    "global": {"score": "general"},
    "local-m": {"score": "general", "scope": "local-m"},
    "local-p": {"score": "general", "scope": "local-p", "half_width": 1},
    "location": {"score": "location"},
}
SHARP = 30.0  # the score of what is attended to; all others score 0
SURE = 20.0  # what the logistic function and tanh take for infinite


def save_known_model(
    path: Path,
    source: Sequence[str],
    target: Sequence[str],
    links: Sequence[Link],
    *,
    decoder: str = "luong",
    attention: str = "global",
    split: bool = False,
    certainty: float = 8.0,
) -> None:
    """Write a model that translates the words `source` into `target`, word by word along `links`; as it normalizes
    nothing, it is so small that PyTorch computes it and not ONNX Runtime.

    Each word stands once in its sentence, and each target word has one link. `split`: words are cut into a piece for
    each letter, of which no side has one twice, and links are those of pieces. `certainty`: by what the logit of the
    word that is meant exceeds the others; almost that, as tanh stays below 1.
    """
    sides = [(_letter_model if split else _word_model)(words) for words in (source, target)]
    size = max(side.size for side in sides)
    ids = [side.encode(" ".join(words)) for side, words in zip(sides, (source, target), strict=True)]
    assert all(len(set(side)) == len(side) for side in ids)
    places = [source for source, _ in sorted(links, key=lambda link: link[1])]  # what each target piece attends to
    assert len(places) == len(ids[1])
    scope = dict(ATTENTIONS[attention])
    if attention == "local-m":
        scope["half_width"] = max(abs(place - time) for time, place in enumerate([*places, len(ids[0])]))
    corpus = {"source": "a", "target": "b"}
    config = Config.model_validate(
        {
            "name": "known",
            "data": {"source_language": "en", "target_language": "de", "train": [corpus], "valid": corpus},
            "subwords": {"type": "bpe" if split else "word", "joint": False},
            "model": {
                "embedding_size": size,
                "encoder": {"cell": "gru", "hidden_size": size, "bidirectional": False},
                "attention": scope,
                "decoder": {**DECODERS[decoder], "hidden_size": size, "output_size": size, "initial_state": "final"},
            },
        }
    )
    model = build_model(config.model, source_size=sides[0].size, target_size=sides[1].size)
    order = [ids[0][place] for place in places]  # the source words in the order of their translations
    reads = _reads(decoder, order, ids[1])
    _set(model, dict(zip([*order, END], [*ids[1], END], strict=True)), reads, certainty)
    _set_places(model, {word: [*ids[0], END].index(attended) for word, attended in reads.items()}, len(ids[0]))
    save_model(
        path,
        ModelFile(
            config=config,
            weights=model.state_dict(),
            source_subwords=sides[0].model,
            target_subwords=sides[1].model,
            sizes=(sides[0].size, sides[1].size),
            training={},
        ),
    )


def _word_model(words: Sequence[str]) -> Subwords:
    """One piece for each word, besides the four special symbols."""
    assert len(set(words)) == len(words)
    return Subwords.train(
        [" ".join(words)], settings=SubwordsConfig(type="word", size=len(words) + 4, normalization="identity")
    )


def _letter_model(words: Sequence[str]) -> Subwords:
    """One piece for each letter, the first of a word with the mark that words begin with."""
    text = " ".join(words)
    firsts = [" ".join([word[0]] * 10) for word in words]  # so often that they are joined to their marks, and no others
    size = 4 + len({*text.replace(" ", ""), "▁"}) + len(words)
    subwords = Subwords.train([text, *firsts], settings=SubwordsConfig(type="bpe", size=size, normalization="identity"))
    letters = [f"▁{letter}" if index == 0 else letter for word in words for index, letter in enumerate(word)]
    assert subwords.pieces(subwords.encode(text)) == letters
    return subwords


def _reads(decoder: str, order: Sequence[int], target: Sequence[int]) -> dict[int, int]:
    """For each word that the decoder's query stands for, the source word that it is to attend to."""
    read = [BEGIN, *target]
    if decoder == "bahdanau in the paper's order":
        read = [PAD, *read[:-1]]  # PAD stands for the first state, which has read nothing
    return dict(zip(read, [*order, END], strict=True))


@torch.no_grad()
def _set(model: Seq2Seq, translations: dict[int, int], reads: dict[int, int], certainty: float) -> None:
    for parameter in model.parameters():
        parameter.zero_()
    size = model.decoder.size
    for embedding in (model.source_embedding, model.target_embedding):
        embedding.weight.copy_(torch.eye(*embedding.weight.shape))
    network = model.encoder.network
    _forget_all_but_input(network.weight_ih_l0, network.bias_ih_l0, size)
    cell = model.decoder.cells[0]
    _forget_all_but_input(cell.input_layer.weight, cell.input_layer.bias, size)
    model.initial_state.layer.bias[PAD] = 3.0
    if not model.decoder.attention.score.positional:
        for word, source in reads.items():
            model.decoder.attention.score.layer.weight[word, source] = SHARP
    for source, target in translations.items():
        if hasattr(model.decoder, "combine"):  # h̃ = tanh(W [c; h])
            model.decoder.combine.weight[target, source] = 3.0
        elif model.decoder.readout.weight.size(0) == size:  # tanh(W [s; E y; c])
            model.decoder.readout.weight[target, 2 * size + source] = 3.0
        else:  # the larger of rows 2 j and 2 j + 1 of W [s; E y; c]
            model.decoder.readout.weight[2 * target : 2 * target + 2, 2 * size + source] = 1.0
    model.output_weight.copy_(certainty * torch.eye(*model.output_weight.shape))


@torch.no_grad()
def _set_places(model: Seq2Seq, places: dict[int, int], last: int) -> None:
    """Have each word that the query stands for look at its source position, of 0 to `last`, for its place alone."""
    attention = model.decoder.attention
    if attention.score.positional:
        for word, place in places.items():
            attention.score.layer.weight[place, word] = SHARP
    if isinstance(attention.scope, LocalPredictiveScope):  # last · σ(v_word tanh(∞) / √d) = place
        attention.scope.layer.weight.copy_(SURE * torch.eye(*attention.scope.layer.weight.shape))
        for word, place in places.items():
            logit = torch.logit(torch.tensor(place / last)).clamp(-SURE, SURE)
            attention.scope.vector[word] = logit * attention.scope.vector.numel() ** 0.5


def _forget_all_but_input(weight: Tensor, bias: Tensor, size: int) -> None:
    """Gates r, z, n: z is shut, and n = tanh(3 x)."""
    bias[size : 2 * size] = -100.0
    weight[2 * size :].copy_(3.0 * torch.eye(size, weight.size(1)))
