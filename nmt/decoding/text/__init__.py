"""Text around the search: pieces, words and lines, before it and after it."""
