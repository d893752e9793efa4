"""The owner's side of the network: one thread that decides, dials, resolves and fetches for all its sandboxes."""
