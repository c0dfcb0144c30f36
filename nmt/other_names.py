"""What people who come from another toolkit, or who are in a hurry, call our keys, our options, and their values.

The names are those of JoeyNMT, OpenNMT-py, fairseq, Marian, and Hugging Face's Trainer, and shorter ones. The tables
know no configuration: tests/config/test_other_names.py compares them with the schema and the options.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

KEYS: Final[Mapping[str, Sequence[str]]] = {
    "seed": ("random_seed",),
    "data.source_language": ("src_lang", "source_lang", "data.src"),
    "data.target_language": ("tgt_lang", "trg_lang", "target_lang", "data.trg"),
    "data.train.0.source": ("src", "train_src"),
    "data.train.0.target": ("tgt", "trg", "train_tgt"),
    "data.valid": ("dev", "dev_data", "validation_data", "valid_sets"),
    "data.max_length": ("max_sent_length", "max_source_length", "src_seq_length"),
    "subwords.type": ("tokenizer_type", "level"),
    "subwords.size": ("vocab", "vocab_size", "voc_limit", "src_vocab_size", "num_merges", "dim_vocabs"),
    "subwords.joint": ("share_vocab", "joined_dictionary"),
    "model.embedding_size": ("emb", "emb_size", "emb_dim", "embed_dim", "embedding_dim", "word_vec_size", "dim_emb"),
    "model.tie_embeddings": ("share_embeddings", "share_all_embeddings", "tied_embeddings", "tied_softmax"),
    "model.encoder.cell": ("rnn_type", "enc_rnn_type", "enc_cell"),
    "model.encoder.hidden_size": ("hidden", "hidden_dim", "rnn_size", "enc_rnn_size", "encoder_hidden_size", "dim_rnn"),
    "model.encoder.layers": ("num_layers", "n_layers", "enc_layers", "encoder_layers", "enc_depth"),
    "model.encoder.dropout": ("dropout_rate", "encoder_dropout", "dropout_rnn"),
    "model.attention.score": ("attention_type", "global_attention", "model.attention.name", "model.attention.type"),
    "model.attention.coverage": ("coverage_attn",),
    "model.decoder.cell": ("rnn_type", "dec_rnn_type", "dec_cell"),
    "model.decoder.hidden_size": ("hidden", "hidden_dim", "rnn_size", "dec_rnn_size", "decoder_hidden_size", "dim_rnn"),
    "model.decoder.layers": ("num_layers", "n_layers", "dec_layers", "decoder_layers", "dec_depth"),
    "model.decoder.dropout": ("dropout_rate", "decoder_dropout", "dropout_rnn", "hidden_dropout"),
    "model.decoder.input_feeding": ("input_feed",),
    "model.decoder.initial_state": ("init_hidden",),
    "training.optimizer.name": ("optim",),
    "training.optimizer.learning_rate": ("lr", "rate", "learn_rate"),
    "training.optimizer.epsilon": ("eps", "adam_eps", "adam_epsilon"),
    "training.schedule.name": ("scheduler", "scheduling", "lr_scheduler", "lr_scheduler_type", "decay_method"),
    "training.schedule.factor": ("decrease_factor", "learning_rate_decay", "lr_decay", "lr_shrink"),
    "training.schedule.minimum_learning_rate": ("learning_rate_min", "min_lr"),
    "training.schedule.warmup_updates": ("warmup", "warmup_steps", "learning_rate_warmup", "num_warmup_steps"),
    "training.batch_size": (
        *("batch", "batchsize", "max_sentences", "mini_batch", "per_device_train_batch_size", "train_batch_size"),
    ),
    "training.batch_by": ("batch_type",),
    "training.accumulate": ("accum_count", "batch_multiplier", "gradient_accumulation_steps", "update_freq"),
    "training.max_epochs": ("epochs", "num_epochs", "n_epochs", "num_train_epochs", "max_epoch", "after_epochs"),
    "training.max_updates": ("steps", "train_steps", "max_steps", "num_steps", "max_update", "after_batches"),
    "training.validate_every": (
        *("validation_freq", "valid_freq", "valid_steps", "eval_steps", "eval_every", "validate_interval"),
    ),
    "training.validation.metric": (
        *("eval_metric", "metric_for_best_model", "best_checkpoint_metric", "early_stopping_metric", "valid_metrics"),
    ),
    "training.early_stopping.patience": ("early_stopping_patience",),
    "training.early_stopping.metric": ("early_stopping_criteria",),
    "training.label_smoothing": ("smoothing", "label_smoothing_factor"),
    "training.gradient_clip_norm": ("clip", "clip_norm", "clip_grad", "clip_grad_norm", "grad_clip", "max_grad_norm"),
    "training.normalize_by": ("training.normalization", "sentence_avg"),
    "training.moving_average.decay": ("ema", "ema_decay", "exponential_smoothing"),
    "training.keep_best": ("keep_best_ckpts", "keep_best_checkpoints"),
    "training.keep_last": ("keep_last_ckpts", "keep_checkpoint", "keep_last_epochs", "save_total_limit"),
    "training.save_every": ("save_steps", "save_checkpoint_steps", "save_interval_updates", "save_freq"),
    "training.log_every": ("logging_freq", "logging_steps", "log_interval", "report_every", "disp_freq"),
    "training.precision": ("fp16", "bf16", "amp", "model_dtype"),
    "decoding.beam_size": ("beam", "beams", "num_beams", "b"),
    "decoding.length_penalty": ("beam_alpha", "lenpen", "decoding.alpha", "normalize"),
    "decoding.max_length_extra": ("max_len_b", "max_decoding_length", "max_new_tokens", "max_output_length"),
    "decoding.minimum_length": ("min_length", "min_len", "min_output_length"),
    "decoding.no_repeat_ngram_size": ("block_ngram_repeat", "no_repeat_ngram"),
}

VALUES: Final[Mapping[str, Sequence[str]]] = {
    "additive": ("bahdanau", "mlp"),
    "general": ("bilinear", "luong", "multiplicative"),
    "concatenate": ("concat",),
    "bfloat16": ("bf16", "fp16", "float16", "half", "mixed"),
    "float32": ("fp32",),
    "chrf++": ("chrf2++", "chrfpp"),
    "sentences": ("sents", "sentence"),
}

# Of nmt-train
OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "--device": ("cuda", "gpu", "gpus", "use_cuda", "use_gpu", "gpu_ranks"),
    "--dry-run": (),
    "--init-from": ("load_model", "finetune_from_model", "pretrained_model"),
    "--output": ("model_dir", "output_dir", "save_dir", "save_model", "run_folder"),
    "--overwrite": ("overwrite_output_dir",),
    "--rank-timeout": (),
    "--resume": ("resume_from", "resume_from_checkpoint", "restore_file"),
}

# Of the commands that use models, besides the names of keys that are options there: the first that a command has is it
OTHER_OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "--metrics": ("m", "metric"),
    "--model": ("m", "models", "path", "checkpoint", "ckpt", "load_path", "model_path"),
    "--input": ("i", "src", "source", "text"),
    "--source": ("s", "src", "input"),
    "--reference": ("r", "ref", "refs", "references", "tgt", "trg", "target", "gold"),
    "--hypotheses": ("hyp", "hyps", "hypothesis", "sys", "pred", "predictions", "translations"),
    "--target": ("t", "tgt", "trg", "translation", "hypotheses", "reference"),
    "--output": ("o", "out", "save", "output_path"),
    "--batch-sentences": ("batch_size", "bsz", "max_batch_size", "max_sentences", "mini_batch"),
    "--device": OPTIONS["--device"],
    "--length-penalty": ("alpha",),
    "--lowercase": ("lc", "ignore_case"),
    "--n-best": ("nbest", "num_hypotheses", "num_return_sequences"),
    "--normalize": ("normalise",),
    "--precision": ("compute_type", "dtype", "int8", "quantize", "quantization"),
    "--replace-unknown": ("replace_unk", "replace_unknowns"),
    "--sample": ("do_sample", "sampling", "random_sampling"),
    "--suppress-unknown": ("ban_unk_token", "disable_unk"),
    "--top-k": ("random_sampling_topk", "sampling_topk"),
    "--top-p": ("nucleus", "random_sampling_topp", "sampling_topp"),
    "--weights": ("w",),
}


def our_keys(name: str, *, section: str = "") -> list[str]:
    """The keys that are called `name` elsewhere, or whose own last name it is, such as training.max_epochs.

    In a `section` where the name means one key, that one.
    """
    plain = _plain(name)
    here = [key for key, names in KEYS.items() if f"{section}.{plain}" in names]
    if plain == "name":  # of the run, not of an optimizer or a schedule
        return here or [plain]
    return here or [key for key, names in KEYS.items() if plain in (*names, key.rpartition(".")[2])]


def ours(name: str, table: Mapping[str, Sequence[str]], among: Collection[str]) -> str | None:
    """The one of `among`, such as options or values, that has this name or is called so elsewhere, by a `table` of this
    module; None if there is none."""
    plain = _plain(name)
    return next((one for one, names in table.items() if one in among and plain in (*names, _plain(one))), None)


def _plain(name: str) -> str:
    return name.strip().lower().lstrip("-").replace("-", "_")
