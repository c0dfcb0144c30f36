"""From somebody's files to training, validation, and test text: real corpora as files, as a table, and as a memory.

Whether parts share a sentence is checked by means of its own: sets of texts, not hashes.
"""

import gzip
from itertools import combinations
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from nmt.cli.init import main
from nmt.config.loading import read_config
from nmt.models.combinations import FAMILIES
from tests.conftest import write_lines

Pairs = list[tuple[str, str]]

CORPORA = {  # folder, files, languages, pieces
    "talks": ("iwslt14-deen/lowres", ("train.de.gz", "train.en.gz"), ("de", "en"), "bpe"),
    "captions": ("multi30k/raw", ("train.en.gz", "train.fr.gz"), ("en", "fr"), "bpe"),
    "help": ("libreoffice-help/en-de", ("all.en.gz", "all.de.gz"), ("en", "de"), "bpe"),
    "spelling": ("histnorm/german-ridges", ("train.orig.gz", "train.norm.gz"), ("gmh", "de"), "char"),
    "inflection": ("sigmorphon2016-task1/finnish", ("train.src.gz", "train.tgt.gz"), ("lemma", "fi"), "word"),
}


def lines_of(path: Path) -> list[str]:
    """The lines of a file, with single spaces, as a memory has them."""
    lines = gzip.decompress(path.read_bytes()).decode("utf-8").removesuffix("\n").split("\n")
    return [" ".join(line.split()) for line in lines]


def as_files(folder: Path, pairs: Pairs, languages: tuple[str, str]) -> list[str]:
    paths = [folder / f"text.{language}" for language in languages]
    for path, side in zip(paths, zip(*pairs, strict=True), strict=True):
        write_lines(path, side)
    return ["--source", str(paths[0]), "--target", str(paths[1])]


def as_table(folder: Path, pairs: Pairs, languages: tuple[str, str]) -> list[str]:
    rows = "".join("\t".join(pair) + "\n" for pair in [languages, *pairs])
    (folder / "text.tsv").write_text(rows, encoding="utf-8")
    return ["--input", str(folder / "text.tsv")]


def as_memory(folder: Path, pairs: Pairs, languages: tuple[str, str]) -> list[str]:
    texts = (
        (f'<tuv xml:lang="{one}"><seg>{escape(text)}</seg></tuv>' for one, text in zip(languages, pair, strict=True))
        for pair in pairs
    )
    units = "".join(f"<tu>{''.join(sides)}</tu>\n" for sides in texts)
    (folder / "text.tmx").write_text(f'<tmx version="1.4"><header/><body>{units}</body></tmx>', encoding="utf-8")
    return ["--input", str(folder / "text.tmx")]


def shared_sentences(made: Path, languages: tuple[str, str]) -> set[str]:
    """The sentences of either side that are in two of the parts, whatever their case and spaces."""
    shared: set[str] = set()
    for language in languages:
        texts = [(made / f"{part}.{language}").read_text(encoding="utf-8") for part in ("train", "valid", "test")]
        parts = [{" ".join(line.casefold().split()) for line in text.split("\n")} - {""} for text in texts]
        assert all(len(part) > 1 for part in parts)
        shared |= {line for one, other in combinations(parts, 2) for line in one & other}
    return shared


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPORA)
def test_no_sentence_is_in_two_parts(
    name: str, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And, of one corpus, a table and a memory give what two files give. No words are linked, which takes a minute."""
    monkeypatch.setattr("nmt.experiment.training.dry_run", lambda request, log: iter(["time: not measured"]))
    monkeypatch.setattr("nmt.cli.init_folder.aligned", lambda pairs, count: ([[]] * count, [[]] * count))
    folder, files, languages, pieces = CORPORA[name]
    pairs = list(zip(*(lines_of(shared_data / folder / file) for file in files), strict=True))
    texts = []
    for number, write in enumerate((as_files, as_table, as_memory) if name == "spelling" else (as_files,)):
        made = tmp_path / f"made{number}"
        options = ["--source-language", languages[0], "--target-language", languages[1], "--output", str(made)]
        assert main([*write(tmp_path, pairs, languages), *options]) == 0
        assert shared_sentences(made, languages) == set()
        texts.append(
            {path.name: path.read_bytes() for path in made.iterdir() if path.name not in ("my.yaml", "report.txt")}
        )
        assert read_config(made / "my.yaml", families=FAMILIES).config.subwords.type == pieces
    assert all(text == texts[0] for text in texts)
