"""Packages: commands, libraries, files and services for sandboxes; catalogs of them, and which versions go together."""

CPU_GUARD = "caller"
