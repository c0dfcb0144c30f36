"""What nmt-translate does: text in, detokenized translations out, one line for each line; or a whole document.

Wiring only: file or standard input → lines → translator → file or standard output.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from nmt.cli.alignment_outputs import FILES
from nmt.cli.common import watched
from nmt.cli.cutting import MAIN, facts_of, read_merge
from nmt.cli.outputs import opened_for_writing, write_text
from nmt.cli.standard_input import Lines
from nmt.cli.translate import PROGRAM, parser
from nmt.cli.translation_request import Request, read_request
from nmt.data.corpus import lines_of, read_lines, read_text, text_of
from nmt.decoding.chunks import Chunks, Description, Job, file_state, grouped, merge, open_chunks, translate_chunks
from nmt.decoding.doubts import Doubts
from nmt.decoding.text.languages import code_of
from nmt.decoding.text.protect import is_blank
from nmt.decoding.translator import Translation, Translator
from nmt.documents.document import document_options, read_document, written
from nmt.documents.formats import declared_as_utf8
from nmt.errors import InputWarning, counted
from nmt.ops.memory import enough_memory
from nmt.processes import Processes
from nmt.text_form import TextForm

MEMORY = "lower --beam-size or --n-best, or shorten the longest lines of the input"


def translate_as_one(options: argparse.Namespace, problems: list[str], processes: Processes) -> int:
    """Translate as one of the processes, unless there are problems."""
    if options.merge:
        outputs = processes.together(lambda: read_merge(options, problems, parser(), processes=processes.size))
        _say(f"{outputs[MAIN]}: merged {counted(merge(outputs, main=MAIN), 'chunk')}")
        return 0
    request = processes.together(lambda: read_request(options, problems, processes))
    if request.format != "text" or request.command.encoding is not None:
        _translate_document(request, request.format)
    elif request.is_cut:
        _translate_in_chunks(request, processes)
    else:
        _translate_in_one_piece(request)
    return 0


def _say(message: str) -> None:
    print(f"{PROGRAM}: {message}", file=sys.stderr)


def _translate_in_one_piece(request: Request) -> None:
    translator = _load(request)
    lines: Iterator[str]
    if request.source is None:
        stream = Lines(sys.stdin.fileno())
        lines, waiting = lines_of(stream, name="standard input"), stream.waiting
    else:
        lines, waiting = read_lines(request.source), None
    beside: dict[str, Any] = {keyword: read_lines(path) for keyword, path in request.beside.items()}
    at_once = (lambda: True) if request.command.flush else waiting
    translations = translator.translate(lines, request.options, **beside, waiting=at_once)
    is_typed = request.source is None and sys.stdin.isatty()
    shown = translations if is_typed else watched(translations, "lines", total=request.lines)
    _write(request, shown, request.files, 0)


def _translate_in_chunks(request: Request, processes: Processes) -> None:
    """Translate what belongs to this process, and perhaps this shard, of a text that is cut."""
    assert request.source is not None
    translator = processes.together(partial(_load, request))
    job = processes.together(partial(_job, request, translator))
    processes.together(partial(open_chunks, job, processes, say=_say))
    processes.together(partial(_check_lines, request, translator))
    doubts = Doubts()
    source = _NumberedLines(request.source)
    beside = {keyword: _NumberedLines(path) for keyword, path in request.beside.items()}

    def translate(advance: Callable[[], object], first: int, count: int, files: Mapping[str, str]) -> None:
        texts: dict[str, Any] = {keyword: text.lines(first, count) for keyword, text in beside.items()}
        lines = source.lines(first, count)
        translations = translator.translate(lines, request.options, first=first, doubts=doubts, **texts)
        _write(request, translations, files, first, advance)

    translate_chunks(job, processes, translate, say=_say, watched=sys.stderr.isatty())
    _, *others = processes.gather(asdict(doubts))
    if processes.is_first:
        for other in others:
            doubts.add(Doubts(**{**other, "form": TextForm(**other["form"])}))
        doubts.warn(translator.source_form)
        if job.shard is not None:
            _say(f"shard {job.shard} is finished, in {job.chunks.path}; --merge joins all when they are there")


def _check_lines(request: Request, translator: Translator) -> None:
    """Raise UserError, before any chunk is translated, for a line that cannot have its prefix or constraints."""
    assert request.source is not None
    texts: dict[str, Any] = {keyword: read_lines(path) for keyword, path in request.beside.items()}
    if texts:
        for _ in translator.read(read_lines(request.source), request.options, **texts):
            pass


@enough_memory(MEMORY)
def _translate_document(request: Request, form: str) -> None:
    name = "standard input" if request.source is None else str(request.source)
    if request.source is None:
        text = text_of(sys.stdin.buffer, name=name, encoding=request.command.encoding or "utf-8")
    else:
        text = read_text(request.source, encoding=request.command.encoding or "utf-8")
    if request.command.encoding is not None:
        text = declared_as_utf8(text) if form != "text" else text.removeprefix("\ufeff")
    document = read_document(text, format=form, name=name)
    if text.strip() and all(map(is_blank, document.lines)):
        warnings.warn(f"{name}: has nothing to translate, read as {form}", InputWarning, stacklevel=2)
    translator = _load(request)
    said = document.language and document.language.code.search(text)
    source, target = translator.languages
    if said and source and target and code_of(said[0]) not in (code_of(source), code_of(target)):
        what = f"says to be in {said[0]}, and the model translates from {source} to {target}"
        warnings.warn(f"{name}: {what}", InputWarning, stacklevel=2)
    options = document_options(document, request.options, translator)
    translations = translator.translate(document.lines, options, first=None)
    shown = watched(translations, "texts", total=len(document.lines))
    write_text(request.command.output, written(document, [best for best, *_ in shown], translator.languages))


def _job(request: Request, translator: Translator) -> Job:
    """The same as a job in chunks, which knows its files by their contents.

    A chunk ends where lines that are translated together do, so that it has the batches that it has in the whole text,
    and its translations are the same bit for bit; unless the user says how many lines it has.
    """
    assert request.source is not None
    states = {path: file_state(path) for path in (request.source, *request.beside.values())}
    batch_tokens = request.options.decoding(translator.decoding).batch_tokens
    facts = facts_of(vars(request.command), request.models.paths, batch_tokens=batch_tokens)
    lines = read_lines(request.source)
    if (each := request.command.chunk_lines) is None:
        sizes = grouped(translator.together(lines, request.options))
    else:
        total = request.lines or 0
        sizes = [min(each, total - first) for first in range(0, total, each)]
    chunks = Chunks(
        request.command.output, Description(facts, list(request.files), sizes or [0])
    )  # an empty text has one, too
    return Job(chunks, request.files, states, request.command.shard)


@enough_memory(MEMORY)
def _load(request: Request) -> Translator:
    translator = request.models.load()
    if request.format == "text":
        translator.check(request.options, constraints="constraints" in request.beside)
    return translator


class _NumberedLines:
    """Lines of a file by number; it is read again from the beginning if they are behind."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = read_lines(path)
        self._next = 0

    def lines(self, first: int, count: int) -> list[str]:
        """`count` lines starting with line `first`, counted from 0; fewer if the file has become shorter."""
        if first < self._next:
            self._lines, self._next = read_lines(self._path), 0
        lines = list(islice(self._lines, first - self._next, first - self._next + count))
        self._next = first + count
        return lines


@enough_memory(MEMORY)
def _write(
    request: Request,
    translations: Iterable[list[Translation]],
    files: Mapping[str, str],
    first: int,
    advance: Callable[[], object] = lambda: None,
) -> None:
    """Write translations, starting with that of line `first`, to `files`; `advance` is called after each."""
    n_best = request.options.n_best
    names: dict[str, Any] = {kind: files.get(kind) for kind in FILES}
    outputs = replace(request.alignments, **names)
    with opened_for_writing(files[MAIN]) as file, outputs.opened(first=first) as write_alignments:
        for index, hypotheses in enumerate(translations, first):
            file.write(_written(index, hypotheses, n_best=n_best, scores=request.command.scores).encode("utf-8"))
            file.flush()
            alignments = [one.soft_alignment for one in hypotheses if one.soft_alignment is not None]
            write_alignments(alignments, [one.word_scores for one in hypotheses if one.word_scores is not None])
            advance()


def _written(index: int, hypotheses: Sequence[Translation], *, n_best: int, scores: bool) -> str:
    """The output for line `index` of the input."""
    best = hypotheses[0]
    if n_best > 1:
        return "".join(f"{index} ||| {hypothesis.text} ||| {hypothesis.score:.4f}\n" for hypothesis in hypotheses)
    return f"{best.text}\t{best.score:.4f}\n" if scores else f"{best.text}\n"
