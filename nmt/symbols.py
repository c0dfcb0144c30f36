"""The four special symbols, with the same ids in every vocabulary: in files, batches, models and search."""

PAD = 0  # fills up short sentences in a batch; never counts as input, never an output
UNKNOWN = 1  # a character or word that the subword model does not know
BEGIN = 2  # the decoder's first input, written <s>
END = 3  # ends every source and target, written </s>

PIECES = ("<pad>", "<unk>", "<s>", "</s>")  # PIECES[id] is the symbol's text
