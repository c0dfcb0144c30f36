"""Translators in other processes: pickled as the files that they were loaded from, which must be what they were."""

import multiprocessing
import pickle
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import torch

from nmt.cli.shortlist import main as make_shortlist
from nmt.config.schema import DecodingConfig, SamplingConfig
from nmt.decoding.options import TranslationOptions
from nmt.decoding.translator import Translation, Translator
from nmt.errors import UserError
from tests.random_model import save_random_model, text

TEXT = text(9).splitlines()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save_random_model(tmp_path / "best.safetensors")


def copied(translator: Translator) -> Translator:
    content = pickle.dumps(translator)
    assert len(content) < 2000  # no weights
    copy: Translator = pickle.loads(content)
    return copy


def texts(translations: Sequence[Sequence[Translation]]) -> list[list[tuple[str, float]]]:
    return [[(translation.text, translation.score) for translation in best] for best in translations]


def translated(translator: Translator, options: TranslationOptions | None = None) -> list[list[tuple[str, float]]]:
    return texts(list(translator.translate(TEXT, options)))


def test_a_copy_translates_the_same(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is unpickled, and as it was changed after it was loaded."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    translator = Translator.load("..", precision="int8")
    translator.decoding = DecodingConfig(beam_size=2, max_length_ratio=0.7)
    translator.longest_segment = 3
    monkeypatch.chdir("/")
    copy = copied(translator)
    assert translated(copy) == translated(translator) != translated(Translator.load(model, precision="int8"))
    assert copied(copy).scorer is not copy.scorer


def test_an_ensemble_with_a_shortlist(model: Path, tmp_path: Path) -> None:
    other, shortlist = save_random_model(tmp_path / "other.safetensors", seed=2), tmp_path / "shortlist.safetensors"
    corpus = tmp_path / "corpus"
    corpus.write_text("a dog runs\ntwo men are reading\n", encoding="utf-8")
    arguments = ["--model", model, "--source", corpus, "--target", corpus, "--output", shortlist]
    assert make_shortlist([*map(str, arguments), "--translations", "2", "--most-frequent", "3"]) == 0
    translator = Translator.load([model, other], shortlist=shortlist, ensemble="probabilities")
    assert translated(copied(translator)) == translated(translator) != translated(Translator.load([model, other]))
    content = pickle.dumps(translator)
    assert make_shortlist([*map(str, arguments), "--translations", "3", "--most-frequent", "3"]) == 0
    save_random_model(other, seed=3)
    with pytest.raises(UserError) as error:
        pickle.loads(content)
    assert error.value.messages == tuple(
        f"{path}: has another content than when the translator that was pickled was loaded from it"
        for path in (other, shortlist)
    )


def test_a_file_that_is_not_there(model: Path) -> None:
    content = pickle.dumps(Translator.load(model))
    model.unlink()
    with pytest.raises(UserError, match=r"^.*best\.safetensors: no such model file or run folder$"):
        pickle.loads(content)


def test_made_of_objects(model: Path) -> None:
    loaded = Translator.load(model)
    with pytest.raises(
        UserError, match=r"made of objects cannot be pickled.* save the model, and use Translator\.load"
    ):
        pickle.dumps(Translator(loaded.models, loaded.vocabularies))


def test_parts_of_a_text_are_translated_as_a_whole(model: Path) -> None:
    """As a pool of processes does, which is given options too: for a line the same is drawn as in one process."""
    translator, options = Translator.load(model), TranslationOptions(n_best=2, sampling=SamplingConfig(seed=3))
    copy, same = copied(translator), pickle.loads(pickle.dumps(options))
    parts = [copy.translate(TEXT[place : place + 3], same, first=place) for place in (0, 3, 6)]
    together = texts([best for part in parts for best in part])
    alone = translated(translator, options)
    assert [[one for one, _ in best] for best in together] == [[one for one, _ in best] for best in alone]


def in_a_forked_process(translator: Translator, threads: int) -> object:
    """What translating in it comes to; None if it takes too long."""

    def work(sending: Connection) -> None:
        torch.set_num_threads(threads)
        try:
            sending.send(translated(translator))
        except UserError as error:
            sending.send(str(error))

    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=work, args=(sending,))
    process.start()
    try:
        return receiving.recv() if receiving.poll(60) else None
    finally:
        process.kill()
        process.join()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of Python 3.12 on, where there are threads
def test_forked_after_it_was_loaded(model: Path) -> None:
    """There PyTorch's threads, which fork does not copy, would be waited for for ever."""
    translator = Translator.load(model)
    expected = translated(translator)
    refused = in_a_forked_process(translator, 2)
    assert isinstance(refused, str)
    assert "method spawn, or call torch.set_num_threads(1)" in refused
    assert in_a_forked_process(translator, 1) == expected
