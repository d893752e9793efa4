"""From a path to a node: resolution, mounts, per-process namespaces, and the calls that take paths."""
