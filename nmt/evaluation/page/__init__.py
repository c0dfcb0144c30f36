"""The report of an evaluation as one HTML page that opens from disk: its contents, and how they are written."""
