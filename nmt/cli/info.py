"""nmt-info: what a model file holds, and what of a text its vocabulary lacks."""

import argparse
import json
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

from nmt.cli.options import missing
from nmt.cli.parser import Parser, command, say
from nmt.errors import refuse

PROGRAM = "nmt-info"


def parser() -> Parser:
    """The options of the command."""
    made = Parser(
        PROGRAM,
        description="Tell what a model translates, how it was trained, on how much, and how it scored.",
        epilog="Scores are those on the validation text at the update whose weights the file has.",
    )
    made.add_argument("--model", type=Path, metavar="PATH", help="a model file, or a run folder (its best), required")
    made.add_argument("--input", type=Path, help="text to translate: tell which characters of it the vocabulary lacks")
    made.add_argument("--json", action="store_true", help="write a JSON object instead of YAML")
    return made


@command(PROGRAM, parser)
def main(options: argparse.Namespace, problems: list[str]) -> None:
    problems += missing({"--model PATH": (options.model, "a model file, or the folder of a run")})
    refuse(problems)
    from nmt.config.yaml_text import write_yaml
    from nmt.data.corpus import read_lines
    from nmt.data.subwords import Subwords
    from nmt.models.model_file import load_model, model_path
    from nmt.protected import is_form, learned_by
    from nmt.text_form import source_form

    path = model_path(options.model)
    model = load_model(path, export=True)
    data, network, form = model.config.data, model.config.model, source_form(model.training)
    learned = learned_by(model.training)
    about = {
        "file": str(path),
        "bytes": path.stat().st_size,
        "written": datetime.fromtimestamp(path.stat().st_mtime, timezone.utc).isoformat(timespec="seconds"),
        "export": None if model.exported is None else model.exported.precision,
        "name": model.config.name,
        "source_language": data.source_language,
        "target_language": data.target_language,
        "source_vocabulary": model.sizes[0],
        "target_vocabulary": model.sizes[1],
        "parameters": model.exported.parameters
        if model.exported
        else sum(weight.numel() for weight in model.weights.values()),
        "decoder": network.decoder.type,
        "attention": f"{network.attention.score}, {network.attention.scope}",
        "training_pairs": None if form is None else form.counts["lines"],
        # What is shown to it, although `decoding.protect` names it, and is translated, or carried over
        "learned": [text for text, how in learned.items() if how is False and not is_form(text)],
        "carried": [text for text, how in learned.items() if how is True],
        # See `nmt.protected.Learned`
        "forms": {text: how for text, how in learned.items() if isinstance(how, str) or is_form(text)},
        **{key: model.training.get(key) for key in ("updates", "epochs", "validation")},
    }
    if options.input is not None:
        subwords, having = Subwords(model.source_subwords), Counter[str]()  # words, or characters, by lines
        for line in read_lines(options.input):
            having.update(set(line.split() if subwords.of_words else line))
        about["unknown"] = subwords.unknown(having)
    say(f"{json.dumps(about, ensure_ascii=False)}\n" if options.json else write_yaml(about))
