"""Virtual file system: path resolution, mounts, per-process namespaces, and the calls that take paths."""
