"""Durable state: objects by digest, trees of files made of them, and names (refs) for what must stay."""
