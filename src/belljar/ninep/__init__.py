"""Trees for clients of 9P2000.L: the server's side of the protocol over any file server."""
