"""Optimization, validation at intervals, checkpoints, and resuming bit for bit. Never imports decoding."""
