"""Images of Debian's packages: which are needed, whether they are what the archive signed, and the files they make."""
