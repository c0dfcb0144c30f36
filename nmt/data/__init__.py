"""From parallel text files to batches: corpus, subwords, binarized, batching, and preparation, which connects them."""
