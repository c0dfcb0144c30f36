#!/usr/bin/env python3
"""How many tags land where people put them: parallel HTML, a segment a line, with the same tags on both sides.

    python benchmarks/tag_placement.py --source all.en.html.gz --target all.de.html.gz
    python benchmarks/tag_placement.py … --both-directions
    python benchmarks/tag_placement.py … --model runs/help

The reference's text takes the place of a translation, so that only the placing of tags is measured. Words attend to
each other as IBM model 1 has it, learned from the same text in one direction, or in both (the product of what these
say: Liang, Taskar & Klein 2006), or as a model does that is made to write the reference.
Prints one JSON line: segments with tags, and how many are exactly the reference's.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find its neighbors when run as a file

from nmt.cli.common import run
from nmt.data.corpus import read_lines
from nmt.decoding.text.alignment import Block, SoftAlignment
from nmt.decoding.writing import Translation
from nmt.documents.html import HtmlDocument
from nmt.ops.translation_table import ibm_model_1

_TAG = re.compile(r"<[^<>]*>")
_LOCAL = re.compile(r'(["/])[a-z]{2}(?:-[A-Z]{2})?(?=/)')  # the language in an address


class Segment(NamedTuple):
    """HTML of both sides, whose tags are the same, and the text that is translated."""

    document: HtmlDocument
    source: str
    target: str
    reference: str


def segments(source: Path, target: Path) -> Iterator[Segment]:
    """The segments with tags inside a single text."""
    for ours, theirs in zip(read_lines(source), read_lines(target), strict=True):
        if Counter(map(_name, _TAG.findall(ours))) == Counter(map(_name, _TAG.findall(theirs))) and "<" in ours:
            document, other = HtmlDocument(ours), HtmlDocument(theirs)
            if len(document.lines) == len(other.lines) == 1:
                yield Segment(document, document.lines[0], other.lines[0], theirs)


def _name(tag: str) -> str:
    return _LOCAL.sub(r"\1", tag)


def _same(written: str, reference: str) -> bool:
    return " ".join(_LOCAL.sub(r"\1", written).split()) == " ".join(_LOCAL.sub(r"\1", reference).split())


def ibm_alignments(pairs: Sequence[tuple[str, str]]) -> Iterable[SoftAlignment]:
    """For each pair how probable each source word is as the origin of each target word; NULL comes last."""
    ids: list[list[npt.NDArray[np.int64]]] = []
    sizes = []
    for side in (0, 1):
        words = [_words(pair[side]) for pair in pairs]
        numbers = {word: number for number, word in enumerate(dict.fromkeys(chain.from_iterable(words)))}
        ids.append([np.array([numbers[word] for word in several], dtype=np.int64) for several in words])
        sizes.append(len(numbers))
    both = list(zip(*ids, strict=True))
    table = ibm_model_1(both, source_size=sizes[0], target_size=sizes[1])
    keys = table.sources * sizes[1] + table.targets
    for (source, target), (ours, theirs) in zip(pairs, both, strict=True):
        cells = torch.from_numpy(np.append(ours, sizes[0]))[None] * sizes[1] + torch.from_numpy(theirs)[:, None]
        weights = table.probabilities[torch.searchsorted(keys, cells)]
        weights = weights / weights.sum(1, keepdim=True)
        links = [(word, place) for place, word in enumerate(weights.argmax(1).tolist()) if word < len(ours)]
        yield SoftAlignment(source.split(), target.split(), [Block(weights.numpy())], links)


def agreeing_alignments(pairs: Sequence[tuple[str, str]]) -> Iterable[SoftAlignment]:
    """The same with how probable each target word is as the origin of the source word, too."""
    back = ibm_alignments([(target, source) for source, target in pairs])
    for alignment, other in zip(ibm_alignments(pairs), back, strict=True):
        weights = alignment.weights
        weights[:, :-1] *= other.weights[:, :-1].T
        yield replace(alignment, blocks=[Block(weights / weights.sum(1, keepdims=True).clip(min=1e-30))])


def _words(text: str) -> list[str]:
    """Words as they are counted: without capitals and the signs around them, unless they are all of it."""
    return [re.sub(r"^\W+(?=\w)|(?<=\w)\W+$", "", word).casefold() for word in text.split()]


def model_alignments(model: Path, pairs: Sequence[tuple[str, str]]) -> Iterable[SoftAlignment]:
    """The attention of a model that is made to write the targets."""
    from nmt.decoding.options import TranslationOptions
    from nmt.decoding.translator import Translator

    translator = Translator.load(model)
    options = TranslationOptions(alignments=True, protect=[], beam_size=1)
    sources, targets = zip(*pairs, strict=True)
    for several in translator.translate(sources, options, prefixes=targets):
        assert several[0].soft_alignment is not None
        yield several[0].soft_alignment


def _measure(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--source", type=Path, required=True, help="HTML, a segment a line, perhaps in gzip")
    parser.add_argument("--target", type=Path, required=True, help="the same in another language")
    parser.add_argument("--both-directions", action="store_true", help="IBM model 1 from either side")
    parser.add_argument("--model", type=Path, help="whose attention is used (default: IBM model 1)")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N that differ")
    options = parser.parse_args(arguments)
    found = list(segments(options.source, options.target))
    pairs = [(segment.source, segment.target) for segment in found]
    ibm = agreeing_alignments if options.both_directions else ibm_alignments
    alignments = model_alignments(options.model, pairs) if options.model else ibm(pairs)
    exact = marked = shown = 0
    for segment, alignment in zip(found, alignments, strict=True):
        translation = Translation(segment.target, 0.0, [], alignment.links, alignment)
        written = segment.document.written([translation])
        is_same = _same(written, segment.reference)
        marked += segment.document.is_marked
        exact += is_same and segment.document.is_marked
        if not is_same and shown < options.show:
            shown += 1
            print(f"{segment.source}\n  {segment.reference}\n  {written}", file=sys.stderr)
    print(json.dumps({"tagged": marked, "exact": exact, "share": round(exact / marked, 4)}))
    return 0


if __name__ == "__main__":
    raise SystemExit(run("tag_placement", partial(_measure, None)))
