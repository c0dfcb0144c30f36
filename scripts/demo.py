#!/usr/bin/env python3
"""The whole pipeline in a few minutes: a synthetic corpus, a small model, translations, their score and alignments.

    make demo

It runs the three commands as a user would, printing each one first, and stops at the first that fails, with its exit
code. The corpus is kept between demos, but the model is replaced, so that every demo shows a whole training run and
measures the present code. It imports the package only to show the alignments.
"""

import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from textwrap import indent

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path("data/synthetic")  # this one and the next are relative to ROOT, as the commands show them
RUN = Path("runs/demo")
SHOWN = 3  # translations
FEWEST_WORDS, MOST_WORDS = 6, 10  # of the sources to show: neither trivial nor wider than a terminal


def main() -> int:
    started = time.perf_counter()
    try:
        make_corpus()
        train_translate_score()
    except subprocess.CalledProcessError as error:
        print(f"demo: {Path(error.cmd[0]).name} failed with exit code {error.returncode}", file=sys.stderr)
        return int(error.returncode)
    except KeyboardInterrupt:
        print("demo: interrupted; nothing needs cleaning up, the next demo starts over", file=sys.stderr)
        return 130
    show_translations()
    show_score(time.perf_counter() - started)
    return 0


def make_corpus() -> None:
    files = [ROOT / CORPUS / f"{split}.{side}" for split in ("train", "valid", "test") for side in ("en", "de")]
    if all(file.is_file() for file in files):
        heading(f"Corpus: {CORPUS} already exists")
        return
    heading("Corpus: 6,000 English-German sentence pairs from a small grammar")
    command(sys.executable, "scripts/make_synthetic_corpus.py", "--output", str(CORPUS))


def train_translate_score() -> None:
    if (ROOT / RUN).exists():
        heading(f"Training: replacing the model of an earlier demo in {RUN}")
        shutil.rmtree(ROOT / RUN)
    else:
        heading("Training: a small GRU encoder-decoder with additive attention")
    command("nmt-train", "--config", "configs/demo.yaml", "--output", str(RUN))

    heading("Translation: 500 sentences that training has not seen")
    source, reference, hypotheses = CORPUS / "test.en", CORPUS / "test.de", RUN / "test.de"
    command("nmt-translate", "--model", str(RUN), "--input", str(source), "--output", str(hypotheses))

    # The grammar writes words and periods with spaces between them, so BLEU has nothing left to tokenize.
    heading("Evaluation")
    files = ("--hypotheses", str(hypotheses), "--reference", str(reference), "--json", str(RUN / "test.json"))
    command("nmt-eval", *files, "--tokenize", "none")


def heading(text: str) -> None:
    print(f"\n== {text}", flush=True)


def command(program: str, *arguments: str) -> None:
    """Print a command and run it in the repository's folder; raises CalledProcessError when it fails."""
    print(f"$ {shlex.join([Path(program).name, *arguments])}", flush=True)
    installed = Path(sys.executable).parent / program  # works without activating the virtual environment
    subprocess.run([installed, *arguments], cwd=ROOT, check=True)


def show_translations() -> None:
    # Here, not above: importing torch would delay the first line that the user sees.
    from nmt.decoding.options import TranslationOptions
    from nmt.decoding.scoring import score
    from nmt.decoding.translator import Translator

    heading("Translations, each word with the source word that attention read it from")
    translator = Translator.load(ROOT / RUN)
    sides = (CORPUS / "test.en", RUN / "test.de", CORPUS / "test.de")
    rows = zip(*(read(ROOT / side) for side in sides), strict=True)
    shown = list(islice((row for row in rows if FEWEST_WORDS <= len(row[0].split()) <= MOST_WORDS), SHOWN))
    pairs = [(source, hypothesis) for source, hypothesis, _ in shown]
    scores = score(translator, pairs, TranslationOptions(alignments=True))
    for (source, hypothesis, reference), scored in zip(shown, scores, strict=True):
        alignment = scored.alignment
        assert alignment is not None
        print(f"source       {source}")
        print(f"translation  {hypothesis}")
        print(f"reference    {'the same' if reference == hypothesis else reference}")
        described = describe_alignment(alignment.source_words, alignment.target_words, alignment.links)
        print(indent(described, " " * 13), end="\n\n")


def describe_alignment(
    source_words: Sequence[str], target_words: Sequence[str], links: Iterable[tuple[int, int]]
) -> str:
    """A line for each target word, with the source words it is linked to: "Hund ← dog"."""
    linked: list[list[str]] = [[] for _ in target_words]
    for source, target in sorted(links):
        linked[target].append(source_words[source])
    width = max(map(len, target_words), default=0)
    return "\n".join(
        f"{word:<{width}} ← {' '.join(sources)}".rstrip() for word, sources in zip(target_words, linked, strict=True)
    )


def read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def show_score(seconds: float) -> None:
    bleu = json.loads((ROOT / RUN / "test.json").read_text(encoding="utf-8"))["bleu"]
    print(f"BLEU {bleu['score']:.2f} ({bleu['signature']}) after {seconds:.0f} seconds")
    print(f"The model is in {RUN}; try: echo 'The old dog sleeps .' | .venv/bin/nmt-translate --model {RUN}")


if __name__ == "__main__":
    sys.exit(main())
