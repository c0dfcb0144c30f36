"""Pieces, words and lines, before the search and after it; it knows neither a model nor how the search is made."""
