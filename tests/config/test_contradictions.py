"""Keys that contradict each other, and options that have no effect."""

from collections.abc import Callable

import pytest

from nmt.config.contradictions import contradictions
from nmt.config.loading import dump_config, parse_config
from nmt.config.schema import Config

Load = Callable[..., Config]
Messages = Callable[..., list[str]]

DATA = (
    "data: {source_language: a, target_language: b, train: [{source: s, target: t}], valid: {source: %s, target: %s}}"
)


WATCHED = (
    "data: {source_language: a, target_language: b, train: [{source: s, target: t}], valid: {source: x, target: y}, "
    "watch: [{name: old, source: w, target: %s}]}"
)


ALIGNED = (
    "data: {source_language: a, target_language: b, train: [{source: s, target: t, alignments: a}], "
    "valid: {source: x, target: y%s}}"
)


TAGGED = (
    "data: {source_language: a, target_language: b, train: [{source: s, target: t, tag: <BT>}], "
    "valid: {source: x, target: y}}\n"
)


def training(rest: str, end: str = "max_epochs: 20") -> str:
    return f"training: {{{end}, {rest}}}"


FILTERED = (
    "data: {source_language: a, target_language: b, train: [{source: s, target: t}], valid: {source: x, target: y}, %s}"
)


GUIDED = training("guided_alignment: {weight: 0.5}")


@pytest.mark.parametrize(
    ("snippet", "path", "expected"),
    [
        (DATA % ("x", "x"), "data.valid", "source and target are the same file"),
        (WATCHED % "w", "data.watch.0", "source and target are the same file"),
        (
            WATCHED.replace("watch: [", "watch: [{name: old, source: u, target: v}, ") % "z",
            "data.watch.1.name",
            "old is the name of data.watch.0, too; give each its own",
        ),
        (DATA % ("s", "t"), "data.train.0", "these are the files of data.valid"),
        # subword models that are given
        (
            "subwords: {model: m, source_model: s}",
            "subwords.source_model",
            "given: model and source_model; allowed: model, or",
        ),
        ("subwords: {source_model: s, joint: false}", "subwords.source_model", "or source_model and target_model, or"),
        ("subwords: {model: m, vocabulary: v}", "subwords.vocabulary", "given: model and vocabulary"),
        ("subwords: {source_model: s, target_model: t}", "subwords.joint", "true contradicts source_model and target"),
        ("subwords: {model: m, joint: false}", "subwords.joint", "false contradicts model; set true"),
        ("subwords: {model: m, type: unigram}", "subwords.type", "'unigram' has no effect"),
        ("subwords: {model: m, lowercase: true}", "subwords.lowercase", "true has no effect"),
        # vocabularies
        (
            "subwords: {target_vocabulary: s, joint: false}",
            "subwords.target_vocabulary",
            "given: target_vocabulary;",
        ),
        ("subwords: {source_vocabulary: s, target_vocabulary: t}", "subwords.joint", "set false"),
        ("subwords: {vocabulary: v, type: char}", "subwords.type", "'char' has no effect"),
        ("subwords: {joiner: '@@'}", "subwords.joiner", "'@@' has no effect without subwords.vocabulary"),
        ("subwords: {vocabulary: v, sampling: {alpha: 0.1}}", "subwords.sampling", "has no effect on whole words"),
        # subword models that are trained
        ("subwords: {lowercase: true, normalization: identity}", "subwords.lowercase", "use nfkc or nmt_nfkc"),
        ("subwords: {type: char, byte_fallback: true, size: 260}", "subwords.size", "256 bytes and 4 special symbols"),
        ("subwords: {type: word, byte_fallback: true}", "subwords.byte_fallback", "true contradicts type: word"),
        ("subwords: {type: char, sampling: {alpha: 0.1}}", "subwords.sampling", "has no effect on"),
        # pretrained vectors
        (
            "model: {embeddings: {freeze: true}}",
            "model.embeddings",
            "names no file; give source, target, or both, or leave it out",
        ),
        (
            "model: {embeddings: {source: s, target: t}, tie_embeddings: all, decoder: {output_size: 256}}",
            "model.embeddings.target",
            "contradicts source: ",
        ),
        (
            "model: {embeddings: {source: s, freeze: true}, tie_embeddings: all, decoder: {output_size: 256}}",
            "model.embeddings.freeze",
            "(tie_embeddings: all)",
        ),
        (
            "model: {embeddings: {target: t, freeze: true}, tie_embeddings: target, decoder: {output_size: 256}}",
            "model.embeddings.freeze",
            "(tie_embeddings: target)",
        ),
        # the model
        (
            "subwords: {joint: false}\nmodel: {tie_embeddings: all, embedding_size: 512}",
            "model.tie_embeddings",
            "set subwords.joint: true, or tie_embeddings: target",
        ),
        (
            "model: {tie_embeddings: target, embedding_size: 96}",
            "model.tie_embeddings",
            "model.decoder.hidden_size is 512 and model.embedding_size is 96; set model.decoder.output_size: 96",
        ),
        (
            "model: {tie_embeddings: all, embedding_size: 96, decoder: {output_size: 64}}",
            "model.tie_embeddings",
            "model.decoder.output_size is 64 and model.embedding_size is 96",
        ),
        (
            "model: {encoder: {bidirectional: false, directions: sum}}",
            "model.encoder.directions",
            "'sum' has no",
        ),
        ("model: {encoder: {residual: true}}", "model.encoder.residual", "no effect with model.encoder.layers: 1"),
        ("model: {decoder: {residual: true}}", "model.decoder.residual", "no effect with model.decoder.layers: 1"),
        (
            "model: {decoder: {fed_dropout: 0.1, input_feeding: false}}",
            "model.decoder.fed_dropout",
            "0.1 has no effect with model.decoder.input_feeding: false",
        ),
        # training
        ("training: {early_stopping: null}", "training.early_stopping", "training would never end; leave this out, or"),
        ("training: {schedule: {name: linear}}", "training.schedule", "linear needs max_epochs or max_updates"),
        (
            training("schedule: {name: halving, after: 500}"),
            "training.schedule.every",
            "1 epoch does not go with after: 500 updates; give both in epochs, or both in updates",
        ),
        (
            training("kernels: plain, precision: auto"),
            "training.precision",
            "'auto' has no effect with training.ker",
        ),
        (
            training("schedule: {name: plateau, minimum_learning_rate: 0.1}, optimizer: {learning_rate: 0.1}"),
            "training.schedule.minimum_learning_rate",
            "0.1 is not below training.optimizer.learning_rate: 0.1, so the rate would never be cut",
        ),
        (
            training("schedule: {name: plateau, minimum_learning_rate: 0, stop_below_minimum: true}"),
            "training.schedule.stop_below_minimum",
            "true has no effect with training.schedule.minimum_learning_rate: 0.0; remove it",
        ),
        (
            training("schedule: {name: plateau, patience: 5}, early_stopping: {patience: 6}"),
            "training.schedule.patience",
            "training.early_stopping.patience: 6 ends training before the rate would be cut; set that to 7 or more",
        ),
        (
            training("schedule: {name: plateau, patience: 5}, early_stopping: {share: 0.1}"),
            "training.schedule.patience",
            "training.early_stopping.patience: 5, its default, ends training before the rate would be cut",
        ),
        (
            training("optimizer: {name: sgd, decayed: matrices}"),
            "training.optimizer.decayed",
            "'matrices' has no effect with training.optimizer.weight_decay: 0",
        ),
        (training("average_best: 3, keep_best: 2"), "training.average_best", "keep_best: 2 keeps fewer"),
        (training("r_drop: {weight: 5}"), "training.r_drop", "has no effect without dropout"),
        (training("word_replacement: {}"), "training.word_replacement", "has no effect with source and target: 0"),
        # fine-tuning
        (training("freeze: [decoder, encoder, embeddings]"), "training.freeze", "names every part, so nothing is left"),
        (training("vocabulary: new, freeze: [decoder]"), "training.vocabulary", "training.freeze: decoder"),
        (training("vocabulary: new, freeze: [embeddings, decoder]"), "training.vocabulary", "training.freeze: emb"),
        # guided alignment
        (ALIGNED % "", "data.train.0.alignments", "has no effect, because training.guided_alignment is null"),
        (GUIDED, "training.guided_alignment", "has no effect without alignments; give them in data.train (nmt-align"),
        # minimum risk
        (
            training("minimum_risk: {size: 5}, r_drop: {weight: 5}") + "\nmodel: {encoder: {dropout: 0.1}}",
            "training.r_drop",
            "has no effect with training.minimum_risk",
        ),
        (
            training("minimum_risk: {size: 5}, label_smoothing: 0.1"),
            "training.label_smoothing",
            "0.1 has no effect with training.minimum_risk.cross_entropy: 0.0",
        ),
        (
            training("minimum_risk: {candidates: n-best, temperature: 0.5}"),
            "training.minimum_risk.temperature",
            "0.5 has no effect with training.minimum_risk.candidates: 'n-best'",
        ),
    ],
)
def test_one_contradiction(messages: Messages, snippet: str, path: str, expected: str) -> None:
    (message,) = messages(snippet)
    assert message.split(": ")[1] == path
    assert expected in message


@pytest.mark.parametrize(
    "snippet",
    [
        FILTERED % "max_length: 50, max_length_ratio: 49.5",
        "subwords: {model: m, sampling: {alpha: 0.1}}",  # only the model knows its type
        "subwords: {source_model: s, target_model: t, joint: false}",
        "subwords: {type: char, byte_fallback: true, size: 261}",
        "model: {tie_embeddings: all, decoder: {output_size: 256}}",
        "model: {tie_embeddings: target, embedding_size: 512}",
        "model: {encoder: {residual: true, layers: 2}, decoder: {residual: true, layers: 2}}",
        training("max_updates: 1, validate_every: 20 epochs"),
        f"{ALIGNED % ''}\n{GUIDED}",
        f"{ALIGNED % ', alignments: b'}\n{GUIDED}",
        # trial runs: however short, they start with any schedule and patience
        training("schedule: {name: halving, after: 500, every: 20 updates}", "max_updates: 20"),
        training("schedule: {name: plateau}, early_stopping: {patience: 9}, save_every: 300", "max_updates: 20"),
        training("schedule: {name: plateau, patience: 5}, early_stopping: {metric: loss, patience: 1}"),
        training("schedule: {name: plateau, stop_below_minimum: true}"),
        training("batch_by: tokens, batch_size: 80, sort_pairs: 1601"),
        training("vocabulary: new, freeze: [decoder]") + "\nmodel: {tie_embeddings: target, embedding_size: 512}",
        TAGGED + training("vocabulary: extended, freeze: [decoder]"),
        training("sort_pairs: 1600"),  # 20 times the default of batch_size
        "subwords: {vocabulary: v, joiner: '@@'}",
        "subwords: {type: word, source_vocabulary: s, target_vocabulary: t, joint: false}",
        "model: {embeddings: {source: s, freeze: true}, tie_embeddings: target, decoder: {output_size: 256}}",
        "model: {embeddings: {source: s, target: s}, tie_embeddings: all, decoder: {output_size: 256}}",
        "model: {embeddings: {target: t}, tie_embeddings: all, decoder: {output_size: 256}}",
    ],
)
def test_combinations_with_an_effect(load: Load, snippet: str) -> None:
    config = load(snippet)
    assert contradictions(parse_config(dump_config(config))) == [], "nor once every default is spelt out"
