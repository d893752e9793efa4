"""The utilities, one module (or package) each, found by file name: `bin/wc.py` is `wc`."""
