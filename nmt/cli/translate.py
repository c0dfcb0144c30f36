"""nmt-translate: text in, detokenized translations out, one line for each line, in order; or a whole document.

Wiring only: file or standard input → lines → translator → file or standard output.
"""

if __name__ == "__main__":  # before the imports that take seconds, so that Ctrl-C works during them
    from nmt.cli import start

    raise SystemExit(start.translate())

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from nmt.cli.alignment_outputs import FILES, AlignmentOutputs
from nmt.cli.common import run
from nmt.cli.long_lines import LongLines
from nmt.cli.outputs import opened_for_writing, write_text
from nmt.cli.parsers.translate import PROGRAM, parser
from nmt.cli.parts_request import MAIN, PartsRequest, facts_of, outputs_inside, parts_folder
from nmt.cli.shard_request import read_merge
from nmt.cli.shards import Block, block_of, finish_block
from nmt.cli.standard_input import Lines, refuse_gzip
from nmt.cli.translation_request import Request, read_request
from nmt.data.corpus import LARGEST_TEXT, lines_of, read_lines, read_text, text_of
from nmt.decoding.reading import sentence_language
from nmt.decoding.translator import Translation, Translator
from nmt.documents.document import document_options, read_document
from nmt.documents.formats import Format
from nmt.errors import UserError, checked, counted
from nmt.jobs.in_parts import translate_in_parts
from nmt.jobs.resuming import Job, remove_idle
from nmt.jobs.shards import merge
from nmt.ops.memory import enough_memory
from nmt.processes import Processes, joined, reported_by_the_first

MEMORY = "lower --beam-size or --n-best, or shorten the longest lines of the input"

Translate = Callable[..., Iterator[list[Translation]]]  # lines, with what stands beside them, and `first` or `waiting`


def main(arguments: Sequence[str] | None = None) -> int:
    """Run nmt-translate; returns the exit code: 0, or 2 after a mistake of the user."""
    return run(PROGRAM, partial(_translate, arguments), several=True)


def _translate(arguments: Sequence[str] | None) -> int:
    with reported_by_the_first():
        options = parser().parse_args(arguments)
    with joined(program=PROGRAM) as (processes, _):
        return _translate_as_one(options, processes)


def _translate_as_one(options: argparse.Namespace, team: Processes) -> int:
    """Translate as one of the processes."""
    if options.merge:
        outputs = team.together(lambda: checked(read_merge(options, parser(), processes=team.size)))
        shards = counted(merge(outputs, main=MAIN), "shard")
        print(f"{PROGRAM}: {outputs[MAIN]}: merged {shards}; their files may be deleted", file=sys.stderr)
        return 0
    request = team.together(lambda: checked(read_request(options, team)))
    if request.format != "text":
        return _translate_document(request, request.format)
    long = LongLines()
    block: Block | None = None
    if request.shard is not None:
        block = team.together(lambda: block_of(request, _load(request, long)))
        if request.lines and block.lines == 0 and team.is_first:
            why = f"{request.source} can be divided into {block.pieces} at most, with these --batch-tokens"
            print(f"{PROGRAM}: warning: shard {request.shard} is empty: {why}", file=sys.stderr)
    code = 0
    if request.parts is None:
        _translate_in_one_piece(request, block, long)
    else:
        job = team.together(partial(_job, request, request.parts, block))
        load, write = partial(_load_for_chunks, request, block, long), partial(_write_part, request, block)
        tell = partial(long.tell, PROGRAM, lines=job.lines)
        code = translate_in_parts(job, team, load=load, write=write, note=long.taken, tell=tell)
    if block is not None and code == 0 and team.is_first:
        finish_block(request, block)
    return code


def _translate_in_one_piece(request: Request, block: Block | None, long: LongLines) -> None:
    if not outputs_inside(folder := parts_folder(request.output), {MAIN: request.output, **vars(request.alignments)}):
        remove_idle(folder)
    translator = _load(request, long) if block is None else block.translator
    lines: Iterator[str]
    if request.source is None:
        stream = Lines(sys.stdin.fileno())
        lines, waiting = lines_of(stream, name="standard input"), stream.waiting
    else:
        lines, waiting = read_lines(request.source), None
    beside = {keyword: read_lines(path) for keyword, path in request.beside.items()}
    first, total = 0, request.lines
    if block is not None:
        first, total = block.first, block.lines
        lines = islice(lines, first, first + total)
        beside = {keyword: islice(text, first, first + total) for keyword, text in beside.items()}
    translate: Translate = partial(translator.translate, options=request.options)
    at_once = (lambda: True) if request.flush else waiting
    translations = translate(long.among(lines), **beside, first=first, waiting=at_once)
    watched = sys.stderr.isatty() and not (request.source is None and sys.stdin.isatty())
    _write(request, tqdm(translations, total=total, unit=" lines", disable=not watched), request.files, first)
    long.tell(PROGRAM, long.taken(), long.lines)


@enough_memory(MEMORY)
def _translate_document(request: Request, form: Format) -> int:
    name = "standard input" if request.source is None else str(request.source)
    if request.source is None:
        content = sys.stdin.buffer.read(LARGEST_TEXT + 1)
        refuse_gzip(content)
        text = text_of(BytesIO(content), name=name)
    else:
        text = read_text(request.source)
    document = read_document(text, format=form, name=name)
    translator = _load(request, LongLines())
    options = document_options(document, request.options, translator)
    translations = translator.translate(document.lines, options, first=None)
    watched = tqdm(translations, total=len(document.lines), unit=" texts", disable=not sys.stderr.isatty())
    write_text(request.output, document.written([best for best, *_ in watched]))
    return 0


def _job(request: Request, parts: PartsRequest, block: Block | None) -> Job:
    """The same as a job in parts, which knows its files by their contents."""
    return Job(
        program=PROGRAM,
        folder=parts_folder(request.output),
        lines=(request.lines or 0) if block is None else block.lines,
        outputs=request.files,
        texts=request.texts() if block is None else block.texts,
        facts=facts_of(request.command, request.models.paths) if block is None else block.facts,
        chunk_lines=parts.chunk_lines,
        resume=parts.resume,
    )


@enough_memory(MEMORY)
def _load(request: Request, long: LongLines) -> Translator:
    translator, options = request.models.load(), request.options
    n_best, beam_size = options.n_best, options.beam_size or translator.decoding.beam_size
    if options.sampling is None and n_best > beam_size:
        raise UserError(
            f"--n-best {n_best}: must be at most the beam size, {beam_size} from the model; give --beam-size {n_best} "
            "or more"
        )
    if sentence_language(options, translator.languages) is None:
        long.watch(translator)
    return translator


def _load_for_chunks(
    request: Request, block: Block | None, long: LongLines
) -> Callable[[int, int], Iterator[list[Translation]]]:
    """Load what translates a number of lines of the source, or of a block of it, starting with a first one.

    Raises UserError, before any of them is, for a line that cannot have its prefix or constraints.
    """
    assert request.source is not None
    translator = _load(request, long) if block is None else block.translator
    begin, end = (0, None) if block is None else (block.first, block.first + block.lines)
    translate: Translate = partial(translator.translate, options=request.options)
    if request.beside:
        texts: dict[str, Any] = {
            keyword: islice(read_lines(path), begin, end) for keyword, path in request.beside.items()
        }
        lines = islice(read_lines(request.source), begin, end)
        for _ in translator.read(lines, request.options, first=begin, **texts):
            pass
    source = _NumberedLines(request.source)
    beside = {keyword: _NumberedLines(path) for keyword, path in request.beside.items()}

    def translate_chunk(first: int, count: int) -> Iterator[list[Translation]]:
        texts = {keyword: text.lines(begin + first, count) for keyword, text in beside.items()}
        return translate(long.among(source.lines(begin + first, count)), first=begin + first, **texts)

    return translate_chunk


class _NumberedLines:
    """Lines of a file by number; it is read again from the beginning if they are behind."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = read_lines(path)
        self._next = 0

    def lines(self, first: int, count: int) -> list[str]:
        """`count` lines starting with line `first`, counted from 0. Raises UserError if the file has become shorter."""
        if first < self._next:
            self._lines, self._next = read_lines(self._path), 0
        lines = list(islice(self._lines, first - self._next, first - self._next + count))
        self._next = first + count
        if len(lines) < count:
            raise UserError(f"{self._path}: has become shorter since the translation began")
        return lines


def _write_part(
    request: Request,
    block: Block | None,
    translations: Iterable[list[Translation]],
    files: Mapping[str, str],
    first: int,
) -> int:
    """Like `_write`, with a `first` line that is counted from the beginning of the block."""
    return _write(request, translations, files, first if block is None else block.first + first)


@enough_memory(MEMORY)
def _write(request: Request, translations: Iterable[list[Translation]], files: Mapping[str, str], first: int) -> int:
    """Write translations, starting with that of line `first`, to `files`; returns how many lines each of them got."""
    written, n_best = 0, request.options.n_best
    hard, soft = (files.get(kind) for kind in FILES)
    outputs = AlignmentOutputs(hard, soft, request.alignments.plot_alignments)
    with opened_for_writing(files[MAIN]) as file, outputs.opened(program=PROGRAM, first=first) as write_alignments:
        for index, hypotheses in enumerate(translations, first):
            file.write(_written(index, hypotheses, n_best=n_best, scores=request.scores).encode("utf-8"))
            file.flush()
            alignments = (hypothesis.soft_alignment for hypothesis in hypotheses)
            write_alignments([alignment for alignment in alignments if alignment is not None])
            written += len(hypotheses)
    return written


def _written(index: int, hypotheses: Sequence[Translation], *, n_best: int, scores: bool) -> str:
    """The output for line `index` of the input."""
    best = hypotheses[0]
    if n_best > 1:
        return "".join(f"{index} ||| {hypothesis.text} ||| {hypothesis.score:.4f}\n" for hypothesis in hypotheses)
    return f"{best.text}\t{best.score:.4f}\n" if scores else f"{best.text}\n"
