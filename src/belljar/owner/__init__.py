"""In the owner's process: handles of zygotes and workers."""
