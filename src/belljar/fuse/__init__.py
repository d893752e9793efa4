"""File servers as FUSE mounts: any `FileServer` becomes a directory for real programs."""
