"""Translation over HTTP: many requests share batches, LibreTranslate's clients know the API, and there is a page."""
