"""A page that translates by itself in a browser: static files with the graphs of a model, for any host, also offline.

ONNX Runtime's WebAssembly (see `package`) computes the graphs; what stands in `page/` cuts text, searches, and shows
translations. Large files are packed (gzip, whose checksum finds what is damaged) and named by their content, so that a
browser never mixes those of two exports. The programs of another version may still come from its HTTP cache, until the
service worker has compared all files.
"""

import gzip
import hashlib
import json
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from sentencepiece.sentencepiece_model_pb2 import ModelProto, TrainerSpec  # type: ignore[attr-defined]

import nmt
from nmt.data.segmentation import read_model
from nmt.data.subwords import Subwords
from nmt.decoding.graph_files import BLOCK, Graphs
from nmt.decoding.text.languages import code_of, name_of
from nmt.decoding.text.segments import longest_segment
from nmt.errors import UserError
from nmt.files import written_atomically
from nmt.models.model_file import ModelFile
from nmt.web.package import START, WORKER, files_of

PACKAGE = Path(nmt.__file__).parent
PAGE = Path(__file__).with_name("page")
SHARED = [PACKAGE / name for name in ("pages.css", "translating.css", "pages.js", "icon.svg")]


def write_page(folder: Path, model: ModelFile, graphs: Graphs, runtime: Sequence[bytes]) -> None:
    """Write the page of a model into a folder; one that is there is replaced.

    `runtime`: see `runtime_of`. Raises UserError for subwords that the page cannot read, and OSError.
    """
    subwords = [_subwords(content) for content in (model.source_subwords, model.target_subwords)]
    large = {"program": runtime[1], "subwords": _json(subwords), **graphs._asdict()}
    packed = {name: gzip.compress(content, mtime=0) for name, content in large.items()}
    places = {name: f"{name}-{_digest(content)[:16]}.bin" for name, content in packed.items()}
    data, decoding = model.config.data, model.config.decoding.model_dump(exclude={"protect"})
    codes = [code_of(data.source_language), code_of(data.target_language)]
    title = " → ".join(map(name_of, codes))
    described = {"files": places, "decoding": decoding, "longest": longest_segment(data.max_length), "block": BLOCK}
    icon = {"src": "icon.svg", "sizes": "any", "type": "image/svg+xml"}
    manifest = {"name": title, "start_url": ".", "display": "standalone", "icons": [icon]}
    files = {places[name]: content for name, content in packed.items()}
    files |= {"runtime.js": runtime[0], "model.json": _json(described), "manifest.json": _json(manifest)}
    files |= {path.name: path.read_bytes() for path in (*SHARED, *PAGE.iterdir())}
    names = {"title": title, "source": codes[0], "target": codes[1]}
    page = Template(files["index.html"].decode()).substitute({name: escape(text) for name, text in names.items()})
    files["index.html"] = page.encode()
    worker = files.pop(WORKER)
    digests = _json({name: _digest(content) for name, content in files.items()})
    files[WORKER] = (START % (_digest(digests), digests.decode())).encode() + worker
    former = files_of(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        with written_atomically(folder / name, "wb") as file:
            file.write(content)
    for path in folder.iterdir():
        if path.name in former - files.keys():
            path.unlink()


def _subwords(content: bytes) -> dict[str, Any]:
    """What `page/subwords.js` knows of a subword model."""
    model, subwords = read_model(content), Subwords(content)
    normalizer, trainer = model.normalizer_spec, model.trainer_spec
    kinds = [piece.type for piece in model.pieces]
    unusual = trainer.treat_whitespace_as_suffix or not normalizer.escape_whitespaces
    if unusual or model.denormalizer_spec.precompiled_charsmap or ModelProto.SentencePiece.UNUSED in kinds:
        raise UserError("--web: the subword model has rules that the page does not know, such as unused pieces")
    return {
        "type": TrainerSpec.ModelType.Name(trainer.model_type).lower(),
        "pieces": [piece.piece for piece in model.pieces],
        "types": kinds,
        "scores": [piece.score for piece in model.pieces],
        "unknownText": trainer.unk_surface,
        "rules": b64encode(normalizer.precompiled_charsmap).decode(),
        "dummyPrefix": normalizer.add_dummy_prefix,
        "removesSpaces": normalizer.remove_extra_whitespaces,
        "byWord": subwords.of_words,
        "joiner": subwords.joiner if subwords.is_listed else None,
    }


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
