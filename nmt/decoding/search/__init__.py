"""Search over token ids: one loop and the policies that choose; it knows neither a model nor text."""
