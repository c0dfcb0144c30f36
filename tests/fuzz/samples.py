"""What is valid: small inputs of every kind for cases to begin with, the same in every process.

Files of several are given with their names, in which numbers stand for hashes. It knows no cases.
"""

import io
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.cli.train import main as train
from nmt.cli.translate import main as translate
from nmt.config.loading import read_config
from nmt.config.schema import Config, SubwordsConfig
from nmt.config.yaml_text import write_yaml
from nmt.data.prepare import prepare
from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.chunks import Chunks
from nmt.decoding.shortlist import save_shortlist, train_shortlist
from nmt.documents.formats import FORMATS
from nmt.models.model_file import ModelFile, load_model, save_model
from nmt.models.seq2seq import build_model
from nmt.training import states as states_module
from tests.random_model import SENTENCES, text

LINES = 12  # of the corpora: enough for a vocabulary, and encoded in no time


def configuration(folder: Path | None = None) -> dict[str, Any]:
    """The values of a small valid configuration; its files are in `folder`."""
    names = ("train.en", "train.de", "valid.en", "valid.de")
    files = [str(folder / name) if folder else name for name in names]
    return {
        "name": "small",
        "seed": 3,
        "data": {
            "source_language": "en",
            "target_language": "de",
            "train": [{"source": files[0], "target": files[1]}],
            "valid": {"source": files[2], "target": files[3]},
            "max_length": 50,
        },
        "subwords": {"type": "bpe", "size": 43, "normalization": "identity"},  # whose models are small
        "model": {"embedding_size": 5, "encoder": {"hidden_size": 3}, "decoder": {"hidden_size": 7}},
        "training": {
            "batch_size": 4,
            "max_updates": 3,
            "max_epochs": None,
            "log_every": 1,
            "validate_every": "2 updates",
            "save_every": "1 update",
            "optimizer": {"name": "adam", "learning_rate": 0.01},
        },
        "decoding": {"beam_size": 2, "max_length_ratio": 1.0},
    }


def write_corpora(folder: Path) -> None:
    """The files that `configuration` names."""
    lines = [line for line in text(4 * LINES).splitlines(keepends=True) if line.strip()][: 2 * LINES]
    for name, chosen in (
        ("train", [f"{sentence}\n" for sentence in SENTENCES] + lines[:LINES]),
        ("valid", lines[LINES:]),
    ):
        (folder / f"{name}.en").write_text("".join(chosen))
        (folder / f"{name}.de").write_text("".join(" ".join(line.split()[::-1]) + "\n" for line in chosen))


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for name, path in names(folder).items():
        yield name, path.read_bytes()


def names(folder: Path) -> dict[str, Path]:
    """The files of a folder by their names, with numbers for the hashes in them, as a later version makes others."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    by_name: dict[str, Path] = {}
    for path in paths:
        name = str(path.relative_to(folder))
        for number in range(len(paths)):
            numbered = re.sub("[0-9a-f]{32,}", str(number), name)
            if numbered not in by_name:
                by_name[numbered] = path
                break
    return by_name


def document_files() -> Iterator[tuple[str, bytes]]:
    """Formats, and documents of them."""
    paths = {path.suffix: path for path in sorted((Path(__file__).parents[1] / "documents" / "fixtures").iterdir())}
    for form, kind in FORMATS.items():
        path = next((paths[extension] for extension in kind.extensions if extension in paths), paths[".md"])
        yield form, path.read_bytes()


_TMX = """<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body>
<tu><prop type="x-document">a</prop><tuv xml:lang="en"><seg>A <bpt i="1">&lt;b></bpt>dog</seg></tuv>
<tuv xml:lang="de-DE"><seg>Ein\tHund<ph x="1"/></seg></tuv></tu><tu><tuv xml:lang="fr"><seg>x</seg></tuv></tu>
</body></tmx>"""


def pair_files() -> Iterator[tuple[str, bytes]]:
    """Endings, and files of pairs of texts with them."""
    yield "csv", b'sep=;\nen;tags;de\n"a ""dog"";\runs";N PL;Hund\nruns;V;rennt\n\n'
    yield "tsv", b'lemma\ttags\tform\nHund\tN,PL\tHunde\n"a ""b"""\t\tx\n'
    yield "tmx", _TMX.encode()
    for form, content in document_files():
        if form in ("po", "xliff"):
            yield form, content


def cache_files() -> Iterator[tuple[str, bytes]]:
    """Names and contents of a cache's files, for cases to begin with."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        write_corpora(folder)
        (folder / "config.yaml").write_text(write_yaml(configuration(folder)))
        prepare(read_config(folder / "config.yaml").config, cache=folder / "cache", log=lambda _: None)
        yield from _files(folder / "cache")


def model_file() -> bytes:
    """A valid model file."""
    with tempfile.TemporaryDirectory() as name:
        return save_model_file(Path(name) / "model").read_bytes()


def save_model_file(path: Path) -> Path:
    """Write a model with random weights for `configuration`; returns its path."""
    config = Config.model_validate(configuration())
    subwords = Subwords.train(SENTENCES, settings=config.subwords)
    torch.manual_seed(1)
    network = build_model(config.model, source_size=subwords.size, target_size=subwords.size)
    for weight in network.parameters():
        weight.data *= 3  # so that something is translated
    sizes = (subwords.size, subwords.size)
    save_model(path, ModelFile(config, network.state_dict(), subwords.model, subwords.model, sizes, {}))
    return path


def subword_models() -> Iterator[bytes]:
    """Valid subword models of each type."""
    for kind, size in (("bpe", 43), ("unigram", 33), ("word", 20), ("char", 30)):
        yield Subwords.train(SENTENCES, settings=SubwordsConfig(type=kind, size=size, normalization="identity")).model


def shortlist_file() -> bytes:
    """A valid shortlist."""
    with tempfile.TemporaryDirectory() as name:
        model = load_model(save_model_file(Path(name) / "model"))
        vocabularies = Vocabularies.from_bytes(model.source_subwords, model.target_subwords, model.sizes)
        pairs = [(line, line) for line in SENTENCES]
        trained, _ = train_shortlist(pairs, vocabularies, translations=5, most_frequent=7)
        save_shortlist(Path(name) / "shortlist", trained)
        return (Path(name) / "shortlist").read_bytes()


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Another value for an attribute inside the block, in which nothing is said."""
    old = getattr(owner, name)
    setattr(owner, name, value)
    try:
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        setattr(owner, name, old)


def train_shortly(folder: Path, run: Path) -> Path:
    """A run in the folder `run` that was stopped before its last update; returns its configuration."""
    write_corpora(folder)
    config = folder / "config.yaml"
    config.write_text(write_yaml(configuration(folder)))
    write_tensors = states_module.write_tensors

    def write_and_stop(path: Path, tensors: dict[str, Tensor], *, texts: dict[str, str], **options: Any) -> None:
        write_tensors(path, tensors, texts=texts, **options)
        if json.loads(texts["numbers"])["progress"]["validated"] == 2:
            raise KeyboardInterrupt

    with _replaced(states_module, "write_tensors", write_and_stop):
        train(["--config", str(config), "--output", str(run)])
    assert (run / "metrics.jsonl").read_text().count("\n") == 3
    return config


def run_files() -> Iterator[tuple[str, bytes]]:
    """Names and contents of a run's files, without TensorBoard's, which we do not read, and what holds no data."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        train_shortly(folder, folder / "run")
        for file, content in _files(folder / "run"):
            if not file.startswith(("tensorboard", ".lock")) and not file.endswith(".log"):
                yield file, content


def translate_partly(folder: Path) -> list[str]:
    """Chunks in `folder` of a translation that was stopped, and the file `right`; returns the options."""
    model, source = save_model_file(folder / "model.safetensors"), folder / "input"
    source.write_text(text(9))
    options = ["--model", str(model), "--input", str(source), "--output", str(folder / "output"), "--chunk-lines", "3"]
    with _replaced(Chunks, "join", _stopped):
        translate(options)
    (chunks,) = folder.glob("output.chunks-*")
    shutil.copytree(chunks, kept := folder / "kept for now")
    with redirect_stderr(io.StringIO()):
        assert translate(options) == 0
    (folder / "output").rename(folder / "right")
    kept.rename(chunks)
    for last in chunks.glob("000002.*"):
        last.unlink()  # one chunk is left to do
    return options


def _stopped(*_: object) -> None:
    raise KeyboardInterrupt


def chunk_files() -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files of a translation that was stopped."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        translate_partly(folder)
        (chunks,) = folder.glob("output.chunks-*")
        yield from _files(chunks)
