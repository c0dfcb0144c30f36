"""Which files are mutated, and which tests have to notice."""

MODELS = ("kernels", "against_numpy", "decoders", "attention", "encoder", "seq2seq")
OPS = ("tests/ops", *(f"tests/models/test_{name}.py" for name in MODELS))
SEARCH = ("tests/decoding",)
FILES = ("tests/test_tensor_file.py", "tests/test_files.py")
RUNS = tuple(f"tests/training/test_{name}.py" for name in ("checkpoint", "states", "run_folder"))
OBJECTIVES = tuple(
    f"tests/training/test_{name}.py"
    for name in ("scheduled_sampling", "word_replacement", "moving_average", "minimum_risk", "update")
)
ORIGINS = tuple(f"tests/training/test_{name}.py" for name in ("averaging", "starting_weights"))
CACHE = tuple(f"tests/data/test_{name}.py" for name in ("store", "damaged_cache", "lint", "prepare"))

# file → the test file that is its own, whose tests are run first, and all that have to do with it
TARGETS: dict[str, tuple[str, tuple[str, ...]]] = {
    "nmt/ops/activations.py": ("tests/ops/test_activations.py", OPS),
    "nmt/ops/chunks.py": ("tests/ops/test_loss.py", OPS),
    "nmt/ops/computing.py": ("tests/ops/test_computing.py", OPS),
    "nmt/ops/guidance.py": ("tests/ops/test_guidance.py", OPS),
    "nmt/ops/linear.py": ("tests/ops/test_computing.py", OPS),
    "nmt/ops/log_probabilities.py": ("tests/ops/test_log_probabilities.py", OPS),
    "nmt/ops/loss.py": ("tests/ops/test_loss.py", OPS),
    "nmt/ops/masks.py": ("tests/ops/test_masks.py", OPS),
    "nmt/ops/memory.py": ("tests/ops/test_memory.py", OPS),
    "nmt/ops/packed_weights.py": ("tests/ops/test_packed_weights.py", OPS),
    "nmt/ops/products.py": ("tests/ops/test_products.py", OPS),
    "nmt/ops/recurrence.py": ("tests/ops/test_recurrence.py", OPS),
    "nmt/ops/reset_first.py": ("tests/ops/test_reset_first.py", OPS),
    "nmt/ops/risk.py": ("tests/ops/test_risk.py", OPS),
    "nmt/ops/sequence.py": ("tests/ops/test_sequence.py", OPS),
    "nmt/ops/steps.py": ("tests/ops/test_steps.py", OPS),
    "nmt/ops/translation_table.py": ("tests/ops/test_translation_table.py", OPS),
    "nmt/decoding/batched_search.py": ("tests/decoding/test_batched_search.py", SEARCH),
    "nmt/decoding/search/loop.py": ("tests/decoding/search/test_beam.py", SEARCH),
    "nmt/decoding/search/beam.py": ("tests/decoding/search/test_beam.py", SEARCH),
    "nmt/decoding/search/one_sentence.py": ("tests/decoding/search/test_one_sentence.py", SEARCH),
    "nmt/decoding/search/hypotheses.py": ("tests/decoding/search/test_beam.py", SEARCH),
    "nmt/decoding/search/choices.py": ("tests/decoding/search/test_beam.py", SEARCH),
    "nmt/decoding/search/rules.py": ("tests/decoding/search/test_rules.py", SEARCH),
    "nmt/training/checkpoint.py": ("tests/training/test_checkpoint.py", RUNS),
    "nmt/training/run_folder.py": ("tests/training/test_run_folder.py", RUNS),
    "nmt/training/states.py": ("tests/training/test_states.py", RUNS),
    "nmt/training/averaging.py": ("tests/training/test_averaging.py", (*ORIGINS, "tests/cli/test_average.py")),
    "nmt/training/moving_average.py": ("tests/training/test_moving_average.py", OBJECTIVES),
    "nmt/training/objective.py": ("tests/training/test_minimum_risk.py", OBJECTIVES),
    "nmt/training/scheduled_sampling.py": ("tests/training/test_scheduled_sampling.py", OBJECTIVES),
    "nmt/training/starting_weights.py": ("tests/training/test_starting_weights.py", ORIGINS),
    "nmt/training/update.py": ("tests/training/test_update.py", OBJECTIVES),
    "nmt/training/word_replacement.py": ("tests/training/test_word_replacement.py", OBJECTIVES),
    "nmt/experiment/candidates.py": (
        "tests/cli/test_train_minimum_risk.py",
        ("tests/cli/test_train_minimum_risk.py", *OBJECTIVES),
    ),
    "nmt/evaluation/metrics.py": ("tests/evaluation/test_metrics.py", ("tests/evaluation/test_metrics.py",)),
    "nmt/tensor_file.py": ("tests/test_tensor_file.py", FILES),
    "nmt/files.py": ("tests/test_files.py", FILES),
    "nmt/data/alignments.py": ("tests/data/test_alignments.py", CACHE),
    "nmt/data/cache.py": ("tests/data/test_damaged_cache.py", CACHE),
    "nmt/data/lint.py": ("tests/data/test_lint.py", CACHE),
    "nmt/data/planning.py": ("tests/data/test_mixing.py", ("tests/data/test_mixing.py", "tests/data/test_batching.py")),
    "nmt/data/prepare.py": ("tests/data/test_prepare.py", CACHE),
    "nmt/data/store.py": ("tests/data/test_store.py", CACHE),
}
