"""Scaling: the corpora of random words, the tables and plots, and each part measured with tiny sizes."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import scaling
from benchmarks.reference_task import Task
from benchmarks.scaling import words_corpus
from benchmarks.scaling_report import PARTS, Row, check_document, report, table
from benchmarks.train_speed import multiplied
from nmt.config.loading import read_config
from nmt.models.seq2seq import build_model
from tests.conftest import ROOT, write_lines

Measure = Callable[..., list[list[float]]]
DOCUMENT = ROOT / "research" / "speed.md"
ROWS: dict[str, list[Row]] = {
    "length": [{"length": size, "speed": 9000 / size, "microseconds": 7.25, "resident": 1234.5} for size in (10, 20)],
    "corpus": [
        {
            "pairs": 1_000_000,
            "preparation": 12.25,
            "rate": 81632.7,
            "preparing": 700,
            "start": 3.75,
            "resident": 900,
            "model": 46,
        }
    ],
}


@pytest.mark.parametrize(("pieces", "length"), [(50, 3), (2300, 2), (2301, 7)])
def test_random_words(tmp_path: Path, pieces: int, length: int) -> None:
    sets = words_corpus(tmp_path / "words", pieces=pieces, length=length)
    lines, copies = ((tmp_path / "words" / f"train.{side}").read_text().splitlines() for side in ("source", "target"))
    assert lines == copies
    assert {len(line.split()) for line in lines} == {length}
    assert len(lines) >= 1000
    assert len({word for line in lines for word in line.split()}) == pieces - 4
    assert f"subwords.size={pieces}" in sets
    assert f"data.max_length={length}" in sets


def test_a_table_has_the_columns_that_every_row_has() -> None:
    assert table(PARTS["length"], ROWS["length"]).splitlines() == [
        "| words per sentence | target tokens/s | µs per target token | peak resident, MiB |",
        "| ---: | ---: | ---: | ---: |",
        "| 10 | 900 | 7 | 1,234 |",
        "| 20 | 450 | 7 | 1,234 |",
    ]
    on_device = [{**row, "device": 77} for row in ROWS["length"]]
    assert table(PARTS["length"], on_device).splitlines()[2] == "| 10 | 900 | 7 | 1,234 | 77 |"


def document(folder: Path) -> Path:
    """A copy of the product's document, in a folder such as its own."""
    (folder / "research").mkdir()
    return Path(shutil.copy(DOCUMENT, folder / "research" / "speed.md"))


def test_the_report_replaces_its_parts_alone(tmp_path: Path) -> None:
    path = document(tmp_path)
    check_document(path, list(PARTS))
    before = path.read_text(encoding="utf-8")
    for speed in ("first", "second"):
        report(path, tmp_path / "research" / "images", ROWS, origin=f"`{speed} command` on Abacus.")
    text = path.read_text(encoding="utf-8")
    assert "`second command` on Abacus." in text
    assert "first command" not in text, "measured anew, not added"
    assert "| 1,000,000 | 12.2 | 81,633 | 700 | 3.8 | 900 | 46 |" in text
    assert "![pairs/s by pairs](images/scaling_corpus.png)" in text
    assert sorted(image.name for image in (tmp_path / "research" / "images").iterdir()) == [
        "scaling_corpus.png",
        "scaling_length.png",
    ]
    for name in ("vocabulary", "processes"):
        assert scaled(text, name) == scaled(before, name)
    assert outside(text) == outside(before)


def scaled(text: str, name: str) -> str:
    return text.partition(f"<!-- scaling: {name} -->")[2].partition(f"<!-- end of scaling: {name} -->")[0]


def outside(text: str) -> list[str]:
    """The lines that are not between marks."""
    kept, inside = [], False
    for line in text.splitlines():
        inside = (inside or line.startswith("<!-- scaling: ")) and not line.startswith("<!-- end of scaling: ")
        if not inside:
            kept.append(line)
    return kept


@pytest.fixture
def measured(tiny_config: Path, tmp_path: Path) -> Measure:
    """measured("length", …) measures a part with the tiny configuration and returns the numbers of its table."""
    path = document(tmp_path)
    (tmp_path / "work").mkdir()

    def measure(part: str, *options: str) -> list[list[float]]:
        files = {"--config": tiny_config, "--captions": tiny_config.parent, "--work": tmp_path / "work"}
        files |= {"--document": path, "--images": tmp_path / "research" / "images"}
        words = [word for option, file in files.items() for word in (option, str(file))]
        arguments = ["--parts", part, "--updates", "2", "--threads", "1", *options, *words]
        assert scaling.main(arguments) == 0
        assert list((tmp_path / "work").iterdir()) == [], "nothing is left behind"
        block = scaled(path.read_text(encoding="utf-8"), part)
        assert Counter(block)["`"] == 2, "the command"
        return numbers(block)

    return measure


def numbers(block: str) -> list[list[float]]:
    rows = [line for line in block.splitlines() if line.startswith("| ")][2:]
    return [[float(cell.replace(",", "")) for cell in row.strip("| ").split("|")] for row in rows]


def test_a_hidden_size_is_that_of_both_directions_together(measured: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    def trained(task: Task, sets: list[str], updates: int) -> SimpleNamespace:
        (encoder, of_encoder), (decoder, of_decoder) = (one.split("=") for one in sets)
        assert (encoder, decoder) == ("model.encoder.hidden_size", "model.decoder.hidden_size")
        assert int(of_decoder) == 2 * int(of_encoder)
        sizes = {"parameters": 10 * int(of_decoder), "multiplied": int(of_decoder)}
        return SimpleNamespace(result={**sizes, scaling.FIELD: 7 * updates, "peak_resident_mib": 300})

    monkeypatch.setattr(scaling, "train", trained)
    assert measured("hidden", "--hidden", "8,16") == [[8, 80, 8, 14, 300], [16, 160, 16, 14, 300]]
    with pytest.raises(SystemExit):
        measured("hidden", "--hidden", "8,9")


def test_a_beam_is_that_of_a_model(measured: Measure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = [word for name in ("model", "source", "reference") for word in (f"--{name}", str(tmp_path / name))]
    every = [*files, "--precision", "float32", "--device", "cpu", "--threads", "1"]

    def translated(command: list[str]) -> SimpleNamespace:
        *words, option, beam = command[2:]
        assert (words, option) == (every, "--beam")
        speed = 90 / int(beam)
        return SimpleNamespace(result={"sentences_per_second": speed, "bleu": 30 + int(beam), "peak_resident_mib": 400})

    monkeypatch.setattr(scaling, "run_command", translated)
    with pytest.raises(SystemExit):
        measured("beam", *files)  # which are not there
    for path in files[1::2]:
        Path(path).touch()
    assert measured("beam", *files, "--beams", "1,9") == [[1, 90, 31, 400], [9, 10, 39, 400]]
    with pytest.raises(SystemExit):
        measured("beam")


def test_embeddings_are_multiplied_with_where_they_are_the_output_layer(tiny_config: Path) -> None:
    for tied, looked_up in (("none", 2), ("target", 1), ("all", 0)):
        sets = [f"model.tie_embeddings={tied}", "model.decoder.output_size=5"]
        model = build_model(read_config(tiny_config, sets).config.model, source_size=20, target_size=20)
        read = 20 * model.source_embedding.embedding_dim * looked_up
        assert multiplied(model) == sum(parameter.numel() for parameter in model.parameters()) - read


def test_a_gray_line_begins_at_the_first_row() -> None:
    rows = [{"beam": 1, "speed": 90}, {"beam": 3, "speed": 40}]
    assert PARTS["beam"].ideal(rows) == [90, 30]
    assert PARTS["processes"].ideal([{"processes": 2, "speed": 5}, {"processes": 4, "speed": 5}]) == [5, 10]
    wide = [{"multiplied": size, "parameters": 9, "speed": 12} for size in (2, 4)]
    assert PARTS["hidden"].ideal(wide) == PARTS["vocabulary"].ideal(wide) == [12, 6]
    assert PARTS["length"].ideal([{"length": 10, "speed": 5}, {"length": 40, "speed": 1}]) == [5, 5]


def test_processes(measured: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    """The speed is the median of what is logged after the 20 updates that do not count."""
    logged = {1: [(20, 9), (21, 100), (22, 300), (23, 110)], 2: [(20, 9), (21, 220), (22, 200), (23, 198)]}
    validation = {"split": "valid", "step": 22}

    def write_log(command: list[str], *, environment: dict[str, str]) -> None:
        assert environment == {"OMP_NUM_THREADS": "1"}
        assert "training.max_updates=23" in command
        folder = Path(command[command.index("--output") + 1])
        folder.mkdir()
        speeds = logged[int(command[command.index("--nproc-per-node") + 1])]
        lines = [{"split": "train", "step": step, scaling.FIELD: speed} for step, speed in speeds] + [validation]
        write_lines(folder / "metrics.jsonl", map(json.dumps, lines))

    monkeypatch.setattr(scaling, "run_command", write_log)
    rows = measured("processes", "--updates", "3", "--processes", "1,2")
    assert rows == [[1, 1, 110, 1], [2, 1, 200, pytest.approx(1.82)]]
