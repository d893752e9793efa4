"""The worker's side of the network: the file servers /net and /mnt/web, and their streams to the broker."""
