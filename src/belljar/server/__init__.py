"""`belljar serve`: sandboxes over HTTP, for many tenants, by the E2B protocol."""
