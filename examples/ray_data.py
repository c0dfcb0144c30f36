#!/usr/bin/env python3
"""Translate a text with Ray Data: pip install 'ray[data]'

    python examples/ray_data.py --model MODEL --input test.en --output test.de --workers 4

`map_batches` starts actors, each of which gets the translator: it is pickled as the path of its model, and each actor
loads that file, which all machines must see. With a data set of its own, such as `ray.data.read_parquet`, the middle of
`main` is all that is needed.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import ray
import torch

from nmt import Translator
from nmt.cli.common import run
from nmt.cli.outputs import opened_for_writing
from nmt.data.corpus import read_lines

LINES = 2000  # in a batch; within it, lines of similar length are translated together


class Translate:
    """An actor, which translates the column `text` into the column `translation`."""

    def __init__(self, translator: Translator) -> None:
        self.translator = translator
        torch.set_num_threads(1)  # what an actor is given by default

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        translations = [best.text for best, *_ in self.translator.translate(batch["text"].tolist())]
        return {**batch, "translation": np.array(translations, dtype=object)}


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--model", "--input", "--output"):
        parser.add_argument(name, required=True)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    translator = Translator.load(options.model)

    rows = [{"line": number, "text": line} for number, line in enumerate(read_lines(Path(options.input)))]
    translated = (
        ray.data.from_items(rows)
        .map_batches(
            Translate,
            fn_constructor_args=(translator,),
            batch_size=LINES,
            compute=ray.data.ActorPoolStrategy(size=options.workers),
        )
        .sort("line")
    )
    with opened_for_writing(options.output) as file:  # complete or not at all
        file.writelines(f"{row['translation']}\n".encode() for row in translated.iter_rows())


if __name__ == "__main__":
    sys.exit(run("ray_data.py", main))
