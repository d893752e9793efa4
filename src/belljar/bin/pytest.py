"""pytest - run Python tests

Usage: pytest [OPTION]... [FILE_OR_DIR]...

The pytest that comes with python3. One that is installed by pip is used instead of it.
"""

from belljar.bin._kit import utility
from belljar.kernel.process import Process

_RUN = "import sys; sys.argv[0] = 'pytest'; import pytest; sys.exit(pytest.main())"


@utility("pytest")
def main(process: Process, args: list[str]) -> int:
    return process.run(["/usr/bin/python3", "-P", "-c", _RUN, *args]).shell
