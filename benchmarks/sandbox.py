"""What a sandbox costs beside the real bash, in the same run. The same as `belljar bench`."""

import sys

from belljar.cli.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["bench", *sys.argv[1:]]))
