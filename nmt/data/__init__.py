"""From parallel text files to batches: corpus, subwords, binarised, batching, and preparation, which connects them."""
