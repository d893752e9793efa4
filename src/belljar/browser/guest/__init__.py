"""The modules that guest Python has in a page beside those of `engines/python/guest`."""
