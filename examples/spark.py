#!/usr/bin/env python3
"""Translate a text with Spark: pip install pyspark pandas pyarrow; needs Java.

    python examples/spark.py --model MODEL --input test.en --output test.de
    spark-submit examples/spark.py --model MODEL --input test.en --output test.de

The translator is pickled with the function of `mapInPandas`, as the path of its model: each task loads that file, which
all machines must see. So a task should have enough lines to be worth it.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from pyspark.sql import SparkSession

from nmt import Translator
from nmt.cli.common import run
from nmt.cli.outputs import opened_for_writing
from nmt.data.corpus import read_lines

LINES = 20_000  # in a task


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--model", "--input", "--output"):
        parser.add_argument(name, required=True)
    options = parser.parse_args()
    translator = Translator.load(options.model)
    rows = [*enumerate(read_lines(Path(options.input)))]

    def translate(batches: Iterable[Any]) -> Iterator[Any]:
        torch.set_num_threads(1)  # what a task is given by default
        for batch in batches:
            yield batch.assign(translation=[best.text for best, *_ in translator.translate(batch["text"])])

    spark = SparkSession.builder.appName("translate").getOrCreate()
    frame = spark.createDataFrame(rows, "line long, text string").repartitionByRange(len(rows) // LINES + 1, "line")
    translated = frame.mapInPandas(translate, "line long, text string, translation string").sort("line")
    with opened_for_writing(options.output) as file:  # complete or not at all
        file.writelines(f"{row['translation']}\n".encode() for row in translated.toLocalIterator())
    spark.stop()


if __name__ == "__main__":
    sys.exit(run("spark.py", main))
