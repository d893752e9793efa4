"""What runs inside guest Python: put on its own path there, never imported here."""
