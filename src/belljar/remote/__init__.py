"""Sandboxes on a server, as a client has them: the same API, and both ends of the session in between."""
