"""`belljar prepare` ends by a signal at any moment, and leaves neither processes nor anything half-made."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from belljar.engines.artefact_host import open_checked
from belljar.owner.launch_host import archive_path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere orphans can't be adopted")
PROGRAM = Path(__file__).with_name("interrupted.py")
COMPILER = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
echo unfinished > "$TMPDIR/cc.o"
echo made > "$2"
"""


class Prepare:
    """Runs `belljar prepare` of small things in a cache of its own."""

    def __init__(self, root: Path, archive: Path) -> None:
        self.root, self.archive = root, archive
        self.cache, self.temporary = root / "cache", root / "tmp"
        self.log = root / "log"
        (root / "module.wasm").write_bytes(b"\0asm\1\0\0\0")
        compiler = root / "compiler"
        compiler.write_text(COMPILER)
        compiler.chmod(0o755)
        self.environment = {
            **os.environ,
            "ROOT": str(root),
            "BELLJAR_CACHE": str(self.cache),
            "TMPDIR": str(self.temporary),
            "CXX": str(compiler),
        }
        self.clear()

    def clear(self) -> None:
        for path in (self.cache, self.temporary):
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(mode=0o700)
        shutil.copy(self.archive, self.cache)

    def __call__(self, where: str, number: int, name: str = "SIGINT") -> subprocess.CompletedProcess[str]:
        words = [sys.executable, str(PROGRAM), where, str(number), name, str(self.log)]
        # The output ends when the last process that has it ends: none outlives the command, or this waits in vain.
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False, timeout=120)

    def moments(self, where: str) -> list[str]:
        self.clear()
        self.log.unlink(missing_ok=True)
        done = self(where, 0)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "modules: ready\npython: ready\njs: ready\nquickjs: ready\n"
        return list(dict.fromkeys(self.log.read_text().splitlines()))  # two modules are compiled, each the same way

    def check_whole(self, moment: str) -> None:
        """Nothing but whole files under their own names."""
        assert list(self.temporary.iterdir()) == [], moment
        for path in self.cache.rglob("*"):
            if path.is_dir() or path.suffix == ".lock" or path.name == self.archive.name:
                continue
            assert not path.name.startswith((".", "tmp", "work-")), (moment, path)
            if path.suffix in (".cwasm", ".node"):
                with pytest.MonkeyPatch.context() as patch, open_checked(path):
                    patch.undo()
            elif path.name == "key" or path.suffix == ".mac":
                assert path.stat().st_size == 32, moment


@pytest.fixture
def prepare(tmp_path: Path, home: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Prepare:
    monkeypatch.setenv("XDG_CACHE_HOME", home["XDG_CACHE_HOME"])
    monkeypatch.delenv("BELLJAR_CACHE", raising=False)
    return Prepare(tmp_path, Path(archive_path()))


@pytest.mark.slow
@pytest.mark.parametrize("where", ["worker", "compiler"])
def test_an_interrupt_at_any_moment_leaves_nothing_half_made(prepare: Prepare, where: str) -> None:
    moments = prepare.moments(where)
    assert {each.split()[1] for each in moments} >= {"open", "os.rename"}
    for number, moment in enumerate(moments, 1):
        prepare.clear()
        done = prepare(where, number)
        assert (done.returncode, done.stderr) == (130, ""), (moment, done.stdout)
        prepare.check_whole(moment)
    assert prepare("worker", len(moments) + 1000).returncode == 0  # what was left does not harm the next one


def test_sigterm_ends_it_too(prepare: Prepare) -> None:
    done = prepare("compiler", 1, "SIGTERM")
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, "")
    prepare.check_whole("SIGTERM")


def test_a_page_that_is_being_built_leaves_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "belljar.cli", "browser", "build", "-o", str(tmp_path / "page")]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as building:
        assert building.stderr is not None
        assert building.stderr.readline() == "belljar: preparing Pyodide\n"
        building.terminate()
        assert building.stderr.read() in ("", "belljar: preparing the page's own modules\n")
    assert building.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
