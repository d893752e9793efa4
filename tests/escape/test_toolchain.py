"""Hostile sources, objects and programs: the compiler fails, or a limit ends it, and the sandbox goes on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar import Limits, Sandbox
from belljar.engines.artefact_host import ArtefactError, open_checked
from belljar.engines.owner import tools_host
from belljar.engines.wire.tools import LLVM

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(limits=Limits(cpu_seconds=20, memory_bytes=400 << 20, wall_seconds=300)) as made:
        yield made
        assert (
            made.exec("echo 'int main() { return 6; }' > /tmp/ok.c; cc /tmp/ok.c -o /tmp/ok && /tmp/ok").exit_code == 6
        )


_MACROS = "".join(f"#define A{n} A{n - 1} A{n - 1} A{n - 1} A{n - 1}\n" for n in range(1, 16))
BOMBS = {
    "templates": (
        "b.cc",
        "template<int N, int M> struct F { static const long v = F<N-1,M>::v + F<N-1,M+1>::v; };\n"
        "template<int M> struct F<0,M> { static const long v = M; };\nlong x = F<900,0>::v;\n",
    ),
    "macros": ("b.c", f"#define A0 1+1\n{_MACROS}int x = A15;\n"),
    "an include of /dev/zero": ("b.c", '#include "/dev/zero"\n'),
    "an include of itself": ("b.c", '#include "b.c"\n#include "b.c"\n'),
    "a constant without an end": ("b.cc", "constexpr int f() { for (;;) ; return 1; }\nconstexpr int x = f();\n"),
    "brackets": ("b.c", "int x = " + "(" * 100_000 + "1" + ")" * 100_000 + ";\n"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_at_a_limit_or_in_an_error(sandbox: Sandbox, name: str) -> None:
    file, text = BOMBS[name]
    sandbox.files.write(f"/tmp/{file}", text)
    done = sandbox.exec(f"cd /tmp && cc -c -O0 {file} -o b.o", timeout=250)
    assert done.exit_code != 0 or name.endswith("/dev/zero")  # which clang takes for an empty file
    assert sandbox.exec("echo alive").stdout == "alive\n"


@pytest.mark.parametrize("seed", range(6))
def test_damaged_objects_fail_to_link(sandbox: Sandbox, seed: int) -> None:
    script = (
        "cd /tmp; echo 'int g(void) { return 1; } int main() { return g(); }' > o.c; cc -g -c o.c; python3 - <<'E'\n"
        "import random\n"
        f"r = random.Random({seed}); d = bytearray(open('o.o','rb').read())\n"
        "for _ in range(40): d[r.randrange(8, len(d))] = r.randrange(256)\n"
        "open('bad.o','wb').write(d)\nE\n"
        "cc bad.o -o bad; nm bad.o >/dev/null; objdump -d bad.o >/dev/null; ar rc bad.a bad.o; echo survived"
    )
    assert sandbox.exec(script, timeout=250).stdout.endswith("survived\n")


def test_the_compiler_sees_no_file_of_the_host(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/h.c", '#include "/root/.cache/belljar/key"\n#include "/etc/shadow"\n')
    done = sandbox.exec("cc -E /tmp/h.c")
    assert done.exit_code == 1
    assert "not found" in done.stderr or "Permission denied" in done.stderr


def test_nobody_changes_the_compiler_or_its_library(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/s.c", "#include <stddef.h>\nint main() { return sizeof(size_t); }\n")
    done = sandbox.exec(
        "mkdir -p /usr/lib/wasi/include; echo bad > /usr/lib/wasi/include/stddef.h; cc /tmp/s.c -o /tmp/s && /tmp/s; "
        "echo $?; echo x > /usr/bin/cc; rm -f /usr/bin/perl; cc --version | head -c 5; perl -e 'print 1'"
    )
    assert done.stdout == "4\nclang1"


FUZZ = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((import_module("belljar"), import_name("call")))
int32_t call(const void *, uint32_t, void *, uint32_t);
static unsigned char request[65536], answer[4096];

int main(void) {
    int odd = 0;
    srand(7);
    for (int i = 0; i < 20000; i++) {
        int size = rand() % 64;
        for (int k = 0; k < size; k++) request[k] = rand();
        if (rand() % 2) request[0] = rand() % 80, request[1] = 0;
        if (request[0] == 45 || request[0] == 47) request[0] = 99;  /* spawn, kill: they would succeed at times */
        odd += call(request, size, answer, rand() % 200) > (int)sizeof answer;
    }
    odd += call((void *)0xfffffff0, 64, answer, 8) >= 0;
    odd += call(request, 0xffffffff, answer, 8) >= 0;
    uint16_t ids = 49;
    odd += call(&ids, 2, (void *)0xfffffff0, 64) >= 0;
    printf("%d\n", odd);
    return 0;
}
"""


def test_bad_requests_of_a_program_get_an_error_number(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/fuzz.c", FUZZ)
    done = sandbox.exec("cd /tmp && cc -O1 fuzz.c -o fuzz && ./fuzz < /dev/null", timeout=250)
    assert (done.stdout, done.exit_code) == ("0\n", 0), done.stderr


def test_an_archive_that_is_not_the_known_one_is_not_kept() -> None:
    with pytest.raises(tools_host.NotFetched, match="nothing was kept"):
        tools_host.unpack(LLVM, b"something else")


def test_a_poisoned_cache_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files beside the native code that were changed: no sandbox runs with them."""
    archive = tools_host.archive_of(LLVM)
    place = tmp_path / "belljar"
    place.mkdir(mode=0o700)
    for path in (archive, archive.with_suffix(".mac"), archive.parent / "key"):
        if path.exists():
            shutil.copy(path, place / path.name)
    monkeypatch.setenv("BELLJAR_CACHE", str(place))
    copied = place / archive.name
    with open_checked(copied):
        pass
    data = bytearray(copied.read_bytes())
    data[len(data) // 2] ^= 1
    copied.write_bytes(bytes(data))
    with pytest.raises(ArtefactError, match="not what was written"), open_checked(copied):
        pass


CHANNEL = """
%w[run run/zz run/30 capture/2d31/41 reader/39/41 kill/39/31 dup/393939 dup2/2d31/2d32 stat stat/2f6e6f6e65
   chmod/41/2f chmod umask/41 leave/41 none /].each do |request|
  File.binread("/.belljar/" + request)
  puts "#{request} was answered"
rescue SystemCallError
end
%w[/root/.cache/belljar/key /etc/shadow].each { |path| puts File.read(path) rescue puts "refused" }
"""


def test_requests_of_ruby_are_checked_and_it_has_the_sandboxs_files_only(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/c.rb", CHANNEL)
    done = sandbox.exec("ruby /tmp/c.rb; rm -f /usr/bin/ruby; ruby -e 'puts 2'", timeout=250)
    assert done.stdout == "refused\nrefused\n2\n", done.stderr


def test_programs_that_break_ruby_and_perl_end_alone(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/deep", "[" * 200_000)
    for program in ("perl /tmp/deep", "ruby -e 'def f = f; f'", "ruby -e 'exit!(\"x\" * (1 << 30))'"):
        assert sandbox.exec(program, timeout=250).exit_code != 0
    assert sandbox.exec("ruby -e 'puts 3'; perl -e 'print 4'").stdout == "3\n4"
