"""The system's name and version as a guest sees them, for uname(2), /proc/version and /etc."""

from typing import Final

OSTYPE: Final = "Linux"
OSRELEASE: Final = "6.1.0-belljar"
"""Programs compare the leading numbers; nothing here is the host's."""
VERSION: Final = "#1 SMP PREEMPT_DYNAMIC belljar 1.0"
MACHINE: Final = "x86_64"
DOMAINNAME: Final = "(none)"
