"""Words that a sandbox's worker and its owner share about native programs in a virtual sandbox."""

from typing import Final

SYSTEM: Final = frozenset("bin boot dev etc lib lib32 lib64 libx32 net opt proc run sbin sys usr var".split())
"""Directories of the root that native programs see as the image has them; of all others they see the sandbox's own."""
KIND: Final = "native"
"""The kind of engine process that the companion of a sandbox is."""
EVERY: Final = "*"
"""Grants every program of the image, and those that are built inside."""
