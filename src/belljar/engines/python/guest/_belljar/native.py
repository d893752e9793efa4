"""The C library's own functions, as they were before ours took their places in `os` and `posix`."""

import posix
import types

native = types.SimpleNamespace(**vars(posix))
