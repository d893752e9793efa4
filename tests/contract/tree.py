"""The tree every server of the battery is asked to hold."""

from tests.contract.servers import Case, Dir, File, Hard, Link, Tree

BIG = bytes(range(256)) * 3000

TREE: Tree = {
    "empty": File(),
    "hello": File(b"hello world\n"),
    "big": File(BIG, 0o600),
    "run": File(b"#!/bin/sh\n", 0o755),
    "dir": Dir(),
    "dir/inner": File(b"inner\n"),
    "dir/sub": Dir(0o700),
    "dir/sub/deep": File(b"deep\n", 0o400),
    "hollow": Dir(),
    "to-hello": Link("hello"),
    "to-dir": Link("dir"),
    "to-abs": Link("/dir/inner"),
    "dangling": Link("nowhere"),
    "loop": Link("loop"),
    "up": Link("../../../hello"),
    "twin-a": File(b"twin\n"),
    "dir/twin-b": Hard("twin-a"),
    "na\nme \u00e9 .wh.x": File(b"odd\n"),
    ".wh.hello": File(b"not a whiteout\n"),
}


def tree_for(case: Case) -> Tree:
    """The battery's tree without what the server can't hold."""
    lacking = {Link: "symlinks", Hard: "hard links"}
    return {
        path: entry
        for path, entry in TREE.items()
        if case.has(lacking.get(type(entry), "")) and (path != "twin-a" or case.has("hard links"))
    }
