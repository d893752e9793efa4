"""Frames between the owner, the worker and engine processes."""
