"""What TensorBoard shows of a run, in its formats: numbers, pictures, texts, a histogram, and the configuration.

It knows values and tags; it knows no files.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata  # type: ignore[import-untyped]
from tensorboard.compat.proto.tensor_pb2 import TensorProto  # type: ignore[import-untyped]
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto  # type: ignore[import-untyped]
from tensorboard.compat.proto.types_pb2 import DT_DOUBLE, DT_FLOAT, DT_STRING  # type: ignore[import-untyped]
from tensorboard.plugins.hparams import plugin_data_pb2 as hparams  # type: ignore[import-untyped]

from nmt.config import Config
from nmt.evaluation.alignment_plot import Fonts
from nmt.evaluation.heat_map import heat_map
from nmt.training.gradient_norms import Counts, histogram
from nmt.training.samples import LONGEST, Sample, as_markdown

Hyperparameters = Mapping[str, bool | float | str]
Values = list[Any]  # of class Summary.Value

_SUCCESS = 1  # of tensorboard.plugins.hparams.api_pb2.Status
_STARTED, _ENDED = "_hparams_/session_start_info", "_hparams_/session_end_info"


def scalars(group: str, numbers: Mapping[str, float | None]) -> Values:
    """Numbers under the tags group/name; None, which stands for what is not finite, is NaN."""
    return [
        Summary.Value(tag=f"{group}/{name}", simple_value=math.nan if value is None else value)
        for name, value in numbers.items()
    ]


def gradient_norms(counts: Counts) -> Values:
    """The histogram of gradient norms, if there were any."""
    if not counts:
        return []
    buckets = histogram(counts)
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=len(buckets)), TensorShapeProto.Dim(size=3)])
    numbers = [number for bucket in buckets for number in bucket]
    tensor = TensorProto(dtype=DT_DOUBLE, tensor_shape=shape, double_val=numbers)
    return [Summary.Value(tag="train/gradient_norms", metadata=_metadata("histograms"), tensor=tensor)]


def samples(shown: Sequence[Sample], fonts: Fonts | None) -> Iterator[Any]:
    """The text of each sample and the picture of its attention, where there is any; numbered from 1.

    Only the first LONGEST pieces of a translation are in the picture: a model that has learned little may not end.
    """
    digits = len(str(len(shown)))
    for number, sample in enumerate(shown, 1):
        text = TensorProto(dtype=DT_STRING, string_val=[as_markdown(sample).encode()])
        yield Summary.Value(tag=f"translation/{number:0{digits}}", metadata=_metadata("text"), tensor=text)
        if sample.weights is not None and sample.weights.size:
            pieces, weights = sample.target_pieces[:LONGEST], sample.weights[:LONGEST]
            picture = heat_map(sample.source_pieces, pieces, weights, fonts=fonts)
            image = Summary.Image(
                height=picture.height, width=picture.width, colorspace=3, encoded_image_string=picture.png
            )
            yield Summary.Value(tag=f"attention/{number:0{digits}}", image=image)


def hyperparameters(config: Config) -> dict[str, bool | float | str]:
    """The keys of a configuration by which runs are compared, with dots between sections: all but names and files."""
    of_data = {"source_language", "target_language", "train", "valid", "watch", "cache_folder"}
    values = config.model_dump(mode="json", exclude={"name": True, "data": of_data})
    return dict(_leaves(values, ""))


def _leaves(section: Mapping[str, Any], before: str) -> Iterator[tuple[str, bool | float | str]]:
    for key, value in section.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{before}{key}.")
        elif value is not None:
            yield f"{before}{key}", value if isinstance(value, bool | int | float) else str(value)


def started(values: Hyperparameters, at: float) -> Values:
    """That a run with these hyperparameters started `at` a time in seconds, for the table that compares runs.

    The table shows the last of each of a run's numbers beside them, so it needs no others.
    """
    info = hparams.SessionStartInfo(start_time_secs=at)
    for name, value in values.items():
        kind = "bool_value" if isinstance(value, bool) else "string_value" if isinstance(value, str) else "number_value"
        setattr(info.hparams[name], kind, value)
    return _of_session(_STARTED, hparams.HParamsPluginData(session_start_info=info))


def ended(at: float) -> Values:
    """That the run has come to its end."""
    info = hparams.SessionEndInfo(status=_SUCCESS, end_time_secs=at)
    return _of_session(_ENDED, hparams.HParamsPluginData(session_end_info=info))


def is_end(value: Any) -> bool:
    """Whether it is what `ended` says."""
    return bool(value.tag == _ENDED)


def is_shown(value: Any) -> bool:
    """Whether it belongs to a validation, and cannot be made again from the numbers in metrics.jsonl."""
    return value.WhichOneof("value") == "image" or value.metadata.plugin_data.plugin_name in ("text", "histograms")


def _of_session(tag: str, content: Any) -> Values:
    metadata = _metadata("hparams", content.SerializeToString())
    nothing = TensorProto(dtype=DT_FLOAT, float_val=[0.0], tensor_shape=TensorShapeProto())
    return [Summary.Value(tag=tag, metadata=metadata, tensor=nothing)]


def _metadata(plugin: str, content: bytes = b"") -> Any:
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=content))
