"""The files every sandbox starts with: directories, accounts, and a file for each program."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from belljar.abi.base import AGENT_NAME, HOME, WORKSPACE
from belljar.abi.errno import EEXIST
from belljar.abi.errors import SysError
from belljar.abi.flags import S_IFREG
from belljar.abi.records import Owner, SetAttr
from belljar.engines.wire.tools import TOOLS
from belljar.kernel.fs.memory import Directory, MemoryServer
from belljar.kernel.fs.quota import Quota
from belljar.kernel.loader import program_file
from belljar.kernel.process import Process
from belljar.kernel.vfs.credentials import Credentials
from belljar.kernel.vfs.view import View

TOOL_FILES: Final = "/usr/bin"
ROOT: Final = Owner(0, 0)
AGENT: Final = Owner(1000, 1000)
AGENT_CREDENTIALS: Final = Credentials(1000, 1000)

_DIRECTORIES: Final[tuple[tuple[str, int, Owner], ...]] = (
    ("/dev", 0o755, ROOT),
    ("/etc", 0o755, ROOT),
    ("/etc/init", 0o755, ROOT),
    ("/home", 0o755, ROOT),
    (HOME, 0o755, AGENT),
    ("/mnt", 0o755, ROOT),
    ("/mnt/srv", 0o755, ROOT),
    ("/mnt/web", 0o555, ROOT),
    ("/net", 0o555, ROOT),
    ("/opt", 0o755, ROOT),
    ("/proc", 0o555, ROOT),
    ("/root", 0o700, ROOT),
    ("/run", 0o755, ROOT),
    ("/srv", 0o755, ROOT),
    ("/tmp", 0o1777, ROOT),
    ("/usr", 0o755, ROOT),
    ("/usr/bin", 0o755, ROOT),
    ("/usr/lib", 0o755, ROOT),
    ("/usr/local", 0o755, AGENT),
    ("/usr/local/bin", 0o755, AGENT),
    ("/usr/local/lib", 0o755, AGENT),
    ("/usr/sbin", 0o755, ROOT),
    ("/usr/share", 0o755, ROOT),
    ("/var", 0o755, ROOT),
    ("/var/cache", 0o755, ROOT),
    ("/var/lib", 0o755, ROOT),
    ("/var/log", 0o755, ROOT),
    ("/var/tmp", 0o1777, ROOT),
    (WORKSPACE, 0o755, AGENT),
)

_LINKS: Final = (("/bin", "usr/bin"), ("/sbin", "usr/sbin"), ("/lib", "usr/lib"))

_FILES: Final = {
    "/etc/passwd": (
        "root:x:0:0:root:/root:/bin/bash\n"
        "agent:x:1000:1000:agent:/home/agent:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    ),
    "/etc/group": "root:x:0:\ntty:x:5:\nagent:x:1000:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1\tlocalhost\n::1\tlocalhost\n",
    "/etc/os-release": 'NAME="belljar"\nID=belljar\nID_LIKE=debian\nPRETTY_NAME="belljar virtual kernel"\n',
    "/etc/shells": "/bin/sh\n/bin/bash\n",
    "/etc/profile": "",
    "/etc/gitconfig": "[user]\n\tname = agent\n\temail = agent@localhost\n",
}


def populate(server: MemoryServer, hostname: str, programs: Iterable[str]) -> None:
    """Fill an empty root. Anyone may make directories in it, as in a container; what is there stays its owner's."""
    server.setattr(server.root, SetAttr(mode=0o1777))
    for path, mode, owner in _DIRECTORIES:
        parent, name = _slot(server, path)
        server.mkdir(parent, name, mode, owner)
    for path, target in _LINKS:
        parent, name = _slot(server, path)
        server.symlink(parent, name, target, ROOT)
    for path, text in {**_FILES, "/etc/hostname": hostname + "\n"}.items():
        _write(server, path, text.encode(), 0o644)
    for name in programs:
        _write(server, f"/usr/bin/{name}", program_file(name), 0o755)


def tool_files(now: Callable[[], int], kinds: Iterable[str]) -> MemoryServer | None:
    """A directory with a file for each program of these tools; None if there are none."""
    files = {name: program_file(f"{kind}:{name}") for kind in kinds for name in TOOLS[kind].names}
    if not files:
        return None
    server = MemoryServer(now, Quota(sum(map(len, files.values())), len(files)))
    for name, data in files.items():
        _write(server, f"/{name}", data, 0o755)
    return server


def rename_agent(init: Process, name: str, old: str = AGENT_NAME) -> None:
    """Give the account that commands run as another name, none of TAKEN_NAMES."""
    with suppress(SysError):  # a restored sandbox may have removed what it began with
        init.fs.rename(f"/home/{old}", f"/home/{name}")
    for path in ("/etc/passwd", "/etc/group", "/etc/gitconfig"):
        with suppress(SysError):
            init.write_file(path, init.read_file(path).replace(old.encode(), name.encode()))


def make_directories(fs: View, path: str) -> None:
    """Make a directory and those above it, as far as they are missing."""
    parts = [part for part in path.split("/") if part]
    for end in range(1, len(parts) + 1):
        try:
            fs.mkdir("/" + "/".join(parts[:end]), 0o755)
        except SysError as error:
            if error.errno != EEXIST:
                raise


def _slot(server: MemoryServer, path: str) -> tuple[Directory, str]:
    *above, name = path.strip("/").split("/")
    directory = server.root
    for part in above:
        child = server.walk(directory, part)
        assert isinstance(child, Directory)
        directory = child
    return directory, name


def _write(server: MemoryServer, path: str, data: bytes, mode: int) -> None:
    parent, name = _slot(server, path)
    node = server.create(parent, name, S_IFREG | mode, ROOT)
    handle = server.open(node, 0)
    handle.write(0, data)
    handle.close()
