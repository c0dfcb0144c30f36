"""nmt-translate: text in, detokenized translations out, one line for each line, in order; or a whole document.

Here are its options; `translation_request` reads them, and `translation` does what they ask for.
"""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.options import (
    add_alignment_options,
    add_computing_options,
    add_model_option,
    add_sampling_options,
    add_search_options,
    add_sentence_option,
    add_unknown_word_options,
    whole_number,
)
from nmt.cli.outputs import STANDARD
from nmt.cli.parser import Parser, command

if TYPE_CHECKING:
    from nmt.decoding.chunks import Shard

PROGRAM = "nmt-translate"


def parser() -> Parser:
    made = Parser(
        PROGRAM,
        description="Translate text: one line out for each line in, in order; a blank line stays blank.",
        epilog="Text is UTF-8, one sentence a line; input files may be .gz. On a pipe a line is answered as soon as "
        "the next one is not there yet. Nothing is written to --output FILE before all of it is translated. A terminal "
        "as standard error shows the progress, with lines a second. Several processes, which share one input file: "
        "torchrun --nproc-per-node N -m nmt translate and these options.",
        usual=(
            *("model", "input", "output", "format", "split_sentences", "device", "beam_size", "n_best", "glossary"),
            *("replace_unknown", "resume"),
        ),
    )
    add_model_option(made, "what translates, required")
    made.add_argument(
        "--input", default=STANDARD, metavar="FILE", help="text to translate; -: standard input (default)"
    )
    made.add_argument(
        "--output", default=STANDARD, metavar="FILE", help="where translations go; -: standard output (default)"
    )
    add_sentence_option(made, "true for a document; lines of text stay whole, with a warning about several sentences")
    made.add_argument(
        "--format",
        metavar="FORMAT",
        help="what the input is: text, with one sentence a line; paragraphs, wrapped text, which is wrapped again in "
        "translation; html or markdown, whose tags go to the words that are aligned with those they enclosed; srt, "
        "vtt, ass, sbv, or ttml, subtitles, in which a sentence may go on in the next one; po, xliff, ts, properties, "
        "or json, messages of programs. All but text is read as a whole, and what is not translated stays (default: by "
        "the ending of FILE, else text)",
    )
    made.add_argument(
        "--encoding",
        metavar="NAME",
        help="encoding of the input, such as cp1250 or utf-16, which is read as a whole then; the output is UTF-8 "
        "(default: utf-8)",
    )
    add_computing_options(made, precision=True, shortlist=True)
    add_search_options(made.add_argument_group("search"))
    add_sampling_options(made.add_argument_group("sampling"))
    made.add_argument(
        "--prefix",
        type=Path,
        help="for each line of the input a line with what its translation begins with, which may be empty. Its last "
        "word is complete, unless it ends with something other than a letter or digit",
    )
    made.add_argument(
        "--constraints",
        type=Path,
        help="for each line of the input a line with the phrases that its translations must contain, separated by "
        "tabs; it may be empty. The beam is shared out among hypotheses with more and fewer of their pieces, so it "
        "should be larger than the number of those",
    )
    made.add_argument(
        "--glossary",
        type=Path,
        help="lines of a term, a tab, and its translation, or CSV, perhaps with a header that names the columns of the "
        "model's languages: where the term occurs, as whole words, its translation takes the place of the words that "
        "attend to it. Of terms at one place the longest counts. A line that begins with # and has no tab is a comment",
    )
    made.add_argument(
        "--glossary-case",
        action="store_true",
        help="find terms of --glossary only with the capitals that they have there (default: with any)",
    )
    made.add_argument(
        "--forbid",
        type=Path,
        help="lines of a word or phrase that no translation may have, as whole words, and also with a capital first "
        "letter. A prefix, a constraint or the glossary must not have them either",
    )
    add_unknown_word_options(made.add_argument_group("unknown words"))
    output = made.add_argument_group("output")
    output.add_argument(
        "--n-best",
        metavar="K",
        help="the K best translations of line i, counted from 0, as K lines: i ||| text ||| score; fewer where fewer "
        "exist; K is at most the beam size, but for --sample. Texts of a list may be equal where their pieces differ "
        "(default: 1, without i and score)",
    )
    output.add_argument(
        "--diversity",
        metavar="STRENGTH",
        help="with --n-best K: translations that differ from each other. The beam is divided into K groups, each gives "
        "its best, and a token loses STRENGTH (such as 0.5) of its log-probability for each hypothesis of an earlier "
        "group that has it at the same place. Fewer than K where groups find the same",
    )
    output.add_argument(
        "--scores",
        action="store_true",
        help="append a tab and the score: log-probability / length penalty + coverage penalty; n-best lists have it "
        "anyway",
    )
    output.add_argument(
        "--word-scores",
        metavar="FILE",
        help="write how sure the model is of each word, a line of JSON for each line of the output: its words, "
        "scores (the log-probability of each, summed over its pieces; 0 for what the model was not shown), and that of "
        "the end",
    )
    output.add_argument(
        "--flush",
        action="store_true",
        help="translate each line by itself and write it before the next one is read (default: lines that are there "
        "already are translated together, which is faster)",
    )
    long = made.add_argument_group("long translations")
    long.add_argument(
        "--resume",
        action="store_true",
        help="keep finished chunks of the input in a folder beside OUTPUT until all are done, so that the same command "
        "goes on from those that are there",
    )
    long.add_argument(
        "--chunk-lines",
        type=whole_number(1),
        metavar="N",
        help="lines of a chunk, which is translated by one process and kept when it is finished (default: as many as "
        "are translated together, so that cutting changes no bit; another number may change the last digit of a score, "
        "and a small one suits many processes). It implies --resume",
    )
    long.add_argument(
        "--shard",
        type=_shard,
        metavar="I/N",
        help="translate every N-th chunk of the input from the I-th on, counted from 1, without knowing of the others, "
        "and keep them in a folder beside OUTPUT, which all shards share or which is then copied together",
    )
    long.add_argument(
        "--merge",
        action="store_true",
        help="make --output, and the files of alignments, of the chunks of all shards, translating nothing: give the "
        "same names as with --shard. Tells what is missing, damaged, or of another model, text, or option",
    )
    attention = made.add_argument_group("alignments, from the attention of the model")
    add_alignment_options(attention)
    return made


def _shard(text: str) -> "Shard":
    """The shard that is given as I/N."""
    from nmt.decoding.chunks import MOST_SHARDS, Shard

    match = re.fullmatch("([0-9]{1,6})/([0-9]{1,6})", text)
    number, of = map(int, match.groups()) if match else (0, 0)
    if 1 <= number <= of <= MOST_SHARDS:
        return Shard(number, of)
    shards = f"such as 1/8 to 8/8, N at most {MOST_SHARDS:,}; shards are counted from 1"
    raise argparse.ArgumentTypeError(f"allowed: I/N, {shards}")


@command(PROGRAM, parser, several=True)
def main(options: argparse.Namespace, problems: list[str]) -> int:
    from nmt.cli.translation import translate_as_one
    from nmt.processes import joined

    with joined(program=PROGRAM) as (processes, _):
        return translate_as_one(options, problems, processes)
