"""A model whose translation is the source itself, so that a test can see the right answer, and random ones."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from nmt.config.schema import DecodingConfig, ModelConfig, SubwordsConfig
from nmt.data.subwords import Subwords, Vocabularies
from nmt.data.words import PieceWords, spans_of_parts, words_of_parts
from nmt.decoding.translator import Translator
from nmt.models.scores import SCORES
from nmt.models.seq2seq import Seq2Seq, build_model

TEXT = [
    "A dog runs across the green field.",
    "Two men are sitting on a bench and reading the newspaper.",
    "The woman in the red dress is dancing!",
    "Is the boy playing with a ball?",
    "Children jump into the cold water of the lake.",
    "An old man sells fruit at the market, as he always does.",
]

DECODERS = {
    "luong": {"type": "luong"},
    "luong at once": {"type": "luong", "input_feeding": False},
    "bahdanau": {"type": "bahdanau"},
    "bahdanau paper": {"type": "bahdanau", "order": "paper"},
    "conditional_gru": {"type": "conditional_gru", "cell": "gru"},
}


def words_of_tokens(
    tokens: Sequence[int], subwords: Subwords, *, mark: str | None = None, finer: bool = False
) -> PieceWords:
    """The words of the text that tokens spell, in which `mark` stands for each unknown one."""
    text = subwords.decode(tokens) if mark is None else subwords.decode_marked(tokens, mark)
    return words_of_parts(text, spans_of_parts(subwords.text_parts(tokens, mark), text), finer=finer)


class CopyState(NamedTuple):
    source: Tensor  # (rows, source_length)
    position: int

    def select(self, rows: Tensor) -> "CopyState":
        return CopyState(self.source[rows.flatten()], self.position)


class CopyModel(nn.Module):
    """Gives the next piece of the source 0.9 of the probability and spreads the rest; notes what it was asked."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.decoder = SimpleNamespace(attention=SimpleNamespace(score=SCORES["none"](1, 1)))  # nothing is aligned
        self.vocabulary = vocabulary
        self.weight = nn.Parameter(torch.zeros(1))
        self.dropout = nn.Dropout(0.5)
        self.batches: list[tuple[int, int]] = []

    def start(self, source: Tensor, source_lengths: Tensor) -> CopyState:
        assert not self.training
        assert not self.dropout.training
        assert torch.is_inference_mode_enabled()
        self.batches.append(tuple(source.shape))
        return CopyState(source, 0)

    def step(self, tokens: Tensor, state: CopyState) -> tuple[Tensor, CopyState]:
        position = min(state.position, state.source.shape[1] - 1)
        probabilities = torch.full((len(tokens), self.vocabulary), 0.1 / (self.vocabulary - 1))
        probabilities.scatter_(1, state.source[:, position : position + 1], 0.9)
        return probabilities.log(), CopyState(state.source, state.position + 1)


def network(
    decoder: str = "luong",
    *,
    source_size: int = 13,
    target_size: int = 17,
    score: str = "additive",
    scale: float = 3.0,
    end_mark: bool = True,
) -> Seq2Seq:
    """A random network in float64, where batches change a result only through a mistake; the weights are scaled away
    from the uniform distribution."""
    torch.manual_seed(3)
    sizes = {
        "embedding_size": 5,
        "initialization": {"range": 0.1},
        "encoder": {"hidden_size": 3, "end_mark": end_mark},
        "decoder": {"hidden_size": 7, "dropout": 0.5, **DECODERS[decoder]},
        "attention": {"score": score},
    }
    model = build_model(ModelConfig.model_validate(sizes), source_size=source_size, target_size=target_size).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
    return model


def random_translator(vocabularies: Vocabularies, *, scale: float, longest_segment: int) -> Translator:
    """A random network, and its text."""
    model = network(source_size=vocabularies.source.size, target_size=vocabularies.target.size, scale=scale)
    decoding = DecodingConfig(max_length_ratio=1.0, max_length_extra=3)  # such networks hardly ever find an end
    return Translator([model], vocabularies, longest_segment=longest_segment, decoding=decoding)


@pytest.fixture(scope="session")
def vocabularies() -> Vocabularies:
    subwords = Subwords.train(TEXT, settings=SubwordsConfig(size=71))
    return Vocabularies(subwords, subwords)


@pytest.fixture
def copy_model(vocabularies: Vocabularies) -> CopyModel:
    return CopyModel(vocabularies.source.size)


@pytest.fixture(scope="session")
def text() -> Sequence[str]:
    return TEXT
