"""A page that translates by itself: a model as static files for a browser."""
