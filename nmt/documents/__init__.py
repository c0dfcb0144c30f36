"""Documents: what stands around their texts is kept, and the texts are translated. It knows no models and no files."""
