"""Adapters to agent frameworks, one file each over the public API; a framework is imported only in its own file."""
