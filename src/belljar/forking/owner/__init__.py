"""The owner's side of fork servers."""
