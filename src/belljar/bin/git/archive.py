"""`git archive`: the files of a commit as a tar or a zip."""

from __future__ import annotations

import gzip
import time
import zipfile
from collections.abc import Iterator
from io import BytesIO

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.abi.records import NANO
from belljar.bin._kit import flag, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.pathspec import match_paths
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import resolve
from belljar.bin.git.repository.store import LINK, SUBMODULE
from belljar.libc.tar_header import BLOCK, DIRECTORY, PAX_GLOBAL, RECORD, REGULAR, SYMLINK, Member, encode, pad

_FORMATS = ("tar", "tgz", "tar.gz", "zip")


@dataclass(frozen=True, slots=True)
class Options:
    form: str | None = value("--format", "tar, tar.gz, tgz or zip", metavar="FORMAT")
    prefix: str = value("--prefix", "put this before names", metavar="PREFIX", default="")
    output: str | None = value("-o", "--output", "write to a file", metavar="FILE")
    list: bool = flag("-l", "--list", "list formats")
    verbose: bool = flag("-v", "--verbose", "show names on stderr")


@dataclass(frozen=True, slots=True)
class Item:
    path: str
    """A folder's ends with a slash."""
    mode: int
    data: bytes
    link: bool = False


def archive(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(Options, args)
    if options.list:
        repo.process.print("\n".join(_FORMATS))
        return 0
    if not operands:
        raise GitError("usage: git archive [<options>] <tree-ish> [<path>...]", 129, "")
    form = options.form
    if form is None:
        ends = [name for name in _FORMATS if (options.output or "").endswith(f".{name}")]
        form = ends[-1] if ends else "tar"
    if form not in _FORMATS:
        raise GitError(f"Unknown archive format '{form}'")
    try:
        sha = resolve(repo, operands[0])
    except KeyError:
        raise GitError(f"not a valid object name: {operands[0]}") from None
    tree = repo.tree_at(sha)
    names = match_paths(repo, operands[1:], list(tree)) if operands[1:] else list(tree)
    if operands[1:] and not names:
        raise GitError(f"pathspec '{operands[1]}' did not match any files")
    is_commit = repo.store.get(sha).type_name in (b"commit", b"tag")
    when = repo.store.commit(sha).commit_time if is_commit else repo.now("COMMITTER")[0]
    comment = bytes(repo.store.commit(sha).id).decode() if is_commit else ""
    items = _items(repo, {name: tree[name] for name in sorted(names)}, options)
    data = _zip(items, when, comment) if form == "zip" else _tar(items, when, comment)
    if form in ("tgz", "tar.gz"):
        data = gzip.compress(data, 6, mtime=0)
    if options.output is not None:
        repo.process.write_file(options.output, data)
    else:
        repo.process.stdout.write(data)
    return 0


def _items(repo: Repository, tree: dict[str, tuple[int, bytes]], options: Options) -> Iterator[Item]:
    """Folders before what is in them; what is held in memory is charged for."""
    made: set[str] = set()
    size = 0
    if options.prefix.endswith("/"):
        made.add(options.prefix)
        yield Item(options.prefix, 0o775, b"")
    for path, (mode, sha) in tree.items():
        parts = path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            folder = options.prefix + "/".join(parts[:depth]) + "/"
            if folder not in made:
                made.add(folder)
                yield Item(folder, 0o775, b"")
        if mode == SUBMODULE:
            yield Item(f"{options.prefix}{path}/", 0o775, b"")
            continue
        data = repo.store.blob(sha)
        size += len(data) + BLOCK
        repo.process.budget.charge_size(size)
        if options.verbose:
            repo.process.error(f"{options.prefix}{path}\n")
        yield Item(options.prefix + path, 0o775 if mode & 0o111 else 0o664, data, mode == LINK)


def _tar(items: Iterator[Item], when: int, comment: str) -> bytes:
    out: list[bytes] = []
    if comment:
        record = fsencode(f"{len(comment) + 12} comment={comment}\n")
        head = Member("pax_global_header", PAX_GLOBAL, 0o666, size=len(record), mtime=when * NANO)
        out += [encode(head, "ustar"), pad(record)]
    for item in items:
        member = Member(item.path, mode=item.mode, mtime=when * NANO, user="root", group="root")
        if item.path.endswith("/"):
            member.kind = DIRECTORY
        elif item.link:
            member.kind, member.mode, member.link = SYMLINK, 0o777, item.data.decode("utf-8", "surrogateescape")
        else:
            member.kind, member.size = REGULAR, len(item.data)
        out.append(encode(member, "gnu"))
        if member.kind == REGULAR:
            out.append(pad(item.data))
    data = b"".join(out) + bytes(2 * BLOCK)
    return data + bytes(-len(data) % RECORD)


def _zip(items: Iterator[Item], when: int, comment: str) -> bytes:
    out = BytesIO()
    stamp = max(time.gmtime(when)[:6], (1980, 1, 1, 0, 0, 0))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        target.comment = fsencode(comment)
        for item in items:
            info = zipfile.ZipInfo(item.path, stamp)
            kind = 0o040000 if item.path.endswith("/") else 0o120000 if item.link else 0o100000
            info.external_attr = (kind | item.mode) << 16
            info.compress_type = zipfile.ZIP_STORED if item.path.endswith("/") else zipfile.ZIP_DEFLATED
            target.writestr(info, item.data)
    return out.getvalue()
