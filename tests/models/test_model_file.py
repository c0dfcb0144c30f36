"""Model files from a stranger: whatever is in them, they are refused in one message, in the memory that they have."""

import json
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.data.subwords import Vocabularies
from nmt.errors import UserError
from nmt.models.model_file import KIND, load_model, rebuild
from tests.hostile_files import parts, rewrite, write_parts

GIB = 1 << 30
Change = Callable[[dict[str, Tensor], dict[str, Any]], None]


@pytest.fixture
def _little_memory() -> Iterator[None]:
    """A GiB more than the process has now."""
    sizes = Path("/proc/self/statm")
    if not sizes.exists():
        pytest.skip("only Linux says how much memory a process has, and bounds it")
    pages = int(sizes.read_text(encoding="ascii").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + GIB, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def refused(model: Path, tmp_path: Path, change: Change) -> str:
    """What is said of a copy of the model that was changed."""
    path = rewrite(model, KIND, change, to=tmp_path / "hostile.safetensors")
    with pytest.raises(UserError, match=r"hostile\.safetensors: ") as error:
        load_model(path)
    assert len(error.value.messages) == 1
    assert len(str(error.value)) < 1000
    return str(error.value)


SIZES = ["5", "", "[43]", "[0, 43]", "[true, 43]", "[44, 43]", "[1000000000000, 43]", "[" * 100_000, "[NaN, 43]"]


@pytest.mark.parametrize(
    ("name", "text"),
    [*(("sizes", text) for text in SIZES), *(("training", text) for text in ("5", "[]", "{", "[" * 100_000))],
    ids=lambda text: text[:20],
)
def test_what_is_beside_the_weights(name: str, text: str, model: Path, tmp_path: Path) -> None:
    message = refused(model, tmp_path, lambda _, texts: texts.update({name: text}))
    assert "damaged: its parts do not fit together" in message


@pytest.mark.parametrize("name", ["config", "sizes"])
@pytest.mark.parametrize("value", [5, ["a"]], ids=str)
def test_texts_that_are_no_texts(name: str, value: Any, model: Path, tmp_path: Path) -> None:
    header, data = parts(model)
    texts = json.loads(header["__metadata__"]["nmt-toolkit"])
    header["__metadata__"]["nmt-toolkit"] = json.dumps({**texts, name: value})
    path = tmp_path / "hostile.safetensors"
    write_parts(path, header, data)
    with pytest.raises(UserError, match=r"hostile\.safetensors: damaged, or not a model .*its texts are not text"):
        load_model(path)


@pytest.mark.parametrize("name", ["config", "sizes", "training"])
def test_texts_that_are_absent(name: str, model: Path, tmp_path: Path) -> None:
    def remove(_: dict[str, Tensor], texts: dict[str, Any]) -> None:
        del texts[name]

    assert f"do not fit together ('{name}')" in refused(model, tmp_path, remove)


@pytest.mark.usefixtures("_little_memory")
@pytest.mark.parametrize("size", ["12000", "1000000"])
@pytest.mark.parametrize("key", ["hidden_size", "layers", "embedding_size"])
def test_a_configuration_larger_than_the_weights_asks_for_no_memory(
    key: str, size: str, model: Path, tmp_path: Path
) -> None:
    size = "100" if key == "layers" else size

    def enlarge(_: dict[str, Tensor], texts: dict[str, Any]) -> None:
        old = {"hidden_size": ("3", "7"), "layers": ("1",), "embedding_size": ("5",)}[key]
        for number in old:
            texts["config"] = texts["config"].replace(f"{key}: {number}\n", f"{key}: {size}\n")
        assert f"{key}: {size}" in texts["config"]

    message = refused(model, tmp_path, enlarge)
    assert "damaged: its parts do not fit together (weights." in message
    assert "in a model of its configuration" in message


@pytest.mark.parametrize("type_", [torch.int64, torch.float64, torch.bfloat16])
def test_weights_of_another_type(type_: torch.dtype, model: Path, tmp_path: Path) -> None:
    name = "weights.source_embedding.weight"

    def cast(tensors: dict[str, Tensor], _: dict[str, Any]) -> None:
        tensors[name] = tensors[name].to(type_)

    kind = str(type_).removeprefix("torch.")
    assert f"{name} is {kind} (43, 5), but float32 (43, 5) in a model" in refused(model, tmp_path, cast)


def test_weights_of_another_name_or_number(model: Path, tmp_path: Path) -> None:
    def add(tensors: dict[str, Tensor], _: dict[str, Any]) -> None:
        tensors["weights.more"] = torch.zeros(2)

    def remove(tensors: dict[str, Tensor], _: dict[str, Any]) -> None:
        del tensors["weights.source_embedding.weight"]

    def without_subwords(tensors: dict[str, Tensor], _: dict[str, Any]) -> None:
        del tensors["subwords.source"]

    assert "weights.more is float32 (2,), but absent in a model" in refused(model, tmp_path, add)
    assert "source_embedding.weight is absent, but float32 (43, 5)" in refused(model, tmp_path, remove)
    assert "subwords.source is absent, but uint8" in refused(model, tmp_path, without_subwords)


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (float("nan"), "not finite"),
        (float("inf"), "not finite"),
        (-float("inf"), "not finite"),
        (-1e30, "as large as 1e+30"),
    ],
)
def test_weights_of_a_training_that_diverged(value: float, what: str, model: Path, tmp_path: Path) -> None:
    """Those of 1e30 are finite, and translations with them were blank lines."""
    name = "weights.source_embedding.weight"

    def spoil(tensors: dict[str, Tensor], _: dict[str, Any]) -> None:
        tensors[name][3, 2] = value

    message = refused(model, tmp_path, spoil)
    assert f"of no use: its weights source_embedding.weight are {what}, as after a training that diverged" in message


@pytest.mark.parametrize(
    "change",
    [("score: additive", "score: dot"), ("initial_state: final", "initial_state: copy"), ("cell: gru", "cell: lstm")],
)
def test_parts_that_do_not_go_together(change: tuple[str, str], model: Path, tmp_path: Path) -> None:
    """A configuration that would have been refused, in a file whose weights are those that it asks for."""

    def contradict(tensors: dict[str, Tensor], texts: dict[str, Any]) -> None:
        texts["config"] = texts["config"].replace(*change)
        for name in [name for name in tensors if change[1] == "score: dot" and ".score." in name]:
            del tensors[name]
        for name in [name for name in tensors if "copy" in change[1] and "initial_state" in name]:
            del tensors[name]

    path = rewrite(model, KIND, contradict, to=tmp_path / "hostile.safetensors")
    with pytest.raises(UserError, match="do not fit"):
        rebuild(load_model(path))


@pytest.mark.parametrize("text", ["a: &a [1]\nb: [*a, *a]\n", "[" * 5000, "x", "", "\0"])
def test_configurations(text: str, model: Path, tmp_path: Path) -> None:
    message = refused(model, tmp_path, lambda _, texts: texts.update(config=text))
    assert "its configuration cannot be read: " in message


def test_subwords_of_another_number_of_pieces(model: Path) -> None:
    file = load_model(model)
    with pytest.raises(ValueError, match="one with 43 pieces, where there should be 44"):
        Vocabularies.from_bytes(file.source_subwords, file.target_subwords, (43, 44))


def test_what_is_no_subword_model(model: Path, tmp_path: Path) -> None:
    for content in (torch.zeros(0, dtype=torch.uint8), torch.full((1 << 20,), 255, dtype=torch.uint8)):
        file = load_model(
            rewrite(
                model,
                KIND,
                lambda tensors, _, content=content: tensors.update({"subwords.source": content}),
                to=tmp_path / "hostile.safetensors",
            )
        )
        with pytest.raises(ValueError, match="not a sentencepiece model"):
            Vocabularies.from_bytes(file.source_subwords, file.target_subwords, file.sizes)
