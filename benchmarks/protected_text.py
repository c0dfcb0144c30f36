#!/usr/bin/env python3
"""What becomes of text that a model has never seen: protected spans, terms, invisible characters, capitals.

    python benchmarks/protected_text.py --model runs/multi30k_en_de --source val.en --reference val.de

Into each of the first lines something is inserted between two words, drawn with `--seed`; the rest of the translation
should be as good as without it, and it should stand beside the translation of a word that it stood beside. Terms are 20
nouns with another translation than the usual one, which takes its place in the reference. Prints one JSON line.
"""

import argparse
import json
import random
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import sacrebleu

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find its neighbors when run as a file

from nmt.cli.common import run
from nmt.data.corpus import read_lines
from nmt.decoding.options import TranslationOptions
from nmt.decoding.text.glossary import Glossary
from nmt.decoding.translator import Translator
from nmt.decoding.writing import Translation

SPANS = {
    "placeholder": "{name}",
    "address": "https://example.com/a?b=1",
    "mail": "ann@example.org",
    "number": "1,984",
    "emoji": "😀",
    "tag": "<br>",
}
# A noun, its usual translations, and another one
TERMS = """dog Hund Köter|man Mann Kerl|woman Frau Dame|boy Junge,Jungen Bub|girl Mädchen Göre|street Straße Gasse|
ball Ball Kugel|child Kind Sprössling|guitar Gitarre Klampfe|horse Pferd Gaul|water Wasser Nass|bike Fahrrad Drahtesel|
shirt Hemd,Shirt,T-Shirt Oberteil|table Tisch Tafel|building Gebäude Bauwerk|grass Gras Halme|snow Schnee Firn|
beach Strand Ufer|hat Hut Deckel|car Auto Wagen"""


def _bleu(texts: Sequence[str], references: Sequence[str]) -> float:
    return round(sacrebleu.corpus_bleu(list(texts), [list(references)]).score, 2)


def spans(translator: Translator, lines: Sequence[str], references: Sequence[str], seed: int) -> dict[str, Any]:
    """Of each kind of span: how many are there once, how many beside a neighbor, and the score of the rest."""
    draw = random.Random(seed)
    options = TranslationOptions(protect=["placeholders", "addresses", "symbols", "numbers"], alignments=True)
    usual = [best for best, *_ in translator.translate(lines, options)]
    found: dict[str, Any] = {"untouched": _bleu([best.text for best in usual], references)}
    for name, span in SPANS.items():
        places = [draw.randrange(len(line.split()) + 1) for line in lines]
        touched = [
            " ".join([*line.split()[:at], span, *line.split()[at:]]) for line, at in zip(lines, places, strict=True)
        ]
        texts = [best.text for best, *_ in translator.translate(touched, options)]
        rest = [re.sub(r" (?=[.,])", "", " ".join(text.replace(span, " ", 1).split())) for text in texts]
        beside = [_is_beside(*both, span) for both in zip(usual, texts, places, strict=True)]
        found[name] = {
            "once": sum(text.count(span) == 1 for text in texts) / len(texts),
            "beside": round(sum(beside) / len(beside), 3),
            "bleu": _bleu(rest, references),
        }
    return found


def _is_beside(usual: Translation, text: str, place: int, span: str) -> bool:
    """Whether it stands beside a word that is aligned with a word beside it in the source."""
    if span not in text:
        return False
    at = len(text[: text.index(span)].split())
    around = {target for source, target in usual.alignment or () if source in (place - 1, place)}
    last = len(usual.text.split())
    return bool(around & {at - 1, at}) or (place == 0 and at == 0) or at >= last


def terms(translator: Translator, lines: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """Over all lines with one of the nouns: whether the term is there and the usual one is not, and the scores."""
    count = there = alone = 0
    texts: list[list[str]] = [[], []]
    exchanged: list[str] = []
    for entry in TERMS.replace("\n", "").split("|"):
        noun, usual, other = entry.split()
        old = re.compile(rf"\b(?:{usual.replace(',', '|')})\b")
        chosen = [place for place, line in enumerate(lines) if re.search(rf"\b{noun}\b", line)]
        with_noun = [lines[place] for place in chosen]
        for several, glossary in zip(texts, (None, Glossary({noun: other})), strict=True):
            options = TranslationOptions(glossary=glossary)
            several += [best.text for best, *_ in translator.translate(with_noun, options)]
        for text in texts[1][count : count + len(chosen)]:
            there += other in text
            alone += other in text and old.search(text) is None
        count += len(chosen)
        exchanged += [old.sub(other, references[place]) for place in chosen]
    scores = {"without": _bleu(texts[0], exchanged), "with": _bleu(texts[1], exchanged)}
    return {"lines": count, "there": round(there / count, 3), "alone": round(alone / count, 3), **scores}


def forms(translator: Translator, lines: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """The scores of lines with what nobody sees, and in capitals."""
    changed = {
        "soft hyphen": ([f"{line[:4]}\u00ad{line[4:]}" for line in lines], references),
        "isolates": ([f"\u2068{line}\u2069" for line in lines], references),
        "capitals": ([line.upper() for line in lines], [line.upper() for line in references]),
    }
    found = {
        name: _bleu([best.text for best, *_ in translator.translate(texts)], expected)
        for name, (texts, expected) in changed.items()
    }
    usual = [best.text for best, *_ in translator.translate(lines)]
    return {
        "usual": _bleu(usual, references),
        "usual in capitals": _bleu([t.upper() for t in usual], changed["capitals"][1]),
    } | found


def _measure(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="an English-German model of Multi30k")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=500, help="that spans are inserted into (default: 500)")
    parser.add_argument("--seed", type=int, default=1, help="of the places (default: 1)")
    options = parser.parse_args(arguments)
    translator = Translator.load(options.model)
    lines, references = list(read_lines(options.source)), list(read_lines(options.reference))
    found = {
        "spans": spans(translator, lines[: options.lines], references[: options.lines], options.seed),
        "terms": terms(translator, lines, references),
        "forms": forms(translator, lines, references),
    }
    print(json.dumps(found, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    raise SystemExit(run("protected_text", partial(_measure, None)))
