"""Scores of translations and alignments, and warnings about them; it knows text and links, never a model."""
