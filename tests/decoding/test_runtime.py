"""ONNX Runtime as the engine of search: the same log-probabilities as PyTorch's, and the same translations."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.cli import translate as command
from nmt.config.schema import DecodingConfig, EnsembleName, ModelConfig
from nmt.decoding import graph, graph_files, runtime, translator
from nmt.decoding.batched_search import Search
from nmt.decoding.engines import AnyScorer
from nmt.decoding.graph import export
from nmt.decoding.graph_files import Graphs
from nmt.decoding.int8 import in_int8
from nmt.decoding.options import TranslationOptions
from nmt.decoding.runtime import CannotExportError, Engine, GraphsOfModel, RuntimeScorer
from nmt.decoding.scorer import Scorer
from nmt.decoding.search.hypotheses import Array, Hypothesis
from nmt.decoding.shortlist import Shortlist, save_shortlist, train_shortlist
from nmt.decoding.text.segments import Segment
from nmt.decoding.threads import sharing
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.models.memory import Past
from nmt.models.scores import SCORES, AdditiveScore, DotScore
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.symbols import BEGIN, END, PAD
from tests.random_model import SENTENCES, save_random_model, text

SOURCE = torch.tensor(
    [[4, 5, 6, 7, 8, 9, END], [4, 5, 6, 7, END, PAD, PAD], [END, *[PAD] * 6], [9, 8, 7, 6, 5, END, PAD]]
)
LENGTHS = torch.tensor([7, 5, 1, 6])
BEAM, TARGETS = 3, 67  # pieces: more than two blocks, and a part of one
MODELS: dict[str, dict[str, Any]] = {
    "luong, general": {"decoder": {"type": "luong", "hidden_size": 7}, "attention": {"score": "general"}},
    "luong, dot, local-p, two LSTM layers": {
        "encoder": {"cell": "lstm", "layers": 2, "residual": True, "directions": "sum"},
        "decoder": {"type": "luong", "cell": "lstm", "layers": 2, "hidden_size": 6, "initial_state": "copy"},
        "attention": {"score": "dot", "scope": "local-p", "half_width": 2},
    },
    "luong, scaled dot, local-m, nothing fed": {
        "encoder": {"bidirectional": False, "reverse_source": True},
        "decoder": {"type": "luong", "input_feeding": False, "hidden_size": 6},
        "attention": {"score": "scaled_dot", "scope": "local-m", "half_width": 1},
    },
    "luong, location, no end mark": {
        "encoder": {"end_mark": False},
        "decoder": {"type": "luong", "hidden_size": 7},
        "attention": {"score": "location", "positions": 5},
    },
    "luong, none": {"decoder": {"type": "luong", "hidden_size": 7}, "attention": {"score": "none"}},
    "bahdanau, additive": {"decoder": {"type": "bahdanau", "hidden_size": 7, "layer_normalization": True}},
    "bahdanau of the paper, coverage": {
        "decoder": {"type": "bahdanau", "order": "paper", "cell": "lstm", "hidden_size": 7, "initial_state": "zeros"},
        "attention": {"coverage": True, "bias": True},
    },
    "bahdanau, location-sensitive": {
        "decoder": {"type": "bahdanau", "hidden_size": 7, "initial_state": "mean"},
        "attention": {"score": "location_sensitive"},
    },
    "conditional GRU, concat, reset first": {
        "encoder": {"cell": "gru_reset_first", "layer_normalization": True},
        "decoder": {"type": "conditional_gru", "cell": "gru_reset_first", "hidden_size": 7},
        "attention": {"score": "concat"},
    },
    "bahdanau, cosine": {"decoder": {"type": "bahdanau", "hidden_size": 12}, "attention": {"score": "cosine"}},
}


def made(name: str) -> Seq2Seq:
    """A random model of sizes that differ, its weights away from the uniform distribution."""
    torch.manual_seed(3)
    sections = {"embedding_size": 5, **MODELS[name]}
    sections["encoder"] = {"hidden_size": 6, **sections.get("encoder", {})}
    model = build_model(ModelConfig.model_validate(sections), source_size=23, target_size=TARGETS).eval()
    for weight in model.parameters():
        weight.data *= 2
    return model


known, exported_once = cache(made), cache(export)  # for those who leave it as it is


@pytest.fixture(autouse=True)
def exported(monkeypatch: pytest.MonkeyPatch) -> list[Seq2Seq]:
    """The models that have been exported, each of which really is only the first time."""
    models: list[Seq2Seq] = []
    monkeypatch.setattr(graph, "export", lambda model, among: models.append(model) or exported_once(model, among=among))
    return models


def graphs_of(name: str) -> Graphs:
    return exported_once(known(name), among=False)


@pytest.mark.parametrize("name", MODELS)
@torch.inference_mode()
def test_every_step_is_pytorch_s(name: str) -> None:
    """With sentences of several lengths, rows that are reordered, and sentences that leave; and alone as together."""
    model, engine = known(name), Engine(graphs_of(name), 1)
    theirs, ours = model.start(SOURCE, LENGTHS), engine.start(SOURCE.numpy(), LENGTHS.numpy(), coverage=engine.aligns)
    assert engine.aligns == (name != "luong, none")
    coverage = np.zeros(SOURCE.shape)
    tokens, beam, remaining = np.full(len(SOURCE), BEGIN), 1, len(SOURCE)
    for step in range(4):
        vectors, weights, theirs = model.advance(torch.from_numpy(tokens), theirs)
        expected, before, coverage = model.log_probabilities(vectors).numpy(), ours, coverage + weights.numpy()
        scores, ours = engine.step(tokens, before, None)
        np.testing.assert_allclose(scores.values, expected, atol=1e-5, rtol=0)
        if engine.aligns:
            np.testing.assert_allclose(ours.coverage, coverage, atol=1e-4, rtol=0)  # a sum over steps
            np.testing.assert_allclose(ours.weights, weights.numpy(), atol=1e-4, rtol=0)
        best, _ = engine.step(tokens, before, 2)
        assert np.array_equal(best.ids, np.argsort(-scores.values, axis=1, kind="stable")[:, :2])
        assert np.array_equal(best.values, -np.sort(-scores.values, axis=1)[:, :2])
        remaining -= step == 2  # the last sentence leaves
        rows = (np.arange(remaining) * beam)[:, None] + np.array([[0, 0, 0], [2, 0, 1], [1, 1, 2], [0, 2, 1]][step])
        theirs, ours, coverage = theirs.select(torch.from_numpy(rows)), ours.select(rows, beam), coverage[rows.ravel()]
        tokens, beam = expected.argsort(axis=1)[rows.ravel(), -1 - np.tile(np.arange(BEAM), remaining)], BEAM


@pytest.mark.parametrize("name", MODELS)
@torch.inference_mode()
def test_every_step_in_int8_is_near_the_model_s(name: str) -> None:
    model, engine = known(name), Engine(Graphs(*map(in_int8, graphs_of(name))), 1)
    theirs, ours = model.start(SOURCE, LENGTHS), engine.start(SOURCE.numpy(), LENGTHS.numpy(), coverage=False)
    tokens = np.full(len(SOURCE), BEGIN)
    for _ in range(4):
        expected, theirs = model.step(torch.from_numpy(tokens), theirs)
        scores, ours = engine.step(tokens, ours, None)
        error = (scores.values - expected.numpy()).std() / expected.numpy().std()
        assert 1e-3 < error < 0.05
        tokens = expected.numpy().argmax(axis=1)


def test_of_equal_tokens_the_first_are_listed() -> None:
    model = made("luong, general")
    with torch.no_grad():
        model.output_weight[5:] = model.output_weight[5]
    engine = Engine(export(model), 1)
    start = engine.start(SOURCE.numpy(), LENGTHS.numpy(), coverage=False)
    tokens = np.array([BEGIN, 4, 6, 9])
    every, listed = engine.step(tokens, start, None)[0], engine.step(tokens, start, 2)[0]
    assert np.array_equal(listed.ids, np.argsort(-every.values, axis=1, kind="stable")[:, :2])
    assert (np.diff(np.sort(every.values)) == 0).any(axis=1).all()


SEARCHES: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"beam_size": 4, "n_best": 3},
    {"beam_size": 40, "n_best": 2},  # of more rows than blocks of tokens: all are compared
    {"beam_size": 3, "coverage_penalty": 0.3, "length_penalty": 0.8},
    {"beam_size": 3, "no_repeat_ngram_size": 2, "suppress_unknown": True},
    {"beam_size": 4, "n_best": 2, "diversity": 0.5},
    {"sampling": {"seed": 2}, "n_best": 2},
]


@cache
def checked(name: str, precision: str, *, among: bool) -> Graphs | None:
    return graph.checked_export(known(name), precision, among=among)


def known_runtime(*names: str, precision: str = "float32", ensemble: EnsembleName | None = None) -> RuntimeScorer:
    """Of models whose graphs are made once for all tests."""
    graphs = [GraphsOfModel(None, lambda among, name=name: checked(name, precision, among=among)) for name in names]
    return RuntimeScorer(graphs, ["dot"] * len(names), ensemble=ensemble)


def runtime_of(*models: Seq2Seq, key: str | None = None) -> RuntimeScorer:
    graphs = [
        GraphsOfModel(key, lambda among, model=model: graph.checked_export(model, "float32", among=among))
        for model in models
    ]
    return RuntimeScorer(graphs, ["dot"] * len(models))


def hypotheses(
    scorer: AnyScorer,
    options: dict[str, Any],
    places: Sequence[int] = range(len(SOURCE)),
    shortlist: Shortlist | None = None,
) -> list[list[Hypothesis]]:
    asked = TranslationOptions(**options)
    decoding = asked.decoding(DecodingConfig(max_length_ratio=2.0))
    segments = [Segment(SOURCE[place, : LENGTHS[place] - 1].tolist(), (place, 0)) for place in places]
    return Search(scorer=scorer, decoding=decoding, options=asked, shortlist=shortlist).hypotheses(segments)


@pytest.mark.parametrize("options", SEARCHES, ids=str)
@pytest.mark.parametrize("ensemble", [None, "probabilities"])
def test_every_search_finds_the_same(ensemble: EnsembleName | None, options: dict[str, Any]) -> None:
    names = ["bahdanau, additive", "bahdanau of the paper, coverage"][: 1 if ensemble is None else 2]
    found = hypotheses(known_runtime(*names, ensemble=ensemble), options)
    expected = hypotheses(Scorer([*map(known, names)], ensemble=ensemble), options)
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], abs=1e-4)


SHORTLIST = Shortlist(
    np.arange(60).reshape(20, 3) % TARGETS * (np.arange(20) > PAD)[:, None], np.array([66]), TARGETS, ("", "")
)


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 4, "n_best": 3, "coverage_penalty": 0.3}], ids=str)
def test_a_shortlist_is_searched_as_by_pytorch(options: dict[str, Any], precision: str) -> None:
    """With columns that only some of the sentences may use, and sentences that leave."""
    names = ["bahdanau, additive", "luong, general"]
    for together in (names[:1], names):
        found = hypotheses(known_runtime(*together, precision=precision), options, shortlist=SHORTLIST)
        expected = hypotheses(Scorer([*map(known, together)]), options, shortlist=SHORTLIST)
        assert len({len(best[0].tokens) for best in expected}) > 1
        for ours, theirs in zip(found, expected, strict=True):
            if precision == "float32":
                assert [one.tokens for one in ours] == [one.tokens for one in theirs]
            error = 1e-4 if precision == "float32" else 0.05
            assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], abs=error)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_in_int8_a_line_alone_is_translated_as_in_a_batch(beam_size: int) -> None:
    scorer = known_runtime("bahdanau, additive", precision="int8")
    together = hypotheses(scorer, {"beam_size": beam_size})
    for place, best in enumerate(together):
        (alone,) = hypotheses(scorer, {"beam_size": beam_size}, [place])
        assert [one.tokens for one in alone] == [one.tokens for one in best]
        assert [one.score for one in alone] == pytest.approx([one.score for one in best], abs=1e-4)


class FirstWords(DotScore):
    """As many of the first words as it has seen when it was traced: a score that no graph can have."""

    def forward(self, query: Tensor, keys: Tensor, past: Past) -> Tensor:
        scores = super().forward(query, keys, past)
        return scores + torch.tensor([float(place) for place in range(int(keys.size(1)))])


def test_what_no_graph_can_have_is_not_exported() -> None:
    model = made("bahdanau, cosine")
    model.decoder.attention.score = FirstWords(12, 12)
    with pytest.raises(CannotExportError):
        runtime_of(model).engines()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "nmt-toolkit"


def test_graphs_are_kept_and_made_again_where_they_are_damaged(cache: Path, exported: list[Seq2Seq]) -> None:
    model = known("luong, general")
    expected = hypotheses(runtime_of(model, key="one"), {"beam_size": 2})
    kept = next(cache.glob("*/step.weights"))
    assert hypotheses(runtime_of(model, key="one"), {"beam_size": 2}) == expected
    assert len(exported) == 1
    content = bytearray(kept.read_bytes())
    content[-100] ^= 1
    kept.write_bytes(content)
    again = runtime_of(model, key="one")
    for threads in (1, 2):
        with sharing(threads):
            assert hypotheses(again, {"beam_size": 2}) == expected
        assert len(exported) == 2
    hypotheses(runtime_of(known("bahdanau, additive"), key="other"), {"beam_size": 2})
    assert len(exported) == 3
    assert len(list(cache.iterdir())) == 2


def test_only_the_last_are_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_files, "MOST_KEPT", 1)
    model = known("luong, general")
    for key in ("one", "other"):
        runtime_of(model, key=key).engines()
    assert [folder.name.partition("-")[0] for folder in cache.iterdir()] == ["other"]


def test_where_nothing_can_be_kept_it_is_made_once(cache: Path, exported: list[Seq2Seq]) -> None:
    cache.parent.write_text("no folder")
    scorer = runtime_of(known("luong, general"), key="one")
    for threads in (1, 2):
        with sharing(threads):
            assert len(scorer.engines()) == 1
    assert len(exported) == 1


def test_graphs_that_are_gone_are_made_again(cache: Path, exported: list[Seq2Seq]) -> None:
    """Another process may remove them while this one begins."""
    model = known("luong, general")
    expected = hypotheses(runtime_of(model, key="one"), {"beam_size": 2})
    late = runtime_of(model, key="one")
    late.engines()
    shutil.rmtree(cache)
    with sharing(2):
        assert hypotheses(late, {"beam_size": 2}) == expected
    assert len(exported) == 2


def test_graphs_for_shortlists_and_those_for_all_words_stay_beside_each_other(
    cache: Path, exported: list[Seq2Seq]
) -> None:
    model = known("luong, general")
    for _ in range(2):
        for shortlist in (SHORTLIST, None):
            hypotheses(runtime_of(model, key="one"), {"beam_size": 2}, shortlist=shortlist)
    assert len(exported) == 2
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("change", ["method", "score"])
def test_graphs_of_what_a_program_has_changed_are_neither_kept_nor_found(
    change: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next version, or another program, would find them: the key knows only the package's files."""
    monkeypatch.setattr(translator, "WORTH_EXPORTING", 1)
    path = save_random_model(tmp_path / "model.safetensors")

    def weights(loaded: Translator) -> Array:
        [[best]] = loaded.translate(SENTENCES[:1], alignments=True)
        assert best.soft_alignment is not None
        return best.soft_alignment.weights

    before = weights(Translator.load(path))
    kept = list(cache.iterdir())

    class Even(AdditiveScore):
        def forward(self, query: Tensor, keys: Tensor, past: Past) -> Tensor:
            return torch.zeros_like(query[:, :, :1]) + torch.zeros_like(keys[:, :, 0]).unsqueeze(1)

    if change == "method":
        monkeypatch.setattr(AdditiveScore, "forward", Even.forward)
    else:
        monkeypatch.setitem(SCORES, "additive", Even)
    loaded = Translator.load(path)
    assert isinstance(loaded.scorer, RuntimeScorer)
    now = weights(loaded)
    assert before.shape != now.shape or np.abs(before - now).max() > 1e-3
    loaded.models  # noqa: B018  # PyTorch computes from here on
    np.testing.assert_allclose(now, weights(loaded), atol=1e-5)
    assert list(cache.iterdir()) == kept


def test_a_translator_of_files_computes_as_it_can(
    tmp_path: Path, cache: Path, exported: list[Seq2Seq], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By ONNX Runtime if it is worth it; by PyTorch what cannot be exported; and, in PyTorch, models
    that somebody was given, who may have changed them, of which nothing is kept for others."""
    path = save_random_model(tmp_path / "model.safetensors")
    assert isinstance(Translator.load(path).scorer, Scorer)
    monkeypatch.setattr(translator, "WORTH_EXPORTING", 1)
    loaded = Translator.load(path)
    assert isinstance(loaded.scorer, RuntimeScorer)
    monkeypatch.setattr(translator, "WORTH_EXPORTING", 10**9)
    before = [best.text for best, *_ in loaded.translate(SENTENCES)]
    loaded.models[0].output_weight.data *= -1
    assert [best.text for best, *_ in loaded.translate(SENTENCES)] != before
    assert [best.text for best, *_ in Translator.load(path).translate(SENTENCES)] == before
    assert len(exported) == 1
    with pytest.raises(UserError, match="int8: PyTorch cannot compute in int8 here"):
        Translator.load(path, precision="int8").models  # noqa: B018

    shutil.rmtree(cache)
    monkeypatch.setattr(graph, "export", lambda *_, **__: 1 / 0)
    monkeypatch.setattr(translator, "WORTH_EXPORTING", 1)
    assert isinstance(Translator.load(path).scorer, Scorer)
    with pytest.raises(UserError, match="int8: ONNX Runtime cannot compute this model; choose float32"):
        Translator.load(path, precision="int8")


def test_each_source_is_encoded_once_for_all_its_targets() -> None:
    name, sources = "bahdanau, additive", [[4, 5, 6], [7, 8], [4, 5, 6], [4, 5, 6]]
    targets = [[9, 10], [11], [12, 13, 14], []]
    found, weights = known_runtime(name).forced(sources, targets, attention=True, stepwise=False)
    with torch.inference_mode():
        expected, theirs = Scorer([known(name)]).forced(sources, targets, attention=True, stepwise=False)
    assert found == pytest.approx(expected, abs=1e-4)
    for ours, other, source, target in zip(weights, theirs, sources, targets, strict=True):
        shape = slice(len(target) + 1), slice(len(source) + 1)
        np.testing.assert_allclose(ours[shape], other[shape], atol=1e-4)


WITHOUT_PYTORCH = """
import sys
sys.modules["torch"] = None  # which makes every import of it fail
from nmt.cli import translate
from nmt.decoding import translator
translator.WORTH_EXPORTING = 1
for options in {every}:
    code = translate.main(options)
    assert code == 0, code
"""


def test_the_command_writes_what_it_writes_with_pytorch_and_does_not_import_it_where_graphs_are_kept(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [str(save_random_model(tmp_path / f"{seed}.safetensors", seed=seed)) for seed in (1, 2)]
    lines, page, terms = (tmp_path / name for name in ("lines", "page.html", "terms"))
    lines.write_text(f"{text(20)}a dog {{x}} runs 12\n")
    page.write_text("<p>a <b>dog</b> runs</p>\n")
    terms.write_text("dog\tboy\n")
    learned, _ = train_shortlist(zip(SENTENCES, SENTENCES, strict=True), Translator.load(models[0]).vocabularies)
    save_shortlist(tmp_path / "shortlist", learned)
    asked = [
        ["--model", models[0], "--input", str(lines), "--n-best", "2", "--alignments", "alignments"],
        ["--model", models[0], "--model", models[1], "--input", str(lines), "--ensemble", "logits", "--sample"],
        ["--model", models[0], "--input", str(page), "--glossary", str(terms)],
        ["--model", models[0], "--input", str(page), "--shortlist", str(tmp_path / "shortlist")],
    ]
    written = []
    for engine in ("pytorch", "runtime", "without"):
        (tmp_path / engine).mkdir()
        monkeypatch.chdir(tmp_path / engine)
        every = [[*options, "--device", "cpu", "--output", f"output{number}"] for number, options in enumerate(asked)]
        if engine == "without":
            monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)  # as somebody's shell has it
            subprocess.run([sys.executable, "-c", WITHOUT_PYTORCH.format(every=every)], check=True)
        else:
            monkeypatch.setattr(translator, "WORTH_EXPORTING", 1 if engine == "runtime" else 10**6)
            assert [command.main(options) for options in every] == [0] * len(asked)
        written.append({file.name: file.read_text() for file in Path().iterdir()})
        assert len(written[-1]) == 5
    assert len(list(cache.iterdir())) == 3  # one of them for shortlists
    assert list(cache.parent.iterdir()) == [cache], "ONNX Runtime keeps what it would report in a folder beside it"
    assert written[0] == written[1] == written[2]


def test_an_allocation_that_fails_is_a_memory_error() -> None:
    class Full:
        def run(self, *_: object) -> None:
            raise ValueError("Failed to allocate memory for requested buffer of size 1")

    with pytest.raises(MemoryError, match="requested buffer"):
        runtime._run(Full(), [], {})
