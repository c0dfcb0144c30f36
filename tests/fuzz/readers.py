"""The readers that are fuzzed: for each a function that gives it one case, bytes such as a stranger may hand in.

A case passes when the reader takes it, or refuses it with our own error; whatever else is raised is a finding. Each
`prepare_…` makes in an empty folder what its cases need, and returns the function. A case of several files is the name
of the file that is damaged, a line end, and its new content.
"""

import io
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

import torch
from tqdm import tqdm

from nmt.cli import parts as parts_module
from nmt.cli.evaluate import main as evaluate
from nmt.cli.train import main as train
from nmt.cli.translate import main as translate
from nmt.config import dump_config, load_config, parse_config
from nmt.config.schema import Config, SubwordSampling, SubwordsConfig
from nmt.config.yaml_text import write_yaml
from nmt.data.corpus import check_corpora, read_lines, read_pairs
from nmt.data.dictionary import read_dictionary
from nmt.data.preparation import prepare
from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.shortlist import load_shortlist, save_shortlist, train_shortlist
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.evaluation.alignments import read_gold, read_links
from nmt.models.checks import model_problems
from nmt.models.model_file import ModelFile, load_model, save_model
from nmt.models.seq2seq import build_model
from nmt.training import trainer as trainer_module
from nmt.training.checkpoint import read_state
from nmt.training.finetuning import load_origin
from tests.fuzz.worker import Broken, OneCase
from tests.random_model import SENTENCES, text

tqdm.set_lock(RLock())  # its own is one of the system, which processes that crash would leave behind
LINE = SENTENCES[0]
LINES = 12  # of the corpora: enough for a vocabulary, and encoded in no time
SHORT = {"beam_size": 2, "max_length_ratio": 1.0}  # of translations, whatever a model asks for

LONGEST_MESSAGE = 200_000  # characters of what an error says


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
        "subwords": {"type": "bpe", "size": 43, "normalisation": "identity"},  # whose models are small
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
    for name, chosen in (("train", [f"{each}\n" for each in SENTENCES] + lines[:LINES]), ("valid", lines[LINES:])):
        (folder / f"{name}.en").write_text("".join(chosen))
        (folder / f"{name}.de").write_text("".join(" ".join(line.split()[::-1]) + "\n" for line in chosen))


def refused(call: Callable[[], object]) -> bool:
    """Call it; whether it raised our own error, which has to be of a length that somebody can read."""
    try:
        call()
    except UserError as error:
        if not str(error).strip() or len(str(error)) > LONGEST_MESSAGE:
            raise Broken("the message is empty, or endless") from error
        return True
    return False


# ------------------------------------------------------------------------------------------------------------ settings


def prepare_configuration(folder: Path) -> OneCase:
    """A YAML file as --config gets it. What was accepted is written, and read again the same."""
    path = folder / "config.yaml"

    def one_case(case: bytes) -> None:
        path.write_bytes(case)
        refused(partial(_load, path, []))

    return one_case


def prepare_set(folder: Path) -> OneCase:
    """Arguments of --set, one a line, on a valid configuration."""
    path = folder / "config.yaml"
    path.write_text(write_yaml(configuration()))

    def one_case(case: bytes) -> None:
        refused(partial(_load, path, case.decode("utf-8", "surrogateescape").split("\0")))

    return one_case


def _load(path: Path, overrides: Sequence[str]) -> None:
    config = load_config(path, overrides, [model_problems])
    again = dump_config(config)
    if dump_config(parse_config(again)) != again:
        raise Broken("a configuration that was accepted is not what is read back")


# ---------------------------------------------------------------------------------------------------------------- text


def prepare_corpus(folder: Path) -> OneCase:
    """A corpus file, plain or gzip, as both sides of a corpus. All ways to read it agree."""
    path = folder / "corpus"

    def one_case(case: bytes) -> None:
        path.write_bytes(case)
        counts: list[int] = []
        pairs: list[tuple[str, str]] = []
        lines: list[str] = []
        bad = refused(lambda: counts.extend(check_corpora([(path, path)])))
        streams_bad = refused(lambda: lines.extend(read_lines(path)))
        if streams_bad != refused(lambda: pairs.extend(read_pairs(path, path))):
            raise Broken("a file that is read as lines is refused as pairs, or the other way round")
        if bad != streams_bad and not (bad and not lines):  # an empty file is no corpus
            raise Broken("a corpus is checked with another result than it is read")
        if not bad and not counts == [len(lines)] == [len(pairs)]:
            raise Broken("a corpus has another number of lines when it is read than when it was checked")
        if any("\n" in line for line in lines):
            raise Broken("a line has a line end inside")

    return one_case


def prepare_dictionary(folder: Path) -> OneCase:
    """A dictionary for unknown words, and its use."""
    path, model = folder / "dictionary", Translator.load(save_model_file(folder / "model.safetensors"))

    def one_case(case: bytes) -> None:
        path.write_bytes(case)
        found: dict[str, str] = {}
        if not refused(lambda: found.update(read_dictionary(path))):
            words = " ".join(list(found)[:3])
            refused(lambda: list(model.translate([f"a {words} ä"], replace_unknown=found, **SHORT)))

    return one_case


def prepare_constraints(folder: Path) -> OneCase:
    """A file of constraints, also as one of prefixes, for one line of text each."""
    path, model = folder / "constraints", Translator.load(save_model_file(folder / "model.safetensors"))

    def one_case(case: bytes) -> None:
        path.write_bytes(case)
        lines: list[str] = []
        if not refused(lambda: lines.extend(read_lines(path))) and lines:
            few = lines[:2]
            refused(lambda: list(model.translate([LINE] * len(few), constraints=few, **SHORT)))
            refused(lambda: list(model.translate([LINE] * len(few), prefixes=few, **SHORT)))

    return one_case


def prepare_pharaoh(folder: Path) -> OneCase:
    """Alignments to score and to combine, as nmt-eval does; the other direction and the gold ones are the same file."""
    path, output = folder / "links", folder / "output"

    def one_case(case: bytes) -> None:
        path.write_bytes(case)
        refused(lambda: read_links(read_lines(path), name="links"))
        refused(lambda: read_gold(read_lines(path), name="gold"))
        for how in ("union", "grow-diag-final-and"):
            output.unlink(missing_ok=True)
            options = ["--alignments", path, "--reverse-alignments", path, "--gold-alignments", path]
            if _exit_code(evaluate, [*options, "--symmetrise", how, "--output", output]) == 0:
                read_links(read_lines(output), name="what we wrote")

    return one_case


# --------------------------------------------------------------------------------------------------- files of our own


def prepare_cache(folder: Path) -> OneCase:
    """A file of the data cache: whatever it holds, the training gets the words of the corpus."""
    write_corpora(folder)
    (folder / "config.yaml").write_text(write_yaml(configuration(folder)))
    config = load_config(folder / "config.yaml")
    cache, kept = folder / "cache", folder / "kept"

    def ids() -> list[Any]:
        prepared = prepare(config, cache=cache, log=lambda _: None)
        models = [subwords.model for subwords in prepared.vocabularies]
        sides = (
            side(row).tolist()
            for corpus in (prepared.train, prepared.valid)
            for row in range(len(corpus))
            for side in (corpus.source, corpus.target)
        )
        return [*models, *sides]

    right = ids()
    shutil.copytree(cache, kept)

    def one_case(case: bytes) -> None:
        shutil.rmtree(cache, ignore_errors=True)
        shutil.copytree(kept, cache)
        _damage(cache, case)
        found: list[Any] = []
        if not refused(lambda: found.extend(ids())) and found != right:
            raise Broken("a damaged cache gives the training other words, in silence")

    return one_case


def cache_files() -> Iterator[tuple[str, bytes]]:
    """Names and contents of a cache's files, for cases to begin with."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        write_corpora(folder)
        (folder / "config.yaml").write_text(write_yaml(configuration(folder)))
        prepare(load_config(folder / "config.yaml"), cache=folder / "cache", log=lambda _: None)
        yield from _files(folder / "cache")


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for name, path in _names(folder).items():
        yield name, path.read_bytes()


def _names(folder: Path) -> dict[str, Path]:
    """The files of a folder by their names, with numbers for the hashes in them, as a later version makes others."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    found: dict[str, Path] = {}
    for path in paths:
        name = str(path.relative_to(folder))
        for number in range(len(paths)):
            numbered = re.sub("[0-9a-f]{32,}", str(number), name)
            if numbered not in found:
                found[numbered] = path
                break
    return found


def _damage(folder: Path, case: bytes) -> None:
    """Put the content of a case into the file that it names, if there is one."""
    name, _, content = case.partition(b"\n")
    path = _names(folder).get(name.decode("utf-8", "replace"))
    if path is not None:
        path.write_bytes(content)


def prepare_model(folder: Path) -> OneCase:
    """A model file: loaded, rebuilt, and a line translated, as by nmt-translate; then as fine-tuning starts from it."""
    path = folder / "model.safetensors"

    def one_case(case: bytes) -> None:
        path.write_bytes(case)
        found: list[Translator] = []
        if not refused(lambda: found.append(Translator.load(path))):
            refused(lambda: list(found[0].translate([LINE], **SHORT)))
            refused(lambda: load_origin(path))

    return one_case


def model_file() -> bytes:
    """A valid model file."""
    with tempfile.TemporaryDirectory() as name:
        return save_model_file(Path(name) / "model").read_bytes()


def save_model_file(path: Path) -> Path:
    """Write a model with random weights for `configuration`; returns its path."""
    config = Config.model_validate(configuration())
    subwords = Subwords.train(SENTENCES, settings=config.subwords, size=config.subwords.size)
    torch.manual_seed(1)
    network = build_model(config.model, source_size=subwords.size, target_size=subwords.size)
    for weight in network.parameters():
        weight.data *= 3  # so that something is translated
    sizes = (subwords.size, subwords.size)
    save_model(path, ModelFile(config, network.state_dict(), subwords.model, subwords.model, sizes, {}))
    return path


def prepare_subwords(folder: Path) -> OneCase:
    """A subword model that somebody has trained: loaded, and text cut, sampled and put together by it."""
    path = folder / "subwords.model"
    sampling = SubwordSampling(alpha=0.1)

    def one_case(case: bytes) -> None:
        path.write_bytes(case)
        found: list[Subwords] = []
        if refused(lambda: found.append(Subwords.from_file(path))):
            return
        subwords = found[0]
        ids = subwords.encode(LINE)
        subwords.decode(ids)
        subwords.decode_marked(ids, "?")
        subwords.spans(LINE)
        with suppress(ValueError):  # a model of another type, or with symbols of its own
            subwords.sample([LINE], sampling=sampling, seed=0)

    return one_case


def subword_models() -> Iterator[bytes]:
    """Valid subword models of each type."""
    for kind, size in (("bpe", 43), ("unigram", 33), ("word", 20), ("char", 30)):
        yield Subwords.train(
            SENTENCES, settings=SubwordsConfig(type=kind, size=size, normalisation="identity"), size=size
        ).model


def prepare_shortlist(folder: Path) -> OneCase:
    """A shortlist, and a translation with it."""
    path, model = folder / "shortlist.safetensors", save_model_file(folder / "model.safetensors")
    translator = Translator.load(model)

    def one_case(case: bytes) -> None:
        path.write_bytes(case)
        if not refused(lambda: load_shortlist(path, translator.vocabularies)):
            listed = load_shortlist(path, translator.vocabularies)
            narrow = Translator(translator.model, translator.vocabularies, shortlist=listed)
            refused(lambda: list(narrow.translate([LINE], **SHORT)))

    return one_case


def shortlist_file() -> bytes:
    """A valid shortlist."""
    with tempfile.TemporaryDirectory() as name:
        model = load_model(save_model_file(Path(name) / "model"))
        vocabularies = Vocabularies.from_bytes(model.source_subwords, model.target_subwords, model.sizes)
        pairs = [(line, line) for line in SENTENCES]
        trained = train_shortlist(pairs, vocabularies, translations=5, most_frequent=7)
        save_shortlist(Path(name) / "shortlist", trained.shortlist)
        return (Path(name) / "shortlist").read_bytes()


# ------------------------------------------------------------------------------------------------- runs and their parts


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


def _exit_code(main: Callable[[Sequence[str]], int], options: Sequence[object]) -> int:
    code = main([str(option) for option in options])
    if code not in (0, 2):
        raise Broken(f"the program ends with the code {code}")
    return code


def prepare_state(folder: Path) -> OneCase:
    """The state of a run, or another of its files, which is then resumed to its end."""
    run, kept = folder / "run", folder / "kept"
    config = _train_shortly(folder, run)
    run.rename(kept)

    def one_case(case: bytes) -> None:
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(kept, run)
        _damage(run, case)
        if case.startswith(b"state.safetensors\n"):
            state = run / "state.safetensors"
            if refused(lambda: read_state(state)) and not (run / "state.1.safetensors").exists():
                return  # what most cases come to; the rest would say the same, and take 20 times as long
        threads = torch.get_num_threads()
        try:
            _exit_code(train, ["--config", config, "--output", run, "--resume"])
        finally:
            torch.set_num_threads(threads)

    return one_case


def _train_shortly(folder: Path, run: Path) -> Path:
    """A run in the folder `run` that was stopped before its last update; returns its configuration."""
    write_corpora(folder)
    config = folder / "config.yaml"
    config.write_text(write_yaml(configuration(folder)))
    write_state = trainer_module.write_state

    def write_and_stop(path: Path, *, numbers: dict[str, Any], **rest: Any) -> None:
        write_state(path, numbers=numbers, **rest)
        if numbers["progress"]["validated"] == 2:
            raise KeyboardInterrupt

    with _replaced(trainer_module, "write_state", write_and_stop):
        train(["--config", str(config), "--output", str(run)])
    assert (run / "metrics.jsonl").read_text().count("\n") == 3
    return config


def run_files() -> Iterator[tuple[str, bytes]]:
    """Names and contents of a run's files, without TensorBoard's, which we do not read, and what holds no data."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        _train_shortly(folder, folder / "run")
        for file, content in _files(folder / "run"):
            if not file.startswith(("tensorboard", ".lock")) and not file.endswith(".log"):
                yield file, content


def prepare_parts(folder: Path) -> OneCase:
    """A file among the parts of a translation that was stopped, and is resumed: no line is lost or changed."""
    options = _translate_partly(folder)
    output, parts = folder / "output", folder / "output.parts"
    kept, right = folder / "kept", (folder / "right").read_bytes()
    shutil.copytree(parts, kept)
    translator = Translator.load(folder / "model.safetensors")
    Translator.load = lambda *_, **__: translator  # type: ignore[method-assign] - a case's time is not for that

    def one_case(case: bytes) -> None:
        output.unlink(missing_ok=True)
        shutil.rmtree(parts, ignore_errors=True)
        shutil.copytree(kept, parts)
        _damage(parts, case)
        if _exit_code(translate, [*options, "--resume"]) == 0 and output.read_bytes() != right:
            raise Broken("a damaged part is joined, in silence")

    return one_case


def _translate_partly(folder: Path) -> list[str]:
    """Parts in `folder` of a translation that was stopped, and the file `right`; returns the options but --resume."""
    model, source = save_model_file(folder / "model.safetensors"), folder / "input"
    source.write_text(text(9))
    options = ["--model", str(model), "--input", str(source), "--output", str(folder / "output"), "--chunk-lines", "3"]
    with _replaced(parts_module.Parts, "join", _stopped):
        translate(options)
    kept = folder / "kept for now"
    shutil.copytree(folder / "output.parts", kept)
    with redirect_stderr(io.StringIO()):
        assert translate([*options, "--resume"]) == 0
    (folder / "output").rename(folder / "right")
    kept.rename(folder / "output.parts")
    for last in sorted((folder / "output.parts").glob("000002.*")):
        last.unlink()  # one chunk is left to do
    return options


def _stopped(*_: object) -> None:
    raise KeyboardInterrupt


def part_files() -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files of a translation that was stopped."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        _translate_partly(folder)
        for file, content in _files(folder / "output.parts"):
            if file != ".lock":
                yield file, content


PREPARE: dict[str, Callable[[Path], OneCase]] = {
    "configuration": prepare_configuration,
    "set": prepare_set,
    "corpus": prepare_corpus,
    "dictionary": prepare_dictionary,
    "constraints": prepare_constraints,
    "pharaoh": prepare_pharaoh,
    "cache": prepare_cache,
    "model": prepare_model,
    "subwords": prepare_subwords,
    "shortlist": prepare_shortlist,
    "state": prepare_state,
    "parts": prepare_parts,
}
