"""The top-level module `zstandard` of a page, as far as belljar uses it, on the standard library of Python 3.14."""

from __future__ import annotations

from typing import IO, Any, Final

from compression import zstd  # type: ignore[import-not-found] # Pyodide's; mypy looks at an older Python

ZstdError: Final = zstd.ZstdError


def frame_content_size(data: bytes) -> int:
    """How much a frame unpacks to; -1 if it does not say."""
    size: int | None = zstd.get_frame_info(data).decompressed_size
    return -1 if size is None else size


class ZstdCompressor:
    def __init__(self, level: int = 3, *, write_checksum: bool = False) -> None:
        parameter = zstd.CompressionParameter
        self._options = {parameter.compression_level: level, parameter.checksum_flag: int(write_checksum)}

    def compress(self, data: bytes) -> bytes:
        packed: bytes = zstd.compress(data, options=self._options)
        return packed

    def compressobj(self) -> Any:
        return zstd.ZstdCompressor(options=self._options)


class ZstdDecompressor:
    def __init__(self, max_window_size: int = 0) -> None:
        limit = {zstd.DecompressionParameter.window_log_max: max_window_size.bit_length() - 1}
        self._options = limit if max_window_size else None

    def decompress(self, data: bytes) -> bytes:
        unpacked: bytes = zstd.decompress(data, options=self._options)
        return unpacked

    def decompressobj(self) -> Any:
        return zstd.ZstdDecompressor(options=self._options)

    def stream_reader(self, source: IO[bytes], *, read_across_frames: bool, closefd: bool) -> IO[bytes]:
        """Read from a file, which stays open; over all of its frames, as every user here wants it."""
        assert read_across_frames
        assert not closefd
        reader: IO[bytes] = zstd.ZstdFile(source, "rb")
        return reader
