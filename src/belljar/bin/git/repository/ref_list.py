"""Lists of refs: limited, sorted and formatted, for `for-each-ref`, `branch` and `tag`."""

from __future__ import annotations

import re
from collections.abc import Callable

from dulwich.objects import Commit, ShaFile, Tag

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import many, value
from belljar.bin._kit.versions import version_key
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.merging import ancestors
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, find_object
from belljar.bin.git.repository.text import body_of, date, relative_date, subject_of, text_of, who

_FIELD = re.compile(r"%\(([^()]*)\)|%([0-9a-fA-F]{2})|%%")
_LAST_ARGUMENT = ("--contains", "--no-contains", "--merged", "--no-merged", "--points-at")


@dataclass(frozen=True, slots=True)
class Ref:
    name: str
    sha: bytes


def attach_values(args: list[str]) -> list[str]:
    """`--contains X` means `--contains=X`, and `--contains` alone HEAD."""
    out: list[str] = []
    for arg in args:
        if out and out[-1] in _LAST_ARGUMENT and not arg.startswith("-"):
            out[-1] += f"={arg}"
        else:
            out.append(arg)
    return out


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Options shared by `for-each-ref`, `branch` and `tag`."""

    contains: str | None = value("--contains", "only those that contain the commit", metavar="COMMIT", bare="HEAD")
    no_contains: str | None = value("--no-contains", "only those that do not", metavar="COMMIT", bare="HEAD")
    merged: str | None = value("--merged", "only those that the commit reaches", metavar="COMMIT", bare="HEAD")
    no_merged: str | None = value("--no-merged", "only those that it does not", metavar="COMMIT", bare="HEAD")
    points_at: str | None = value("--points-at", "only those of the object", metavar="OBJECT", bare="HEAD")
    sort: tuple[str, ...] = many("--sort", "sort by", metavar="KEY")
    form: str | None = value("--format", "how to show them", metavar="FORMAT")

    def limits(self) -> bool:
        """Whether some are to be left out."""
        limits = (self.contains, self.no_contains, self.merged, self.no_merged, self.points_at)
        return any(limit is not None for limit in limits)


def limit_refs(repo: Repository, refs: list[Ref], options: ListOptions) -> list[Ref]:
    """Filter refs by --contains, --merged and the like."""
    for name, keep in ((options.contains, True), (options.no_contains, False)):
        if name is not None:
            wanted = find_commit(repo, name)
            refs = [r for r in refs if (wanted in ancestors(repo, bytes(repo.store.commit(r.sha).id))) is keep]
    for name, keep in ((options.merged, True), (options.no_merged, False)):
        if name is not None:
            reached = ancestors(repo, find_commit(repo, name))
            refs = [r for r in refs if (bytes(repo.store.commit(r.sha).id) in reached) is keep]
    if options.points_at is not None:
        wanted = find_object(repo, options.points_at)
        refs = [r for r in refs if wanted in (r.sha, bytes(repo.store.commit(r.sha).id))]
    return refs


def sort_refs(repo: Repository, refs: list[Ref], keys: tuple[str, ...]) -> list[Ref]:
    """Sort by the last key first, as git does; ties are sorted by name."""
    refs = sorted(refs, key=lambda ref: ref.name)
    for key in filter(None, keys):
        name = key.lstrip("-")
        if name in ("version:refname", "v:refname"):
            refs.sort(key=lambda ref: version_key(fsencode(ref.name)), reverse=key[0] == "-")
        elif name.partition(":")[0].endswith("date") or name == "objectsize":
            base = name.partition(":")[0]
            refs.sort(key=lambda ref: int(_field(repo, ref, f"{base}:unix") or 0), reverse=key[0] == "-")
        else:
            refs.sort(key=lambda ref: _field(repo, ref, name), reverse=key[0] == "-")
    return refs


def format_ref(repo: Repository, ref: Ref, form: str) -> str:
    """A ref in a format of %(fields); %(if)...%(then)...%(else)...%(end) may not be nested."""
    form = re.sub(
        r"%\(if\)(.*?)%\(then\)(.*?)(?:%\(else\)(.*?))?%\(end\)",
        lambda m: m[2] if format_ref(repo, ref, m[1]).strip() else m[3] or "",
        form,
        flags=re.S,
    )

    def replace(match: re.Match[str]) -> str:
        if match[1] is not None:
            return _field(repo, ref, match[1])
        return chr(int(match[2], 16)) if match[2] else "%"

    return _FIELD.sub(replace, form)


def _field(repo: Repository, ref: Ref, field: str) -> str:
    base, _, detail = field.partition(":")
    item = repo.store.get(ref.sha)
    if base.startswith("*"):
        if not isinstance(item, Tag):
            return ""
        return _field(repo, Ref(ref.name, bytes(item.object[1])), field[1:])
    match base:
        case "refname":
            return _short(ref.name, detail)
        case "objectname":
            digits = re.fullmatch(r"short(?:=([0-9]{1,2}))?", detail)
            return ref.sha.decode()[: max(4, int(digits[1] or 7)) if digits else 40]
        case "objecttype":
            return item.type_name.decode()
        case "objectsize":
            return str(len(item.as_raw_string()))
        case "HEAD":
            return "*" if repo.refs.branch() == ref.name else " "
        case "upstream":
            return _upstream(repo, ref, detail)
        case "symref":
            text = repo.refs.raw(ref.name) or ""
            return _short(text[5:], detail) if text.startswith("ref: ") else ""
        case "color":
            return ""
    return _text_field(repo, item, base, detail)


def _short(name: str, detail: str) -> str:
    if detail == "short":
        return re.sub(r"^refs/(heads|tags|remotes)/", "", name)
    if match := re.fullmatch(r"l?strip=([0-9]{1,4})", detail):
        return "/".join(name.split("/")[int(match[1]) :])
    return name


def _upstream(repo: Repository, ref: Ref, detail: str) -> str:
    upstream = repo.upstream(ref.name.removeprefix("refs/heads/")) if ref.name.startswith("refs/heads/") else None
    if upstream is None:
        return ""
    if not detail.startswith("track"):
        return _short(upstream, detail)
    other = repo.refs.get(upstream)
    if other is None:
        return "[gone]"
    ours, theirs = ancestors(repo, ref.sha), ancestors(repo, other)
    counts = [f"ahead {len(ours - theirs)}"] * bool(ours - theirs) + [f"behind {len(theirs - ours)}"] * bool(
        theirs - ours
    )
    text = ", ".join(counts)
    return f"[{text}]" if text and "nobracket" not in detail else text


def _text_field(repo: Repository, item: ShaFile, base: str, detail: str) -> str:
    message = text_of(item.message or b"") if isinstance(item, (Commit, Tag)) else ""
    commit = item if isinstance(item, Commit) else None
    person: tuple[bytes, int, int] | None = None
    if base.startswith("author") and commit is not None:
        person = (commit.author, commit.author_time, commit.author_timezone)
    elif (base.startswith("committer") and commit is not None) or (base.startswith("creator") and commit is not None):
        person = (commit.committer, commit.commit_time, commit.commit_timezone)
    elif base.startswith(("tagger", "creator")) and isinstance(item, Tag) and item.tagger:
        person = (item.tagger, item.tag_time or 0, item.tag_timezone or 0)
    part = re.sub(r"^(author|committer|creator|tagger)", "", base)
    if part != base:
        if person is None:
            return ""
        name, email = who(person[0])
        if part == "date":
            if detail == "relative":
                return relative_date(person[1], repo.process.kernel.now() // 1_000_000_000)
            return date(person[1], person[2], detail or "default")
        plain = {"name": name, "email": email if detail in ("trim", "localpart") else f"<{email}>"}
        return plain.get(part, f"{name} <{email}> {date(person[1], person[2], 'raw')}")
    simple: dict[str, Callable[[], str]] = {
        "subject": lambda: subject_of(message), "body": lambda: body_of(message),
        "tree": lambda: bytes(commit.tree).decode() if commit else "",
        "parent": lambda: " ".join(p.decode() for p in commit.parents) if commit else "",
        "tag": lambda: text_of(item.name) if isinstance(item, Tag) else "",
        "object": lambda: item.object[1].decode() if isinstance(item, Tag) else "",
        "type": lambda: item.object[0].type_name.decode() if isinstance(item, Tag) else "",
        "contents": lambda: {"subject": subject_of(message), "body": body_of(message)}.get(detail, message),
    }  # fmt: skip
    if base not in simple:
        raise GitError(f"unknown field name: {base}")
    return simple[base]()
