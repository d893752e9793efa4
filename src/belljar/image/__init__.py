"""Images: trees of files with settings, read from and written to OCI's formats, and what recipes are made of."""
