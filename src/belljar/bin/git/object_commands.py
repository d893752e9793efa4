"""git's plumbing: objects, trees, the index and refs one by one, for scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dulwich.index import IndexEntry
from dulwich.objects import Blob, ObjectID, Tree

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import flag, many, value
from belljar.bin._kit.options import parse
from belljar.bin.git.diff_output import DiffOptions, show_pairs, wants_form
from belljar.bin.git.diffs import quote_path
from belljar.bin.git.errors import GitError
from belljar.bin.git.history import text_of
from belljar.bin.git.history_commands import LogOptions, commit_pairs, show_diff
from belljar.bin.git.merging import merge_base, merge_trees
from belljar.bin.git.refs import ZERO, check_name
from belljar.bin.git.repo import Repository, mode_of
from belljar.bin.git.store import DIRECTORY, SUBMODULE
from belljar.bin.git.work import Ignores, changed_files, find_untracked, hash_blob, match_paths, relative, stat_of


def _lines(repo: Repository) -> list[str]:
    return text_of(repo.process.read_file("-")).split("\n")


# Objects.


def cat_file(repo: Repository, args: list[str]) -> int:
    verb = args[0] if args else ""
    if verb.startswith("--batch"):
        return _batch(repo, verb)
    if len(args) != 2:
        raise GitError("usage: git cat-file (-e | -p | -t | -s | <type>) <object>", 129, "")
    name = args[1]
    try:
        sha = repo.resolve(name)
        item = repo.store.get(sha)
    except KeyError:
        raise GitError(f"Not a valid object name {name}") from None
    match verb:
        case "-t":
            repo.process.print(item.type_name.decode())
        case "-s":
            repo.process.print(str(len(item.as_raw_string())))
        case "-e":
            return 0
        case "-p":
            if isinstance(item, Tree):
                for row in _rows(item):
                    repo.process.print(row.text())
            else:
                repo.process.stdout.write(item.as_raw_string())
        case "blob" | "tree" | "commit" | "tag":
            wanted = item
            if verb == "commit":
                wanted = repo.store.commit(sha)
            elif verb == "tree" and not isinstance(item, Tree):
                wanted = repo.store.get(bytes(repo.store.commit(sha).tree))
            if wanted.type_name.decode() != verb:
                raise GitError(f"git cat-file {name}: bad file")
            repo.process.stdout.write(wanted.as_raw_string())
        case _:
            raise GitError(f'invalid object type "{verb}"')
    return 0


def _batch(repo: Repository, verb: str) -> int:
    form = verb.partition("=")[2] or "%(objectname) %(objecttype) %(objectsize)"
    contents = not verb.startswith("--batch-check")
    for line in _lines(repo):
        if not line:
            continue
        name, _, rest = line.partition(" ") if "%(rest)" in form else (line, "", "")
        try:
            sha = repo.resolve(name)
            item = repo.store.get(sha)
        except KeyError:
            repo.process.print(f"{name} missing")
            continue
        data = item.as_raw_string()
        text = form.replace("%(objectname)", sha.decode()).replace("%(objecttype)", item.type_name.decode())
        repo.process.print(text.replace("%(objectsize)", str(len(data))).replace("%(rest)", rest))
        if contents:
            repo.process.stdout.write(data + b"\n")
    return 0


def hash_object(repo: Repository, args: list[str]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        write: bool = flag("-w", "write the object")
        kind: str = value("-t", "the object's type", metavar="TYPE", default="blob")
        stdin: bool = flag("--stdin", "read the object from standard input")
        paths: bool = flag("--stdin-paths", "read names of files from standard input")
        no_filters: bool = flag("--no-filters", "--literally", "(there are none)")

    parsed = parse(Options, args)
    options = Options(**parsed.values)
    if options.kind != "blob":
        raise GitError(f"objects of type '{options.kind}' are not made here: git mktree, commit-tree or tag do")
    names = [*(["-"] if options.stdin else []), *parsed.operands]
    if options.paths:
        names += [line for line in _lines(repo) if line]
    for name in names:
        try:
            blob = Blob.from_string(repo.process.read_file(name))
        except SysError as error:
            raise GitError(f"could not open '{name}' for reading: {error.reason}") from None
        if options.write:
            repo.store.add(blob)
        repo.process.print(bytes(blob.id).decode())
    return 0


@dataclass(frozen=True, slots=True)
class Row:
    """An entry of a tree."""

    mode: int
    sha: bytes
    path: str

    @property
    def kind(self) -> str:
        return {DIRECTORY: "tree", SUBMODULE: "commit"}.get(self.mode, "blob")

    def text(self, size: str = "") -> str:
        return f"{self.mode:06o} {self.kind} {self.sha.decode()}{size}\t{quote_path(self.path)}"


def _rows(tree: Tree, prefix: str = "") -> list[Row]:
    return [Row(e.mode or 0, bytes(e.sha or b""), prefix + text_of(e.path or b"")) for e in tree.iteritems()]


def ls_tree(repo: Repository, args: list[str]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        recursive: bool = flag("-r", "go into trees")
        trees: bool = flag("-t", "show trees while going into them")
        only_trees: bool = flag("-d", "show only trees")
        long: bool = flag("-l", "--long", "show sizes")
        names: bool = flag("--name-only", "--name-status", "show only names")
        objects: bool = flag("--object-only", "show only objects")
        null: bool = flag("-z", "terminate with NUL")
        full: bool = flag("--full-name", "--full-tree", "(names are full)")

    parsed = parse(Options, args)
    options = Options(**parsed.values)
    if not parsed.operands:
        raise GitError("usage: git ls-tree [<options>] <tree-ish> [<path>...]", 129, "")
    try:
        sha = repo.resolve(parsed.operands[0])
    except KeyError:
        raise GitError(f"Not a valid object name {parsed.operands[0]}") from None
    top = repo.store.get(sha)
    if not isinstance(top, Tree):
        top = repo.store.get(bytes(repo.store.commit(sha).tree))
    assert isinstance(top, Tree)
    wanted = parsed.operands[1:]

    def visit(tree: Tree, prefix: str) -> Iterator[Row]:
        for row in _rows(tree, prefix):
            repo.process.budget.charge()
            inside = not wanted or any(
                row.path == w.rstrip("/") or row.path.startswith(w.rstrip("/") + "/") for w in wanted
            )
            above = any(w.startswith(row.path + "/") for w in wanted)
            folder = row.mode == DIRECTORY
            enter = folder and ((options.recursive and (inside or above) and not options.only_trees) or above)
            if (not folder and inside and not options.only_trees) or (
                folder and inside and not (above and not options.trees) and (not enter or options.trees)
            ):
                yield row
            if enter:
                below = repo.store.get(row.sha)
                assert isinstance(below, Tree)
                yield from visit(below, row.path + "/")

    end = "\0" if options.null else "\n"
    for row in visit(top, ""):
        size = ""
        if options.long:
            blob = row.kind == "blob"
            size = f" {len(repo.store.blob(row.sha)) if blob else '-':>7}"
        shown = quote_path(row.path) if options.names else row.sha.decode() if options.objects else row.text(size)
        repo.process.print(shown, end=end)
    return 0


def mktree(repo: Repository, args: list[str]) -> int:
    tree = Tree()
    for line in _lines(repo):
        if not line:
            continue
        head, _, path = line.partition("\t")
        words = head.split()
        if len(words) != 3 or not path:
            raise GitError(f"input format error: {line}")
        tree.add(path.encode("utf-8", "surrogateescape"), int(words[0], 8), ObjectID(words[2].encode()))
    repo.process.print(repo.store.add(tree).decode())
    return 0


def write_tree(repo: Repository, args: list[str]) -> int:
    if repo.conflicts():
        listed = "".join(f"{path}: unmerged\n" for path in repo.conflicts())
        raise GitError(f"{listed}fatal: git-write-tree: error building trees", 128, "")
    repo.process.print(repo.store.unflatten(repo.staged()).decode())
    return 0


def read_tree(repo: Repository, args: list[str]) -> int:
    """`git read-tree`: a tree into the index, the work tree left alone."""
    names = [arg for arg in args if not arg.startswith("-")]
    if "--empty" not in args and (
        len(names) != 1 or any(arg not in ("--reset", "-q") for arg in args if arg not in names)
    ):
        raise GitError(
            "git read-tree [--reset] <tree> and --empty are what is there: use git merge or checkout for more"
        )
    tree = repo.tree_at(repo.named(names[0])) if names else {}
    repo.index.clear()
    for path, entry in tree.items():
        repo.index[path] = repo.bare_entry(*entry)
    repo.write_index()
    return 0


def commit_tree(repo: Repository, args: list[str]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        parents: tuple[str, ...] = many("-p", "a parent", metavar="COMMIT")
        message: tuple[str, ...] = many("-m", "a paragraph of the message", metavar="MESSAGE")
        file: str | None = value("-F", "read the message from a file", metavar="FILE")

    parsed = parse(Options, args)
    options = Options(**parsed.values)
    if len(parsed.operands) != 1:
        raise GitError("must give exactly one tree")
    sha = repo.named(parsed.operands[0])
    if not isinstance(repo.store.get(sha), Tree):
        raise GitError(f"{sha.decode()} is not a valid 'tree' object")
    text = "\n\n".join(options.message) if options.message else text_of(repo.process.read_file(options.file or "-"))
    parents = [repo.revision(name) for name in options.parents]
    repo.process.print(repo.make_commit(sha, parents, text.rstrip("\n") + "\n").decode())
    return 0


def merge_tree(repo: Repository, args: list[str]) -> int:
    """`git merge-tree`: what a merge would give, written as a tree and nothing else."""
    names = [arg for arg in args if not arg.startswith("-")]
    if len(names) != 2:
        raise GitError("usage: git merge-tree [--write-tree] <branch1> <branch2>", 129, "")
    first, second = (repo.revision(name) for name in names)
    base = merge_base(repo, first, second)
    merged = merge_trees(repo, repo.tree_of(base), repo.tree_of(first), repo.tree_of(second), names[0], names[1])
    files = dict(merged.files)
    for path, (_, data, mode) in merged.conflicts.items():
        files[path] = (mode, repo.store.add(Blob.from_string(data or b"")))
    repo.process.print(repo.store.unflatten(files).decode())
    for path, (entry, _, _) in merged.conflicts.items():
        for stage, side in ((1, entry.ancestor), (2, entry.this), (3, entry.other)):
            if side is not None:
                repo.process.print(f"{side.mode:06o} {side.sha.decode()} {stage}\t{path}")
    if merged.conflicts:
        repo.process.print("\n" + "\n".join(merged.messages))
    return int(bool(merged.conflicts))


def count_objects(repo: Repository, args: list[str]) -> int:
    count = size = packed = packs = 0
    fs = repo.process.fs
    for folder in fs.readdir(repo.store.directory):
        if len(folder.name) != 2:
            continue
        for entry in fs.readdir(f"{repo.store.directory}/{folder.name}"):
            repo.process.budget.charge()
            count += 1
            size += fs.stat(f"{repo.store.directory}/{folder.name}/{entry.name}").blocks // 2
    if "-v" not in args:
        repo.process.print(f"{count} objects, {size} kilobytes")
        return 0
    for pack in repo.store.packs():
        packs += 1
        packed += len(pack)
    repo.process.print(f"count: {count}\nsize: {size}\nin-pack: {packed}\npacks: {packs}")
    repo.process.print("size-pack: 0\nprune-packable: 0\ngarbage: 0\nsize-garbage: 0")
    return 0


def collect(repo: Repository, args: list[str]) -> int:
    """`git gc`, `git prune`: objects are loose files here and stay so; there is nothing to be done."""
    return 0


def fsck(repo: Repository, args: list[str]) -> int:
    """`git fsck`: that everything which refs reach is there and whole."""
    stack = [*repo.refs.under("refs/").values(), *([head] if (head := repo.head()) else [])]
    seen: set[bytes] = set()
    status = 0
    while stack:
        sha = stack.pop()
        if sha in seen:
            continue
        seen.add(sha)
        repo.process.budget.charge()
        try:
            item = repo.store.get(sha)
        except KeyError:
            repo.process.print(f"missing object {sha.decode()}")
            status = 2
            continue
        if isinstance(item, Tree):
            stack += [row.sha for row in _rows(item) if row.mode != SUBMODULE]
        elif item.type_name == b"commit":
            commit = repo.store.commit(sha)
            stack += [bytes(commit.tree), *(bytes(parent) for parent in commit.parents)]
        elif item.type_name == b"tag":
            stack.append(bytes(repo.store.commit(sha).id))
    return status


# The index.


def ls_files(repo: Repository, args: list[str]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        stage: bool = flag("-s", "--stage", "show mode, object and stage")
        others: bool = flag("-o", "--others", "show untracked files")
        ignored: bool = flag("-i", "--ignored", "show only ignored files")
        modified: bool = flag("-m", "--modified", "show modified files")
        deleted: bool = flag("-d", "--deleted", "show deleted files")
        cached: bool = flag("-c", "--cached", "show cached files")
        unmerged: bool = flag("-u", "--unmerged", "show unmerged files")
        standard: bool = flag("--exclude-standard", "leave ignored files out")
        directory: bool = flag("--directory", "show a directory that is untracked as one")
        null: bool = flag("-z", "terminate with NUL")
        error: bool = flag("--error-unmatch", "fail if a path is not known")
        tags: bool = flag("-t", "-v", "show a letter for the state")
        full: bool = flag("--full-name", "names from the top of the work tree")

    parsed = parse(Options, args)
    options = Options(**parsed.values)
    end = "\0" if options.null else "\n"
    rows: list[tuple[str, str]] = []
    if options.others:
        untracked, hidden = find_untracked(
            repo, everything=not options.directory, ignored=options.ignored or not options.standard
        )
        rows += [("?", path) for path in (hidden if options.ignored else untracked + hidden)]
    changed = changed_files(repo) if options.modified or options.deleted else {}
    if (
        options.cached
        or options.stage
        or options.unmerged
        or not (options.others or options.modified or options.deleted)
    ):
        rows += [("H" if isinstance(entry, IndexEntry) else "M", path) for path, entry in repo.index.items()]
    if options.deleted:
        rows += [("R", path) for path, letter in changed.items() if letter == "D"]
    if options.modified:
        rows += [("C", path) for path in changed]
    names = [path for _, path in rows]
    prefix = relative(repo, ".")
    kept = set(match_paths(repo, parsed.operands or ["."], names))
    for spec in parsed.operands if options.error else ():
        if not match_paths(repo, [spec], names):
            raise GitError(
                f"pathspec '{spec}' did not match any file(s) known to git\nDid you forget to 'git add'?", 1, "error: "
            )
    for letter, path in sorted(set(rows) if not options.tags else rows, key=lambda row: row[1]):
        if path not in kept:
            continue
        shown = quote_path(path[len(prefix) + 1 :] if prefix and not options.full else path)
        mark = f"{letter} " if options.tags else ""
        entry = repo.index.get(path)
        if not (options.stage or options.unmerged) or entry is None:
            repo.process.print(mark + shown, end=end)
            continue
        stages = (
            [(0, entry)] if isinstance(entry, IndexEntry) else [(1, entry.ancestor), (2, entry.this), (3, entry.other)]
        )
        for stage, item in stages:
            if item is not None and (stage or not options.unmerged):
                repo.process.print(f"{mark}{item.mode:06o} {item.sha.decode()} {stage}\t{shown}", end=end)
    return 0


def check_ignore(repo: Repository, args: list[str]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        quiet: bool = flag("-q", "--quiet", "only a status")
        verbose: bool = flag("-v", "--verbose", "say which pattern it is")
        stdin: bool = flag("--stdin", "read names from standard input")
        non_matching: bool = flag("-n", "--non-matching", "show names that no pattern is for")
        no_index: bool = flag("--no-index", "tracked files, too")

    parsed = parse(Options, args)
    options = Options(**parsed.values)
    names = [line for line in _lines(repo) if line] if options.stdin else parsed.operands
    if not names and not options.stdin:
        raise GitError("no path specified")
    ignores = Ignores(repo)
    found = False
    for name in names:
        path = relative(repo, name)
        stat = stat_of(repo, path)
        tracked = path in repo.index and not options.no_index
        folder = name.endswith("/") or (stat is not None and stat.is_dir)
        source = None if tracked else ignores.source(path, directory=folder)
        hit = source is not None and not source[2].startswith("!")
        found = found or hit or (source is not None and options.verbose)
        if options.quiet:
            continue
        if options.verbose and source is not None:
            repo.process.print(f"{source[0]}:{source[1]}:{source[2]}\t{name}")
        elif options.verbose and options.non_matching:
            repo.process.print(f"::\t{name}")
        elif hit:
            repo.process.print(name)
    return 0 if found else 1


def update_index(repo: Repository, args: list[str]) -> int:
    """`git update-index`: --add, --remove, --refresh, --chmod and --cacheinfo for single files."""
    add = remove = force = False
    mode: int | None = None
    words = list(args)
    while words:
        word = words.pop(0)
        match word:
            case "--add":
                add = True
            case "--remove":
                remove = True
            case "--force-remove":
                force = True
            case "--refresh" | "-q" | "--really-refresh" | "--assume-unchanged" | "--no-assume-unchanged" | "--":
                continue
            case "--chmod=+x" | "--chmod=-x":
                mode = 0o100755 if word.endswith("+x") else 0o100644
            case "--cacheinfo":
                parts = words.pop(0).split(",") if words and "," in words[0] else [words.pop(0) for _ in words[:3]]
                if len(parts) != 3:
                    raise GitError("option 'cacheinfo' expects <mode>,<sha1>,<path>", 129, "error: ")
                repo.index[parts[2]] = repo.bare_entry(int(parts[0], 8), parts[1].encode())
            case _ if word.startswith("-"):
                raise GitError(f"unknown option `{word.lstrip('-')}'", 129, "error: ")
            case _:
                _update_one(repo, relative(repo, word), mode, add=add, remove=remove, force=force)
    repo.write_index()
    return 0


def _update_one(repo: Repository, path: str, mode: int | None, *, add: bool, remove: bool, force: bool) -> None:
    stat = stat_of(repo, path)
    if force or (stat is None and remove):
        repo.index.pop(path, None)
        return
    if stat is None or (path not in repo.index and not add):
        reason = (
            "does not exist and --remove not passed"
            if stat is None
            else "cannot add to the index - missing --add option?"
        )
        raise GitError(f"{path}: {reason}\nfatal: Unable to process path {path}", 128, "error: ")
    sha = repo.store.add(Blob.from_string(repo.read_work(path, stat)))
    repo.index[path] = repo.entry(stat, mode if mode is not None else mode_of(stat), sha)


# Refs.


def update_ref(repo: Repository, args: list[str]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        delete: bool = flag("-d", "delete the ref")
        message: str = value("-m", "the reason, for the log", metavar="REASON", default="")
        no_deref: bool = flag("--no-deref", "--create-reflog", "(accepted)")

    parsed = parse(Options, args)
    options = Options(**parsed.values)
    words = parsed.operands
    if not words or (not options.delete and len(words) < 2):
        raise GitError("usage: git update-ref [<options>] <refname> <new-val> [<old-val>]", 129, "")
    name = words[0]
    if name != "HEAD" and (not name.startswith("refs/") or not check_name(name)):
        raise GitError(f"update_ref failed for ref '{name}': refusing to update ref with bad name '{name}'")
    expected = words[1 if options.delete else 2] if len(words) > (1 if options.delete else 2) else None
    if expected is not None:
        old = repo.refs.get(name) or ZERO
        wanted = _object(repo, expected)
        if old == ZERO and wanted != ZERO:
            raise GitError(
                f"update_ref failed for ref '{name}': cannot lock ref '{name}': unable to resolve reference '{name}'"
            )
        if old != wanted:
            raise GitError(
                f"update_ref failed for ref '{name}': cannot lock ref '{name}': "
                f"is at {old.decode()} but expected {wanted.decode()}"
            )
    if options.delete:
        repo.refs.delete(name)
        return 0
    repo.refs.set(name, repo.named(words[1]), options.message, repo.signature())
    return 0


def _object(repo: Repository, name: str) -> bytes:
    """The object of a name; 40 digits are one, be it there or not."""
    if not name.strip("0"):
        return ZERO
    return name.encode() if re.fullmatch(r"[0-9a-f]{40}", name) else repo.named(name)


def symbolic_ref(repo: Repository, args: list[str]) -> int:
    words = [arg for arg in args if not arg.startswith("-")]
    if len(words) == 2:
        repo.refs.write(words[0], f"ref: {words[1]}")
        return 0
    name = words[0] if words else "HEAD"
    text = repo.refs.raw(name) or ""
    if not text.startswith("ref: "):
        if "-q" in args:
            return 1
        raise GitError(f"ref {name} is not a symbolic ref")
    target = text[5:].strip()
    repo.process.print(
        target.removeprefix("refs/heads/").removeprefix("refs/remotes/") if "--short" in args else target
    )
    return 0


def show_ref(repo: Repository, args: list[str]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        heads: bool = flag("--heads", "only branches")
        tags: bool = flag("--tags", "only tags")
        verify: bool = flag("--verify", "names must be whole")
        quiet: bool = flag("-q", "--quiet", "only a status")
        head: bool = flag("--head", "HEAD, too")
        dereference: bool = flag("-d", "--dereference", "what tags point to, too")
        short: str | None = value("-s", "--hash", "only objects", metavar="N", bare="40")

    parsed = parse(Options, args)
    options = Options(**parsed.values)
    refs = dict(repo.refs.under("refs/"))
    head = repo.head()
    if head is not None and (options.head or "HEAD" in parsed.operands):
        refs = {"HEAD": head, **refs}
    found = False
    digits = int(options.short[:3]) if options.short and options.short.isdecimal() else 40
    if options.verify:
        for name in parsed.operands:
            if name not in refs:
                if options.quiet:
                    return 1
                raise GitError(f"'{name}' - not a valid ref")
    for ref, sha in refs.items():
        names = parsed.operands
        if names and not any(ref == name or (not options.verify and ref.endswith("/" + name)) for name in names):
            continue
        kinds = [prefix for given, prefix in ((options.heads, "refs/heads/"), (options.tags, "refs/tags/")) if given]
        if kinds and not ref.startswith(tuple(kinds)):
            continue
        found = True
        if options.quiet:
            continue
        rows = [(sha, ref)]
        if options.dereference and repo.store.get(sha).type_name == b"tag":
            rows.append((bytes(repo.store.commit(sha).id), ref + "^{}"))
        for item, label in rows:
            repo.process.print(item.decode()[:digits] if options.short is not None else f"{item.decode()} {label}")
    return 0 if found else 1


def check_ref_format(repo: Repository, args: list[str]) -> int:
    branch = "--branch" in args
    names = [arg for arg in args if not arg.startswith("-")]
    if not names:
        raise GitError("usage: git check-ref-format [--normalize] [<options>] <refname>", 129, "")
    good = check_name(names[0]) and (branch or "/" in names[0] or "--allow-onelevel" in args)
    if not good:
        if branch:
            raise GitError(f"'{names[0]}' is not a valid branch name")
        return 1
    if branch or "--normalize" in args:
        repo.process.print(names[0])
    return 0


# Differences, for scripts.


def diff_tree(repo: Repository, args: list[str]) -> int:
    plain = ("--no-commit-id", "-r", "-t", "--root", "-m", "--always", "--stdin")
    rest = [arg for arg in args if arg not in plain]
    parsed = parse(LogOptions, rest)
    options = LogOptions(**parsed.values)
    shown: DiffOptions = (
        options if wants_form(options) else LogOptions(**{**parsed.values, "raw": True, "full_index": True})
    )
    names = parsed.operands
    if not names:
        raise GitError("usage: git diff-tree [<options>] <tree-ish> [<tree-ish>] [<path>...]", 129, "")
    if len(names) > 1 and _is_tree(repo, names[1]):
        old, new = (repo.tree_at(repo.named(name)) for name in names[:2])
        return show_diff(repo, _below(repo, old, names[2:]), _below(repo, new, names[2:]), {}, shown)
    commit = repo.store.commit(repo.revision(names[0]))
    if not commit.parents and "--root" not in args:
        return 0
    pairs = commit_pairs(repo, commit, names[1:])
    if pairs and "--no-commit-id" not in args:
        repo.process.print(bytes(commit.id).decode())
    show_pairs(repo, pairs, shown)
    return 0


def _is_tree(repo: Repository, name: str) -> bool:
    try:
        repo.tree_at(repo.resolve(name))
    except (KeyError, GitError):
        return False
    return True


def _below(repo: Repository, tree: dict[str, tuple[int, bytes]], paths: list[str]) -> dict[str, tuple[int, bytes]]:
    names = set(match_paths(repo, paths, list(tree))) if paths else set(tree)
    return {path: entry for path, entry in tree.items() if path in names}


def diff_index(repo: Repository, args: list[str]) -> int:
    parsed = parse(DiffOptions, args)
    options = DiffOptions(**parsed.values)
    if not parsed.operands:
        raise GitError("usage: git diff-index [-m] [--cached] [<common-diff-options>] <tree-ish> [<path>...]", 129, "")
    if not wants_form(options):
        options = DiffOptions(**{**parsed.values, "raw": True, "full_index": True})
    old = repo.tree_at(repo.named(parsed.operands[0]))
    return _against_work(repo, old, options, parsed.operands[1:])


def diff_files_command(repo: Repository, args: list[str]) -> int:
    parsed = parse(DiffOptions, args)
    options = DiffOptions(**parsed.values)
    if not wants_form(options):
        options = DiffOptions(**{**parsed.values, "raw": True, "full_index": True})
    return _against_work(repo, repo.staged(), options, parsed.operands)


def _against_work(repo: Repository, old: dict[str, tuple[int, bytes]], options: DiffOptions, paths: list[str]) -> int:
    new = dict(repo.staged())
    contents: dict[str, bytes] = {}
    for path, letter in {} if options.cached else changed_files(repo).items():
        stat = stat_of(repo, path)
        if letter == "D" or stat is None:
            new.pop(path, None)
            continue
        contents[path] = repo.read_work(path, stat)
        new[path] = (mode_of(stat), hash_blob(contents[path]))
    return show_diff(repo, _below(repo, old, paths), _below(repo, new, paths), contents, options)


# Others.


def var(repo: Repository, args: list[str]) -> int:
    from belljar.bin.git.history import date

    for name in [arg for arg in args if not arg.startswith("-")]:
        match name:
            case "GIT_AUTHOR_IDENT" | "GIT_COMMITTER_IDENT":
                kind = name.split("_")[1]
                when = date(*repo.now(kind), "raw")
                repo.process.print(f"{text_of(repo.identity(kind))} {when}")
            case "GIT_EDITOR":
                editor = repo.process.env.get("GIT_EDITOR") or repo.config("core.editor") or "vi"
                repo.process.print(repo.process.env.get("EDITOR", editor) if editor == "vi" else editor)
            case "GIT_PAGER":
                repo.process.print(repo.process.env.get("GIT_PAGER") or "pager")
            case "GIT_DEFAULT_BRANCH":
                repo.process.print(repo.config("init.defaultBranch") or "master")
            case _:
                raise GitError("usage: git var (-l | <variable>)", 129, "")
    return 0


def stripspace(repo: Repository, args: list[str]) -> int:
    lines = [line.rstrip() for line in _lines(repo)]
    if "-s" in args or "--strip-comments" in args:
        lines = [line for line in lines if not line.startswith("#")]
    out: list[str] = []
    for line in lines:
        if line or (out and out[-1]):
            out.append(line)
    while out and not out[-1]:
        out.pop()
    mark = "# " if "-c" in args or "--comment-lines" in args else ""
    repo.process.print("".join(f"{mark}{line}".rstrip() + "\n" for line in out), end="")
    return 0


def submodule(repo: Repository, args: list[str]) -> int:
    """`git submodule`: there are none here; commands that would use them say so."""
    verb = next((arg for arg in args if not arg.startswith("-")), "status")
    known = [path for path, (mode, _) in repo.staged().items() if mode == SUBMODULE]
    if verb in ("add", "foreach", "summary") or known:
        raise GitError("submodules are not there in this git: clone the other repository by itself")
    return 0
