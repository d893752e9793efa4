"""The console: a web page at `/` for whoever has a key, and the calls that it makes. Its source is in `web/`."""
