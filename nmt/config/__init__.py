"""Typed configuration: the schema, strict loading with one report of every mistake, overrides and the JSON schema."""

from nmt.config.allowed import json_schema
from nmt.config.loading import Loaded, dump_config, parse_config, read_config
from nmt.config.problems import Problem
from nmt.config.resuming import Continuation, continuation, differences, with_length
from nmt.config.schema import Config, ModelConfig

__all__ = [
    "Config",
    "Continuation",
    "Loaded",
    "ModelConfig",
    "Problem",
    "continuation",
    "differences",
    "dump_config",
    "json_schema",
    "parse_config",
    "read_config",
    "with_length",
]
