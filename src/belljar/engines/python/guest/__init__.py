"""Modules that run inside guest Python: on its own path there, never imported here."""
