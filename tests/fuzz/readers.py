"""The readers that are fuzzed: for each a function that gives it one case, bytes such as a stranger may hand in.

A case passes when the reader takes it, or refuses it with our own error; whatever else is raised is a finding. Each
`prepare_…` makes in an empty folder what its cases need, and returns the function. A case of several files is the name
of the file that is damaged, a line end, and its new content.
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

import torch
from tqdm import tqdm

from nmt.cli.align import main as align
from nmt.cli.train import main as train
from nmt.cli.translate import main as translate
from nmt.config.loading import dump_config, parse_config, read_config
from nmt.config.schema import SubwordSampling
from nmt.config.yaml_text import write_yaml
from nmt.data.corpus import check_corpora, read_lines, read_pairs, read_text
from nmt.data.pairs import Pair, pairs_of_table
from nmt.data.prepare import prepare
from nmt.data.subwords import Subwords
from nmt.data.word_vectors import WordVectors, read_vectors
from nmt.decoding.shortlist import load_shortlist
from nmt.decoding.text.glossary import read_dictionary
from nmt.decoding.translator import TranslationOptions, Translator
from nmt.documents.document import read_document
from nmt.documents.formats import Document
from nmt.documents.memories import pairs_of_memory
from nmt.errors import UserError
from nmt.pharaoh import read_gold, read_links
from nmt.symbols import PIECES
from nmt.training.starting_weights import load_origin
from nmt.training.states import read_state
from tests.conftest import checked_config
from tests.documents.imitation import in_order, in_reverse, same, translated
from tests.fuzz.samples import (
    configuration,
    document_files,
    names,
    pair_files,
    save_model_file,
    train_shortly,
    translate_partly,
    write_corpora,
)
from tests.fuzz.worker import Broken, OneCase
from tests.random_model import SENTENCES

tqdm.set_lock(RLock())  # its own is one of the system, which processes that crash would leave behind
LINE = SENTENCES[0]
SHORT = TranslationOptions(beam_size=2, max_length_ratio=1.0)  # of translations, whatever a model asks for

LONGEST_MESSAGE = 200_000  # characters of what an error says


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
    config = checked_config(path, overrides)
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
        dictionary: dict[str, str] = {}
        if not refused(lambda: dictionary.update(read_dictionary(path))):
            words = " ".join(list(dictionary)[:3])
            refused(lambda: list(model.translate([f"a {words} ä"], replace(SHORT, replace_unknown=dictionary))))

    return one_case


def prepare_vocabulary(folder: Path) -> OneCase:
    """A vocabulary, which its own words must come back from as they are."""
    path = folder / "vocabulary"

    def one_case(case: bytes) -> None:
        path.write_bytes(case)
        loaded: list[Subwords] = []
        if refused(lambda: loaded.append(Subwords.of_vocabulary(path, joiner="@@"))):
            return
        words = [piece.removeprefix("▁") for piece in loaded[0].pieces(range(loaded[0].size))][len(PIECES) :]
        text = " ".join(words[:1000])
        if loaded[0].pieces(loaded[0].encode(text)) != [f"▁{word}" for word in words[:1000]]:
            raise Broken("a word of the vocabulary is another one in a text")
        if loaded[0].decode(loaded[0].encode(text)) != loaded[0].whole_words(text):
            raise Broken("the words of a text are not those of the vocabulary")

    return one_case


def prepare_vectors(folder: Path) -> OneCase:
    """A file of word vectors, of which those that are read must be numbers."""
    path, pieces = folder / "vectors", [*PIECES, "▁Hund", "▁dog", "s", "▁ä", "▁1"]

    def one_case(case: bytes) -> None:
        path.write_bytes(case)
        loaded: list[WordVectors] = []
        if refused(lambda: loaded.append(read_vectors(path, pieces, size=2, largest=1e6))):
            return
        ids, values = loaded[0]
        if values.shape != (len(ids), 2) or not bool((abs(values) <= 1e6).all()) or len(set(ids.tolist())) < len(ids):
            raise Broken("vectors that are no vectors")

    return one_case


def prepare_constraints(folder: Path) -> OneCase:
    """A file of constraints, also as one of prefixes, for one line of text each."""
    path, model = folder / "constraints", Translator.load(save_model_file(folder / "model.safetensors"))

    def one_case(case: bytes) -> None:
        path.write_bytes(case)
        lines: list[str] = []
        if not refused(lambda: lines.extend(read_lines(path))) and lines:
            few = lines[:2]
            refused(lambda: list(model.translate([LINE] * len(few), SHORT, constraints=few)))
            refused(lambda: list(model.translate([LINE] * len(few), SHORT, prefixes=few)))

    return one_case


def prepare_pharaoh(folder: Path) -> OneCase:
    """Alignments to score and to combine by nmt-align; the other direction and the gold ones are the same file."""
    path, output = folder / "links", folder / "output"

    def one_case(case: bytes) -> None:
        path.write_bytes(case)
        refused(lambda: read_links(read_lines(path), name="links"))
        refused(lambda: read_gold(read_lines(path), name="gold"))
        for how in ("union", "grow-diag-final-and"):
            output.unlink(missing_ok=True)
            options = ["--alignments", path, "--reverse-alignments", path, "--gold-alignments", path]
            if _exit_code(align, [*options, "--symmetrize", how, "--output", output]) == 0:
                read_links(read_lines(output), name="what we wrote")

    return one_case


# ------------------------------------------------------------------------------------- documents and tables of others


def prepare_document(folder: Path) -> OneCase:
    """A document, whose format is the name of the case: it is written with any translations, and can be read again."""
    path = folder / "document"

    def one_case(case: bytes) -> None:
        name, _, content = case.partition(b"\n")
        form = name.decode("utf-8", "replace")
        path.write_bytes(content)
        read: list[Document] = []
        if refused(lambda: read.append(read_document(read_text(path), format=form))):
            return
        if any("\n" in line for line in read[0].lines):
            raise Broken("a line of a document has a line end inside")
        for imitation in (in_order, in_reverse):
            refused(lambda made=imitation: translated(read[0], made))
        written: list[str] = []
        is_refused = refused(lambda: written.append(read[0].written(same(read[0].lines))))
        has_times = form in ("srt", "sbv", "vtt")  # of which a row that is broken anew may look like one of times
        if not (is_refused or has_times) and refused(lambda: read_document(written[0], format=form)):
            raise Broken(f"what is written as {form} cannot be read as {form}")

    for form, content in document_files():  # imports what reads it
        one_case(f"{form}\n".encode() + content)
    return one_case


def prepare_pairs(folder: Path) -> OneCase:
    """A table or a memory of translations, whose ending is the name of the case, as nmt-init reads it."""
    endings = {ending.encode() for ending, _ in pair_files()}

    def one_case(case: bytes) -> None:
        name, _, content = case.partition(b"\n")
        path = folder / f"pairs.{name.decode() if name in endings else 'csv'}"
        path.write_bytes(content)
        pairs: list[Pair] = []
        if path.suffix in (".csv", ".tsv"):
            refused(lambda: pairs.extend(pairs_of_table(path, [["en", "lemma"], ["de", "form"]])))
            refused(lambda: pairs.extend(pairs_of_table(path, [["en"], ["de"]], ["1", "3", "2"])))
        else:
            refused(lambda: pairs.extend(pairs_of_memory(path, ("en", "de"))))
        if any("\n" in text for pair in pairs for text in (pair.source, pair.target)):
            raise Broken("a text of a pair has a line end inside")

    for ending, content in pair_files():
        one_case(f"{ending}\n".encode() + content)
    return one_case


# --------------------------------------------------------------------------------------------------- files of our own


def prepare_cache(folder: Path) -> OneCase:
    """A file of the data cache: whatever it holds, the training gets the words of the corpus."""
    write_corpora(folder)
    (folder / "config.yaml").write_text(write_yaml(configuration(folder)))
    config = read_config(folder / "config.yaml").config
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
        loaded: list[Any] = []
        if not refused(lambda: loaded.extend(ids())) and loaded != right:
            raise Broken("a damaged cache gives the training other words, in silence")

    return one_case


def _damage(folder: Path, case: bytes) -> None:
    """Put the content of a case into the file that it names, if there is one."""
    name, _, content = case.partition(b"\n")
    path = names(folder).get(name.decode("utf-8", "replace"))
    if path is not None:
        path.write_bytes(content)


def prepare_model(folder: Path) -> OneCase:
    """A model file: loaded, rebuilt, and a line translated, as by nmt-translate; then as fine-tuning starts from it."""
    path = folder / "model.safetensors"

    def one_case(case: bytes) -> None:
        path.write_bytes(case)
        loaded: list[Translator] = []
        if not refused(lambda: loaded.append(Translator.load(path))):
            refused(lambda: list(loaded[0].translate([LINE], SHORT)))
            refused(lambda: load_origin(path))

    return one_case


def prepare_subwords(folder: Path) -> OneCase:
    """A subword model that somebody has trained: loaded, and text cut, sampled and put together by it."""
    path = folder / "subwords.model"
    sampling = SubwordSampling(alpha=0.1)

    def one_case(case: bytes) -> None:
        path.write_bytes(case)
        loaded: list[Subwords] = []
        if refused(lambda: loaded.append(Subwords.from_file(path))):
            return
        subwords = loaded[0]
        ids = subwords.encode(LINE)
        subwords.decode(ids)
        subwords.decode_marked(ids, "?")
        subwords.spans(LINE)
        with suppress(ValueError):  # a model of another type, or with symbols of its own
            subwords.sample([LINE], sampling=sampling, seed=0)

    return one_case


def prepare_shortlist(folder: Path) -> OneCase:
    """A shortlist, and a translation with it."""
    path, model = folder / "shortlist.safetensors", save_model_file(folder / "model.safetensors")
    translator = Translator.load(model)

    def one_case(case: bytes) -> None:
        path.write_bytes(case)
        if not refused(lambda: load_shortlist(path).checked(translator.vocabularies)):
            listed = load_shortlist(path).checked(translator.vocabularies)
            narrow = Translator(translator.models, translator.vocabularies, shortlist=listed)
            refused(lambda: list(narrow.translate([LINE], SHORT)))

    return one_case


# ------------------------------------------------------------------------------------------------- runs and chunks


def _exit_code(main: Callable[[Sequence[str]], int], options: Sequence[object]) -> int:
    code = main([str(option) for option in options])
    if code not in (0, 2):
        raise Broken(f"the program ends with the code {code}")
    return code


def prepare_state(folder: Path) -> OneCase:
    """The state of a run, or another of its files, which is then resumed to its end."""
    run, kept = folder / "run", folder / "kept"
    config = train_shortly(folder, run)
    run.rename(kept)

    def one_case(case: bytes) -> None:
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(kept, run)
        _damage(run, case)
        if case.startswith(b"state.safetensors\n"):
            state = run / "state.safetensors"
            if refused(lambda: read_state(state)):
                return  # what most cases come to; the rest would say the same, and take 20 times as long
        threads = torch.get_num_threads()
        try:
            _exit_code(train, ["--config", config, "--output", run, "--resume"])
        finally:
            torch.set_num_threads(threads)

    return one_case


def prepare_chunks(folder: Path) -> OneCase:
    """A file among the chunks of a translation that was stopped, and goes on: no line is lost or changed."""
    options = translate_partly(folder)
    output, (chunks,) = folder / "output", folder.glob("output.chunks-*")
    kept, right = folder / "kept", (folder / "right").read_bytes()
    shutil.copytree(chunks, kept)
    translator = Translator.load(folder / "model.safetensors")
    Translator.load = lambda *_, **__: translator  # type: ignore[method-assign] - a case's time is not for that

    def one_case(case: bytes) -> None:
        output.unlink(missing_ok=True)
        shutil.rmtree(chunks, ignore_errors=True)
        shutil.copytree(kept, chunks)
        _damage(chunks, case)
        if _exit_code(translate, options) == 0 and output.read_bytes() != right:
            raise Broken("a damaged chunk is joined, in silence")

    return one_case


PREPARE: dict[str, Callable[[Path], OneCase]] = {
    "configuration": prepare_configuration,
    "set": prepare_set,
    "corpus": prepare_corpus,
    "dictionary": prepare_dictionary,
    "vocabulary": prepare_vocabulary,
    "vectors": prepare_vectors,
    "constraints": prepare_constraints,
    "pharaoh": prepare_pharaoh,
    "documents": prepare_document,
    "pairs": prepare_pairs,
    "cache": prepare_cache,
    "model": prepare_model,
    "subwords": prepare_subwords,
    "shortlist": prepare_shortlist,
    "state": prepare_state,
    "chunks": prepare_chunks,
}
