"""The benchmark of corpus sizes: the parts of a corpus, what is trained, and its table and picture."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import corpus_sizes
from nmt.config.loading import read_config
from nmt.data.corpus import read_lines


def test_a_smaller_corpus_is_a_part_of_a_larger_one_in_the_same_order() -> None:
    pairs = [(str(number), str(-number)) for number in range(29_000)]
    parts = [corpus_sizes.subset(pairs, size) for size in (1000, 10_000, 29_000)]
    assert [len(part) for part in parts] == [1000, 10_000, 29_000]
    assert set(parts[0]) < set(parts[1])
    assert parts[2] == pairs
    assert [sorted(part, key=lambda pair: int(pair[0])) for part in parts] == parts
    assert parts[0] != pairs[:1000]


@pytest.mark.slow
def test_what_is_trained_is_scored_and_not_trained_again(
    tiny_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sizes = {"embedding_size": 5, "encoder.hidden_size": 3, "decoder.hidden_size": 6, "decoder.output_size": 5}
    overrides = {"subwords.type": "word", "subwords.size": 120, "training.max_updates": 2, "training.max_epochs": None}
    sets = json.dumps({**overrides, **{f"model.{name}": size for name, size in sizes.items()}})
    texts = [
        argument
        for name in ("train", "valid", "test")
        for argument in (f"--{name}", *(str(tiny_corpus / f"{name}.{language}") for language in ("en", "de")))
    ]
    arguments = ["--languages", "en", "de", *texts, "--work", "work", "--plot", "sizes.png", "--set", sets]
    assert corpus_sizes.main([*arguments, "--sizes", "20", "--recipes", "nmt-init", "--seeds", "1", "2"]) == 0
    assert len(list(read_lines(Path("work/20/train.en")))) == 20
    resolved = read_config(Path("work/20/nmt-init.2/config.yaml"), []).config
    assert (resolved.seed, resolved.training.batch_by, resolved.model.encoder.dropout) == (2, "tokens", 0.5)
    assert corpus_sizes.main([*arguments, "--sizes", "20", "30", "--seeds", "1"]) == 0
    resolved = read_config(Path("work/30/every_size.1/config.yaml"), []).config
    assert (resolved.training.batch_by, resolved.training.early_stopping) == ("sentences", None)
    results = [json.loads(line) for line in read_lines(Path("work/results.jsonl"))]
    assert [(one["recipe"], one["pairs"], one["seed"]) for one in results] == [
        *(("nmt-init", 20, 1), ("nmt-init", 20, 2)),
        *(("every size", 20, 1), ("every size", 30, 1), ("nmt-init", 30, 1)),
    ]
    *_, head, _, first, second = capsys.readouterr().out.splitlines()
    assert head == "| training pairs | one configuration | minutes | nmt-init | minutes |"
    assert re.match(r"\| 20 \| [\d.]+ \| \d+ \| [\d.]+ ± [\d.]+ \| \d+ \|$", first)
    assert re.match(r"\| 30 \| [\d.]+ \| \d+ \| [\d.]+ \| \d+ \|$", second)
    assert corpus_sizes.main([*arguments, "--sizes", "20", "--tokenize", "none"]) == 2
    assert "--work work: has results of other texts" in capsys.readouterr().err
    assert Path("sizes.png").read_bytes().startswith(b"\x89PNG")


def test_the_table_has_means_and_deviations() -> None:
    result = {"recipe": "nmt-init", "pairs": 1000, "seed": 1, "bleu": 10.0, "minutes": 3.0}
    lines = corpus_sizes.table([result, {**result, "seed": 2, "bleu": 12.0, "minutes": 4.2}])
    assert lines[2:] == ["| 1,000 |  |  | 11.00 ± 1.41 | 4 |"]
