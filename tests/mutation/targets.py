"""Which files are mutated, and which tests have to notice."""

MODELS = ("kernels", "against_numpy", "decoders", "attention", "encoder", "seq2seq")
OPS = ("tests/ops", *(f"tests/models/test_{name}.py" for name in MODELS))
SEARCH = ("tests/decoding",)
TRAIN = ("train", "train_failures", "train_mistakes")
FILES = ("tests/test_tensor_file.py", "tests/test_files.py")
RUNS = ("tests/training", *FILES, *(f"tests/cli/test_{name}.py" for name in TRAIN))
CACHE = ("tests/data",)

TARGETS: dict[str, tuple[str, ...]] = {
    "nmt/ops/activations.py": OPS,
    "nmt/ops/computing.py": OPS,
    "nmt/ops/dropout.py": OPS,
    "nmt/ops/keeps_packed.py": OPS,
    "nmt/ops/linear.py": OPS,
    "nmt/ops/loss.py": OPS,
    "nmt/ops/masks.py": OPS,
    "nmt/ops/memory.py": OPS,
    "nmt/ops/packed_weights.py": OPS,
    "nmt/ops/products.py": OPS,
    "nmt/ops/recurrence.py": OPS,
    "nmt/ops/sequence.py": OPS,
    "nmt/ops/steps.py": OPS,
    "nmt/ops/translation_table.py": OPS,
    "nmt/decoding/search.py": SEARCH,
    "nmt/decoding/beam.py": SEARCH,
    "nmt/decoding/one_sentence.py": SEARCH,
    "nmt/decoding/hypotheses.py": SEARCH,
    "nmt/decoding/choices.py": SEARCH,
    "nmt/decoding/rules.py": SEARCH,
    "nmt/training/checkpoint.py": RUNS,
    "nmt/training/run_folder.py": RUNS,
    "nmt/training/states.py": RUNS,
    "nmt/tensor_file.py": RUNS,
    "nmt/files.py": RUNS,
    "nmt/data/binarised.py": CACHE,
    "nmt/data/binarising.py": CACHE,
    "nmt/data/preparation.py": CACHE,
    "nmt/data/sealed.py": CACHE,
}
