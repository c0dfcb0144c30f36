"""The four special symbols, the same in every vocabulary of the toolkit.

Subword models are trained with these ids, so a token id means the same thing in files, batches, models and search.
"""

PAD = 0  # fills the end of a short sentence in a batch; never an input that counts, never an output
UNKNOWN = 1  # a character or word that the subword model does not know
BEGIN = 2  # the decoder's first input, written <s>
END = 3  # ends every source and every target, written </s>

PIECES = ("<pad>", "<unk>", "<s>", "</s>")  # PIECES[id] is the symbol's text
