"""Typed configuration: the schema, strict loading with one report of every mistake, overrides and the JSON schema."""
