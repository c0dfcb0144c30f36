"""A trained model in one file: weights, resolved configuration and subword models, in the safetensors format.

Nothing in the file is ever executed. The subword models are bytes here: text is the business of `nmt.data`. PyTorch and
the networks are imported late: what a model is for is read without them. An export is a file of the same format with
the graphs that compute with the weights in place of the weights (`nmt.decoding.exports`).
"""

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import BaseModel, Field

from nmt.config.allowed import NO_FAMILIES, Families
from nmt.config.loading import dump_config, parse_config
from nmt.config.schema import Config
from nmt.errors import DamagedFile, UserError, first_of, nothing_at
from nmt.ops.memory import out_of_memory
from nmt.symbols import BEGIN, END
from nmt.tensor_file import DeclaredTensor, TensorFile, open_tensors, with_prefix, write_tensors

if TYPE_CHECKING:
    from torch import Tensor

    from nmt.models.seq2seq import Seq2Seq

KIND = "model"
LARGEST_WEIGHT = 1e6  # no weight of a model that learned anything comes near it; beyond it, translations are blank
_RUNS_SHOWN = 5  # of a folder of runs, where one was to be given
_WEIGHTS, _GRAPHS, _SOURCE, _TARGET = "weights.", "graphs.", "subwords.source", "subwords.target"
_EXPORTED = "exported"
BEST = "best.safetensors"
LONGEST_SOURCE = "longest_source"  # in `ModelFile.training`: pieces of the longest source line that was trained on


class Exported(BaseModel, frozen=True):
    """What an export says of its graphs, and these by name, where they have been read."""

    precision: Literal["float32", "int8"]
    parameters: int
    graphs: dict[str, bytes] = Field(default={}, exclude=True, repr=False)


class ModelFile(NamedTuple):
    """What a model file holds."""

    config: Config
    weights: "dict[str, Tensor]"
    source_subwords: bytes  # a serialized sentencepiece model
    target_subwords: bytes  # the same bytes as the source's when the vocabulary is joint
    sizes: tuple[int, int]  # source and target vocabulary
    training: dict[str, Any]  # how the weights came about: updates, epochs, validation metrics
    digest: str | None = None  # the checksum of all this that is in the file; None before it is in one
    exported: Exported | None = None  # an export, without weights


def save_model(path: Path, model: ModelFile) -> None:
    """Write `path` so that a crash leaves the old file or the new one."""
    tensors = {f"{_WEIGHTS}{name}": weight for name, weight in model.weights.items()}
    tensors[_SOURCE] = _as_tensor(model.source_subwords)
    if model.target_subwords != model.source_subwords:
        tensors[_TARGET] = _as_tensor(model.target_subwords)
    if model.exported is not None:
        tensors |= {f"{_GRAPHS}{name}": _as_tensor(content) for name, content in model.exported.graphs.items()}
    texts = {
        "config": dump_config(model.config),
        "sizes": json.dumps(model.sizes),
        "training": json.dumps(model.training),
        **({_EXPORTED: model.exported.model_dump_json()} if model.exported else {}),
    }
    write_tensors(path, tensors, kind=KIND, texts=texts)


def longest_trained(model: ModelFile) -> int:
    """The pieces of the longest source line that the model was trained on; a limit for it in files that do not say."""
    longest = model.training.get(LONGEST_SOURCE)
    return longest if type(longest) is int and longest > 0 else model.config.data.max_length


def model_path(path: Path) -> Path:
    """The model file that the user means: `path` itself, or the best model of the run folder `path`."""
    if path.is_dir():
        if (path / BEST).is_file():
            return path / BEST
        runs = sorted(best.parent.name for best in path.glob(f"*/{BEST}"))
        inside = f"; it holds {', '.join(first_of(runs, _RUNS_SHOWN))}" if runs else ""
        raise UserError(
            f"{path}: holds no {BEST}; give a model file, or the folder of a run that has validated at least once"
            f"{inside}"
        )
    if missing := nothing_at(path, "no such model file or run folder"):
        raise UserError(missing)
    return path


def is_export(path: Path) -> bool:
    """Whether a file is an export; False where it cannot be read."""
    with suppress(UserError), open_tensors(path, kind=KIND) as file:
        return _EXPORTED in file.texts
    return False


def load_model(path: Path, *, export: bool = False) -> ModelFile:
    """Read a model file, or the best model of a run folder. Raises UserError when it is damaged or no model of ours,
    and for an export, which has no weights, unless it may be an `export`.

    The file may come from a stranger: the weights that its configuration asks for are compared with those that it says
    it has before memory is asked for either, so that it takes no more than the file is long.
    """
    path = model_path(path)
    with open_tensors(path, kind=KIND) as file:
        try:
            head = _head(file) if _EXPORTED in file.texts else None
            if head is None:
                from nmt.models.combinations import FAMILIES

                config, sizes, training = _described(file.texts, FAMILIES)
                _check_declared(file.tensors, config, sizes)
        except DamagedFile:
            raise
        except UserError as error:  # of another version of the toolkit, with other keys
            raise UserError(f"{path}: its configuration cannot be read: {'; '.join(error.messages)}") from error
        except (KeyError, ValueError, RecursionError) as error:
            raise UserError(f"{path}: damaged: its parts do not fit together ({error})") from error
        if head is not None and head.exported is not None:
            if not export:
                raise UserError(
                    f"{path}: an export, which only translates, on a CPU, in {head.exported.precision}, and without a "
                    "shortlist; for anything else, give the model file that it was made of"
                )
            graphs = with_prefix(file.contents(), _GRAPHS)
            return head._replace(exported=head.exported.model_copy(update={"graphs": graphs}))
        tensors = file.read()
    weights = with_prefix(tensors, _WEIGHTS)
    for name, weight in weights.items():
        _check_values(path, name, weight)
    source = tensors[_SOURCE].numpy().tobytes()
    target = tensors[_TARGET].numpy().tobytes() if _TARGET in tensors else source
    return ModelFile(config, weights, source, target, sizes, training, file.digest)


def load_head(path: Path) -> ModelFile:
    """What a model file holds besides weights, unchecked: whoever trusts it has to know all this, `digest` included.

    Raises UserError like `load_model`.
    """
    try:
        with open_tensors(path, kind=KIND) as file:
            return _head(file)
    except (KeyError, ValueError, RecursionError, UserError):
        return load_model(path, export=True)  # which says what is wrong


def _head(file: TensorFile) -> ModelFile:
    config, sizes, training = _described(file.texts)
    exported = Exported.model_validate_json(file.texts[_EXPORTED]) if _EXPORTED in file.texts else None
    source = file.content(_SOURCE)
    target = file.content(_TARGET) if _TARGET in file.tensors else source
    return ModelFile(config, {}, source, target, sizes, training, file.digest, exported)


def _described(
    texts: Mapping[str, str], families: Families = NO_FAMILIES
) -> tuple[Config, tuple[int, int], dict[str, Any]]:
    """Configuration, sizes of the vocabularies, and how the weights came about.

    Raises UserError, KeyError or ValueError.
    """
    sizes, training = json.loads(texts["sizes"]), json.loads(texts["training"])
    if not (isinstance(sizes, list) and len(sizes) == 2 and all(type(size) is int and size > 0 for size in sizes)):
        raise ValueError("the sizes of its vocabularies are not two whole numbers above 0")
    if not isinstance(training, dict):
        raise ValueError("what it says about its training is not a JSON object")
    config = parse_config(texts["config"], families)
    return config, (sizes[0], sizes[1]), training


def _check_declared(tensors: Mapping[str, DeclaredTensor], config: Config, sizes: tuple[int, int]) -> None:
    """Raise ValueError unless the tensors are those of such a model."""
    from nmt.models.seq2seq import weight_shapes

    shapes = weight_shapes(config.model, source_size=sizes[0], target_size=sizes[1])
    needed = {f"{_WEIGHTS}{name}": DeclaredTensor("float32", shape) for name, shape in shapes.items()}
    for name in (_SOURCE, _TARGET):
        if name == _SOURCE or name in tensors:
            length = math.prod(tensors[name].shape) if name in tensors else 0
            needed[name] = DeclaredTensor("uint8", (length,))
    for name in [*needed, *tensors]:
        if tensors.get(name) != needed.get(name):
            both = (declared.get(name) for declared in (tensors, needed))
            there, expected = (f"{tensor.type} {tensor.shape}" if tensor else "absent" for tensor in both)
            raise ValueError(f"{name[:100]} is {there}, but {expected} in a model of its configuration")


def _check_values(path: Path, name: str, weight: "Tensor") -> None:
    """Raise UserError when a weight is NaN, or so large that only a training that diverged can have made it."""
    if weight.numel():
        lowest, highest = weight.aminmax()  # NaN if any is
        largest = max(abs(float(lowest)), abs(float(highest)))
        if not (float(lowest) == float(lowest) and largest <= LARGEST_WEIGHT):
            what = f"as large as {largest:.3g}" if math.isfinite(largest) else "not finite"
            raise UserError(
                f"{path}: of no use: its weights {name} are {what}, as after a training that diverged; give an earlier "
                "model"
            )


def rebuild(model: ModelFile) -> "Seq2Seq":
    """The network with the file's weights, in evaluation mode. Raises UserError when they do not fit, or each other."""
    import torch

    from nmt.models.seq2seq import restore_model

    try:
        source_size, target_size = model.sizes
        network = restore_model(model.config.model, model.weights, source_size=source_size, target_size=target_size)
        network.eval()
        with torch.inference_mode():  # parts that do not go together, such as a score and sizes that it does not take
            network.step(torch.tensor([BEGIN]), network.start(torch.tensor([[END]]), torch.tensor([1])))
    except RuntimeError as error:
        if out_of_memory(error):
            raise
        raise UserError(f"the model's weights do not fit its configuration: {error}") from error
    return network


def _as_tensor(content: bytes) -> "Tensor":
    import torch

    return torch.frombuffer(bytearray(content), dtype=torch.uint8)
