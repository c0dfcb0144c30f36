"""Optimisation, validation in turn, checkpoints, and resuming as if nothing had happened. Never imports decoding."""
