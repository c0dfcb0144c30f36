"""From a trained model to text: the translator, its options, what scores and searches, and the text around it."""
