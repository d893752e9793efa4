import argparse, sys


def main(argv):
    parser = argparse.ArgumentParser(prog="tool", description="Counts things.")
    parser.add_argument("files", nargs="*")
    parser.add_argument("-n", "--number", type=int, default=3, choices=range(1, 6))
    parser.add_argument("-v", "--verbose", action="count", default=0)
    sub = parser.add_mutually_exclusive_group()
    sub.add_argument("--json", action="store_true")
    sub.add_argument("--csv", action="store_true")
    return vars(parser.parse_args(argv))


print(main(["a", "b", "-vv", "-n", "4"]))
print(main(["--json"]))
for bad in (["-n", "x"], ["--json", "--csv"], ["--unknown"]):
    try:
        sys.stderr = sys.stdout
        main(bad)
    except SystemExit as end:
        print("status", end.code)
