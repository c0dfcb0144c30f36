#!/usr/bin/env python3
"""Translate a text with Spark: pip install pyspark pandas pyarrow; needs Java.

    python examples/spark.py --model MODEL --input test.en --output test.de
    spark-submit examples/spark.py --model MODEL --input test.en --output test.de

The translator is pickled with the function of `mapInPandas`, as the path of its model: each task loads that file, which
all machines must see. So a task should have enough lines to be worth it.
"""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from pyspark.sql import SparkSession

from nmt import Translator

LINES = 20_000  # in a task


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--model", "--input", "--output"):
        parser.add_argument(name, type=Path, required=True)
    options = parser.parse_args()
    translator = Translator.load(options.model)

    def translate(batches: Iterable[Any]) -> Iterator[Any]:
        torch.set_num_threads(1)  # what a task is given by default
        for batch in batches:
            yield batch.assign(translation=[best.text for best, *_ in translator.translate(batch["text"])])

    spark = SparkSession.builder.appName("translate").getOrCreate()
    with options.input.open(encoding="utf-8", newline="\n") as file:
        rows = [(number, line.removesuffix("\n")) for number, line in enumerate(file)]
    frame = spark.createDataFrame(rows, "line long, text string").repartitionByRange(len(rows) // LINES + 1, "line")
    translated = frame.mapInPandas(translate, "line long, text string, translation string").sort("line")
    with options.output.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{row['translation']}\n" for row in translated.toLocalIterator())
    spark.stop()


if __name__ == "__main__":
    main()
