"""The network a sandbox may use: decisions without I/O, guest files, and the host's broker (`*_host.py`)."""
