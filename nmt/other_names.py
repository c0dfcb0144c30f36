"""What people who come from another toolkit, or who are in a hurry, call the keys and the options of nmt-train.

The names are those of JoeyNMT, OpenNMT-py, fairseq, and Hugging Face's Trainer, and shorter ones. The table knows no
configuration: tests/config/test_other_names.py compares it with the schema and the options.
"""

from collections.abc import Mapping, Sequence
from typing import Final

KEYS: Final[Mapping[str, Sequence[str]]] = {
    "seed": ("random_seed",),
    "data.source_language": ("src_lang", "source_lang"),
    "data.target_language": ("tgt_lang", "trg_lang", "target_lang"),
    "data.max_length": ("max_sent_length", "max_source_length", "src_seq_length"),
    "subwords.type": ("tokenizer_type", "level"),
    "subwords.size": ("vocab", "vocab_size", "voc_limit", "src_vocab_size", "num_merges"),
    "subwords.joint": ("share_vocab", "joined_dictionary"),
    "model.embedding_size": ("emb", "emb_size", "emb_dim", "embed_dim", "embedding_dim", "word_vec_size"),
    "model.tie_embeddings": ("share_embeddings", "share_all_embeddings", "tied_embeddings", "tied_softmax"),
    "model.encoder.cell": ("rnn_type", "enc_rnn_type"),
    "model.encoder.hidden_size": ("hidden", "hidden_dim", "rnn_size", "enc_rnn_size", "encoder_hidden_size"),
    "model.encoder.layers": ("num_layers", "n_layers", "enc_layers", "encoder_layers"),
    "model.encoder.dropout": ("dropout_rate", "encoder_dropout"),
    "model.attention.score": ("attention_type", "global_attention"),
    "model.attention.coverage": ("coverage_attn",),
    "model.decoder.cell": ("rnn_type", "dec_rnn_type"),
    "model.decoder.hidden_size": ("hidden", "hidden_dim", "rnn_size", "dec_rnn_size", "decoder_hidden_size"),
    "model.decoder.layers": ("num_layers", "n_layers", "dec_layers", "decoder_layers"),
    "model.decoder.dropout": ("dropout_rate", "decoder_dropout"),
    "model.decoder.input_feeding": ("input_feed",),
    "model.decoder.initial_state": ("init_hidden",),
    "training.optimizer.name": ("optim",),
    "training.optimizer.learning_rate": ("lr", "rate"),
    "training.optimizer.epsilon": ("eps", "adam_eps", "adam_epsilon"),
    "training.schedule.name": ("scheduler", "scheduling", "lr_scheduler", "lr_scheduler_type", "decay_method"),
    "training.schedule.factor": ("decrease_factor", "learning_rate_decay", "lr_decay", "lr_shrink"),
    "training.schedule.minimum_learning_rate": ("learning_rate_min", "min_lr"),
    "training.schedule.warmup_updates": ("warmup", "warmup_steps", "learning_rate_warmup", "num_warmup_steps"),
    "training.batch_size": ("batch", "batchsize", "max_sentences", "per_device_train_batch_size", "train_batch_size"),
    "training.batch_by": ("batch_type",),
    "training.accumulate": ("accum_count", "batch_multiplier", "gradient_accumulation_steps", "update_freq"),
    "training.max_epochs": ("epochs", "num_epochs", "n_epochs", "num_train_epochs", "max_epoch"),
    "training.max_updates": ("steps", "train_steps", "max_steps", "num_steps", "max_update"),
    "training.validate_every": ("validation_freq", "valid_steps", "eval_steps", "eval_every", "validate_interval"),
    "training.validation.metric": (
        *("eval_metric", "metric_for_best_model", "best_checkpoint_metric", "early_stopping_metric"),
    ),
    "training.early_stopping.patience": ("early_stopping_patience",),
    "training.early_stopping.metric": ("early_stopping_criteria",),
    "training.label_smoothing": ("smoothing", "label_smoothing_factor"),
    "training.gradient_clip_norm": ("clip", "clip_norm", "clip_grad", "clip_grad_norm", "grad_clip", "max_grad_norm"),
    "training.normalise_by": ("normalization", "sentence_avg"),
    "training.moving_average.decay": ("ema", "ema_decay"),
    "training.keep_best": ("keep_best_ckpts", "keep_best_checkpoints"),
    "training.keep_last": ("keep_last_ckpts", "keep_checkpoint", "keep_last_epochs", "save_total_limit"),
    "training.save_every": ("save_steps", "save_checkpoint_steps", "save_interval_updates", "save_freq"),
    "training.log_every": ("logging_freq", "logging_steps", "log_interval", "report_every"),
    "training.precision": ("fp16", "bf16", "amp", "model_dtype"),
    "decoding.beam_size": ("beam", "beams", "num_beams"),
    "decoding.length_penalty": ("beam_alpha", "lenpen"),
    "decoding.max_length_extra": ("max_output_length", "max_len_b", "max_new_tokens", "max_decoding_length"),
    "decoding.minimum_length": ("min_length", "min_len", "min_output_length"),
    "decoding.no_repeat_ngram_size": ("block_ngram_repeat", "no_repeat_ngram"),
}

OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "--device": ("cuda", "gpu", "gpus", "use_cuda", "use_gpu", "gpu_ranks"),
    "--dry-run": (),
    "--init-from": ("load_model", "finetune_from_model", "pretrained_model"),
    "--output": ("model_dir", "output_dir", "save_dir", "save_model", "run_folder"),
    "--overwrite": ("overwrite_output_dir",),
    "--rank-timeout": (),
    "--resume": ("resume_from", "resume_from_checkpoint", "restore_file"),
}


def our_keys(name: str) -> list[str]:
    """The keys that are called `name` elsewhere, or whose own last name it is, such as training.max_epochs."""
    plain = _plain(name)
    if plain == "name":  # of the run, not of an optimizer or a schedule
        return [plain]
    return [key for key, names in KEYS.items() if plain in (*names, key.rpartition(".")[2])]


def our_option(name: str) -> str | None:
    """The option of nmt-train that has this name, or is called so elsewhere; None if there is none."""
    plain = _plain(name)
    return next((option for option, names in OPTIONS.items() if plain in (*names, _plain(option))), None)


def _plain(name: str) -> str:
    return name.strip().lower().lstrip("-").replace("-", "_")
