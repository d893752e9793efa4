"""The outer wall: how a process that will run guest code seals itself. Used by workers and by engine processes."""
