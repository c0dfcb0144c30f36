"""From a trained model to text: beam, segments, grouping, inference, translator, unknown words, and alignment."""
