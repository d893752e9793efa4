"""What a C compiler's command line means here: GCC's options as clang takes them, and what can't be in WebAssembly."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.engines.wire.tools import LLVM

_EMULATED: Final = ("signal", "mman", "process-clocks", "getpid")
"""Parts of wasi-libc that a program asks for: they do as much of POSIX as one process alone can."""
COMPILE: Final = (
    "--target=wasm32-wasip1",
    f"--sysroot={LLVM.root}",
    f"-resource-dir={LLVM.root}",
    "-isystem", f"{LLVM.support_root}/include",
    *(f"-D_WASI_EMULATED_{name.upper().replace('-', '_')}" for name in _EMULATED),
    "-mllvm", "-wasm-enable-sjlj", "-mllvm", "-wasm-use-legacy-eh=false",
    "-Wno-unknown-warning-option", "-Wno-unused-command-line-argument", "-Wno-ignored-optimization-argument",
)  # fmt: skip
LINK: Final = (
    *(f"-lwasi-emulated-{name}" for name in _EMULATED),
    "-lsetjmp",
    f"-L{LLVM.support_root}",
    "-lbelljar",
    "-Wl,-u,chdir,--export-if-defined=__wasilibc_cwd",
    "-Wl,-z,stack-size=1048576",
)
_WITH_VALUE: Final = frozenset(
    "-o -x -I -L -D -U -l -u -T -z -include -imacros -isystem -iquote -idirafter -iprefix -isysroot -MF -MT -MQ"
    " -Xclang -Xlinker -Xassembler -Xpreprocessor -mllvm -target -arch -framework -e -aux-info --param -main-file-name"
    " -rpath -A".split()
)
"""Options whose value may be the next word."""
_ONE_STEP: Final = frozenset(("-c", "-S", "-E", "-fsyntax-only", "-M", "-MM"))
_FILES_OF_THE_SANDBOX: Final = {"-M": "-MM", "-MD": "-MMD"}
"""Lists of headers leave out the compiler's own: they are no files of the sandbox, and make would miss them."""
_QUESTIONS: Final = (
    "--version",
    "-dumpversion",
    "-dumpmachine",
    "-dumpfullversion",
    "--help",
    "-print-",
    "--print-",
    "-dumpspecs",
)
_MACHINE: Final = ("-march=", "-mtune=", "-mcpu=", "-mfpu=", "-mfloat-abi=", "-mfpmath=", "-msse", "-mssse", "-mavx")
_MACHINE_WORDS: Final = frozenset(
    ("-m64", "-m32", "-mx32", "-mmmx", "-mfma", "-mbmi", "-mbmi2", "-mpopcnt", "-maes", "-mpclmul", "-mno-red-zone")
)
_DROPPED: Final = frozenset(
    "-fPIC -fpic -fPIE -fpie -fno-pic -fno-PIC -fno-pie -fno-PIE -pie -no-pie -static -static-libgcc -static-libstdc++"
    " -pthread -pthreads -mthreads -rdynamic -fno-plt -fstack-clash-protection -fcf-protection -pipe"
    " -fprofile-arcs -ftest-coverage --coverage".split()
)
"""Options without a meaning, or a need, for one static program of one thread."""
_DROPPED_LINKER: Final = frozenset(
    "-rpath -rpath-link -soname -h -z --version-script -dynamic-linker --hash-style -O1 -Bstatic -Bdynamic -Bsymbolic"
    " --as-needed --no-as-needed --sort-common --enable-new-dtags --disable-new-dtags --build-id -E --export-dynamic"
    " --no-undefined -Map".split()
)
_LINKER_WITH_VALUE: Final = frozenset(
    ("-rpath", "-rpath-link", "-soname", "-h", "-z", "--version-script", "-dynamic-linker", "-Map")
)

WHY_NOT: Final = {
    "-shared": "there are no shared libraries: programs here are one WebAssembly file each. Link the objects, or make "
    "a static library with ar",
    "-fopenmp": "there are no threads here, so no OpenMP; compile without it",
    "-fsanitize=": "sanitizers have no runtime here; memory outside the program can't be reached anyhow",
    "-fexceptions": "C++ exceptions have no library here: compile with -fno-exceptions",
    "-dynamiclib": "there are no shared libraries here",
}
GAPS: Final = (
    ("fork vfork posix_spawn posix_spawnp", "a WebAssembly program can't be copied; system, popen and exec work"),
    (
        "socket connect bind listen getaddrinfo gethostbyname sendto recvfrom socketpair",
        "programs built here have no sockets; curl, python3 and node reach the network where it is granted",
    ),
    ("pthread_ thrd_ sem_", "there are no threads here"),
    ("dlopen dlsym dlclose", "there are no shared libraries here"),
    (
        "sigaction sigprocmask sigsuspend sigwait alarm setitimer pause siglongjmp sigsetjmp",
        "no signal reaches a WebAssembly program; signal and raise work within it",
    ),
    (
        "__cxa_throw __cxa_allocate_exception __cxa_begin_catch _Unwind_",
        "C++ exceptions have no library here: compile with -fno-exceptions",
    ),
    ("tcgetattr tcsetattr ttyname openpty", "a program built here can't set a terminal"),
    ("mprotect shm_open mremap", "there is no memory but the program's own"),
)
"""Functions that there are not, and why: for the linker's errors. A name with an underscore at its end is a prefix."""


class NotPossible(Exception):
    """An option that can't be served; says why and what to do."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A compiler's command line. `direct`: clang carries it out in one process, without another program's help."""

    words: list[str]
    direct: bool
    links: bool


def parse_command_line(words: Sequence[str]) -> CommandLine:
    """Raises NotPossible."""
    kept: list[str] = []
    inputs: list[str] = []
    one_step = question = False
    rest = iter(words)
    for word in rest:
        check_possible(word)
        if (
            word in _DROPPED
            or word in _MACHINE_WORDS
            or word.startswith(_MACHINE)
            or word.startswith("-ffile-prefix-map")
        ):
            continue
        if word.startswith("-Wl,"):
            kept += _linker_words(word)
            continue
        kept.append(_FILES_OF_THE_SANDBOX.get(word, word))
        if word in _WITH_VALUE:
            if (value := next(rest, None)) is not None:
                kept.append(value)
        elif word == "-" or not word.startswith("-"):
            inputs.append(word)
        elif word in _ONE_STEP:
            one_step = True
        elif word.startswith(_QUESTIONS):
            question = True
    direct = question or (one_step and len(inputs) <= 1) or (not inputs and not any(w.startswith("-l") for w in kept))
    return CommandLine(kept, direct, not (one_step or question))


def check_possible(word: str) -> None:
    """Raises NotPossible."""
    for option, reason in WHY_NOT.items():
        if word == option or (option.endswith("=") and word.startswith(option)):
            raise NotPossible(f"{word}: {reason}")


def _linker_words(word: str) -> list[str]:
    """-Wl,... without what only ELF has."""
    kept: list[str] = []
    rest = iter(word.split(",")[1:])
    for option in rest:
        name = option.partition("=")[0]
        if name in _DROPPED_LINKER or name.startswith("-O"):
            if option in _LINKER_WITH_VALUE:
                next(rest, None)
        else:
            kept.append(option)
    return ["-Wl," + ",".join(kept)] if kept else []


def parse_steps(text: str) -> list[list[str]]:
    """The commands in what `clang -###` printed: each on a line of its own that begins with a space, words quoted."""
    return [shlex.split(line) for line in text.splitlines() if line.startswith(' "')]


def explain(text: str) -> list[str]:
    """Why functions are missing that a linker did not find, each reason once."""
    missing = [
        line.rpartition("undefined symbol: ")[2].strip() for line in text.splitlines() if "undefined symbol: " in line
    ]
    found: list[str] = []
    for names, reason in GAPS:
        hit = sorted(
            {m for m in missing if any(m == n or (n.endswith("_") and m.startswith(n)) for n in names.split())}
        )
        if hit:
            found.append(f"{', '.join(hit)}: {reason}")
    return found
