"""Compression for gzip, bzip2, xz, zstd and the archivers: streaming codecs, and what their tools share."""
