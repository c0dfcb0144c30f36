"""Neural networks over tensors of token ids; nothing here knows text, files of text, training or search."""
