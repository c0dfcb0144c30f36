"""Scores of translations and what can be said about them; knows text, never a model."""
