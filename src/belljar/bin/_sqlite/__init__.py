"""The parts of sqlite3 that need no database engine: how results look, and the dot-commands."""
