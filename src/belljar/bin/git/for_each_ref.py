"""`git for-each-ref`: refs in any form."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.ref_list import ListOptions, Ref, attach_values, format_ref, limit_refs, sort_refs
from belljar.bin.git.repository.repo import Repository
from belljar.libc.pattern import compile_pattern


@dataclass(frozen=True, slots=True)
class Options(ListOptions):
    count: str | None = value("--count", "at most so many", metavar="N")
    shell: bool = flag("-s", "--shell", "--python", "quote for a shell")


def for_each_ref(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(Options, attach_values(args))
    refs = [Ref(name, sha) for name, sha in repo.refs.under("refs/").items()]
    if operands:
        refs = [ref for ref in refs if any(_selected(ref.name, pattern) for pattern in operands)]
    refs = limit_refs(repo, refs, options)
    refs = sort_refs(repo, refs, options.sort)
    if options.count is not None and options.count.isdecimal():
        refs = refs[: int(options.count[:9])]
    form = options.form if options.form is not None else "%(objectname) %(objecttype)\t%(refname)"
    for ref in refs:
        repo.process.print(format_ref(repo, ref, form))
    return 0


def _selected(name: str, pattern: str) -> bool:
    whole = pattern.rstrip("/")
    return name == whole or name.startswith(whole + "/") or compile_pattern(pattern).matches(name)
