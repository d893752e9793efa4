"""The public face: sandboxes, their files and processes, in a synchronous and an asynchronous front over one core."""
