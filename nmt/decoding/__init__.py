"""From a trained model to text: beam, segments, inference, translator, and alignment."""
