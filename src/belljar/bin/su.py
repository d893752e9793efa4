"""su - run a shell or a command as another user of the sandbox

Usage: su [OPTION]... [-] [USER [ARG]...]

Change to USER (root if none is named) and run a shell. No password is asked for: root of a sandbox may do anything to
its files, and nothing outside of it.
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, utility, value
from belljar.bin.env import become
from belljar.bin.sudo import switch_user
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    command: str | None = value("-c", "--command", "pass a single command to the shell", metavar="COMMAND")
    login: bool = flag("-l", "--login", "make the shell a login shell, in the user's home")
    keep: bool = flag("-m", "-p", "--preserve-environment", "do not reset environment variables")
    shell: str = value("-s", "--shell", "run this SHELL", metavar="SHELL", default="/bin/bash")
    fast: bool = flag("-f", "--fast", "(accepted, ignored)")


@utility("su", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    login = options.login
    if operands[:1] == ["-"]:
        login, operands = True, operands[1:]
    user, *arguments = operands or ["root"]
    changed = switch_user(process, user)
    environment = changed if login else {**process.env, **({} if options.keep else changed)}
    if login:
        process.fs.chdir(environment["HOME"])
    command = ["-c", options.command] if options.command is not None else []
    return become(process, [options.shell, *command, *arguments], environment, lambda name, _: name)
