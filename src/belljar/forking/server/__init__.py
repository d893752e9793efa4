"""The inside of fork servers, and of processes that are copied."""
