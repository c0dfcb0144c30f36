"""Outputs of word alignments: Pharaoh lines, JSON lines, one picture a sentence; for nmt-translate and nmt-score.

It knows options, files and alignments, but no models.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from nmt.cli.outputs import STANDARD, Files, check_output, check_outputs, failing_as, opened_for_writing
from nmt.cli.parser import option_name
from nmt.decoding.text.alignment import SoftAlignment, WordScores
from nmt.errors import collected
from nmt.evaluation.alignment_plot import check_plots, heat_map, usual_fonts
from nmt.pharaoh import pharaoh
from nmt.symbols import END, PIECES

FILES = ("alignments", "soft_alignments", "word_scores")
ALIGNMENTS = (*FILES, "plot_alignments")  # the options that ask for what is written beside translations

WriteAlignments = Callable[[Sequence[SoftAlignment], Sequence[WordScores]], None]


@dataclass(frozen=True)
class AlignmentOutputs:
    """Where alignments, and the scores of words, go, under the names of the options."""

    alignments: str | None = None
    soft_alignments: str | None = None
    plot_alignments: Path | None = None
    word_scores: str | None = None

    @property
    def files(self) -> dict[str, str]:
        """Those of FILES to be written."""
        return {name: output for name in FILES if (output := getattr(self, name)) is not None}

    def __bool__(self) -> bool:
        """Whether alignments are to be written."""
        return (self.alignments or self.soft_alignments or self.plot_alignments) is not None

    def check(self, problems: list[str], *, others: Files) -> None:
        """Find out whether alignments can be written, and would overwrite none of the `others`."""
        files = {option_name(name): output for name, output in self.files.items()}
        for option, output in files.items():
            if output == STANDARD:
                problems.append(f"{option} -: standard output has the other lines; give a file")
        taken = check_outputs(files, problems, others=others)
        if self.plot_alignments is not None:
            with collected(problems):
                check_plots()
            with collected(problems):
                check_output("--plot-alignments", str(self.plot_alignments), others=taken, is_folder=True)

    @contextmanager
    def opened(self, *, first: int = 0) -> Iterator[WriteAlignments]:
        """A function to call for each line of the input from line `first` on, with the alignments of its lines in the
        output. Files appear complete or not at all."""
        with ExitStack() as stack:
            files = {name: stack.enter_context(opened_for_writing(output)) for name, output in self.files.items()}
            hard, soft, words = (files.get(name) for name in FILES)
            folder = self.plot_alignments
            plot = None if folder is None else _plots(folder, first)

            def write(alignments: Sequence[SoftAlignment], scores: Sequence[WordScores]) -> None:
                for alignment in alignments:
                    if hard is not None:
                        hard.write(f"{pharaoh(alignment.links)}\n".encode())
                    if soft is not None:
                        source, target = _with_end(alignment.source_words), alignment.target_words
                        content = {"source": source, "target": target, "attention": alignment.rounded()}
                        soft.write(f"{_dumped(content)}\n".encode())
                if words is not None:
                    words.write("".join(f"{_dumped(of_line.rounded())}\n" for of_line in scores).encode())
                if plot is not None:
                    plot(alignments)

            yield write


def _plots(folder: Path, first: int) -> Callable[[Sequence[SoftAlignment]], None]:
    """A function that draws the first of the alignments."""
    from PIL import Image  # which matplotlib needs

    with failing_as(f"--plot-alignments {folder}"):
        folder.mkdir(exist_ok=True)
    fonts = usual_fonts()
    numbers = count(first + 1)

    def draw(alignments: Sequence[SoftAlignment]) -> None:
        number = next(numbers)
        for alignment in alignments[:1]:
            labels, target_words = _with_end(alignment.source_words), alignment.target_words
            if alignment.source_words and target_words:
                picture = Image.fromarray(heat_map(labels, target_words, alignment.weights, fonts=fonts))
                with opened_for_writing(str(folder / f"{number:06}.png")) as file:
                    picture.save(file, "PNG")

    return draw


def _with_end(source_words: list[str]) -> list[str]:
    """The labels of the columns of the weights."""
    return [*source_words, PIECES[END]]


def _dumped(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
