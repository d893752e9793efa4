"""Names that every sandbox starts with: its account, home and working directory, PATH and environment."""

from typing import Final

AGENT_NAME: Final = "agent"
TAKEN_NAMES: Final = frozenset({"nobody", "nogroup", "tty"})
"""Accounts that no sandbox's commands run as."""
HOME: Final = f"/home/{AGENT_NAME}"
WORKSPACE: Final = "/workspace"
HOSTNAME: Final = "belljar"
DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The directories searched for commands."""
PYTHON_VERSION: Final = "3.15"
PYTHON_SITE: Final = f"/usr/local/lib/python{PYTHON_VERSION}/site-packages"
"""The packages of the guest's Python."""


def environment(hostname: str = HOSTNAME) -> dict[str, str]:
    """Default environment of commands."""
    return {
        "PATH": DEFAULT_PATH,
        "HOME": HOME,
        "USER": AGENT_NAME,
        "LOGNAME": AGENT_NAME,
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "HOSTNAME": hostname,
    }
