"""In the owner's process: finds, builds and starts engines, and holds their templates and processes."""
