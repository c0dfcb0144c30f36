"""Typed configuration: the schema, strict loading with one report of every mistake, overrides and the JSON schema."""

from nmt.config.allowed import json_schema
from nmt.config.key_checks import checked_value
from nmt.config.loading import (
    Check,
    Loaded,
    differences,
    dump_config,
    load_config,
    moved_files,
    parse_config,
    read_config,
)
from nmt.config.problems import Problem
from nmt.config.schema import Config, ModelConfig

__all__ = [
    "Check",
    "Config",
    "Loaded",
    "ModelConfig",
    "Problem",
    "checked_value",
    "differences",
    "dump_config",
    "json_schema",
    "load_config",
    "moved_files",
    "parse_config",
    "read_config",
]
