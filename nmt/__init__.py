"""Neural machine translation with recurrent encoder-decoders and attention."""

__version__ = "0.1.0"
