"""The host-contact fence: only `*_host.py` files touch the host, and no file runs data as code."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.check_host import check_package, check_source

ROOT = Path(__file__).parents[2]

HOST_CONTACT = [
    "import os",
    "import os.path",
    "import os as system",
    "from os import environ",
    "from os import O_RDONLY, getcwd",
    "from os import path",
    "from os import *",
    "from os.path import join",
    "from posixpath import exists",
    "import socket",
    "from socket import AF_INET",
    "import subprocess",
    "import ctypes.util",
    "import threading",
    "from concurrent.futures import ThreadPoolExecutor",
    "import multiprocessing",
    "import asyncio",
    "import signal",
    "import selectors",
    "import select",
    "import fcntl",
    "import termios",
    "import pty",
    "import shutil",
    "import tempfile",
    "import sqlite3",
    "import secrets",
    "import wasmtime",
    "from pathlib import Path",
    "import pathlib\npathlib.Path('/etc')",
    "from urllib import request",
    "import http.client",
    "import importlib.resources",
    "from importlib import metadata",
    "import io\nio.open('/etc/passwd')",
    "from io import FileIO",
    "import gzip\ngzip.open('/tmp/a.gz')",
    "import tarfile\ntarfile.open('/tmp/a.tar')",
    "data = open('/etc/passwd')",
    "def read(open=open): return open('/etc/passwd')",
    "class File:\n    def open(self): return open('/etc/passwd')",
    "name = input()",
    "import time\ntime.monotonic()",
    "import time\nclock = time.time",
    "import time as t\nt.sleep(1)",
    "from time import sleep",
    "import time\ntime.gmtime()",
    "from time import strftime\nstrftime('%Y')",
    "import datetime\ndatetime.datetime.now()",
    "from datetime import datetime as dt\nfactory = dt.now",
    "from datetime import date\ndate.today()",
    "from datetime import datetime\ndatetime.fromtimestamp(0)",
    "from zoneinfo import ZoneInfo\nZoneInfo('Europe/Berlin')",
    "import random\nrandom.random()",
    "from random import SystemRandom",
    "import random\nrandom.Random()",
    "import uuid\nuuid.uuid4()",
    "import sys\nsys.stdout.write('x')",
    "import sys\nsys.modules['os']",
    "def late():\n    import socket",
    "if TYPE_CHECKING:\n    import subprocess",
]

DATA_AS_CODE = [
    "import pickle",
    "from pickle import loads",
    "import marshal",
    "import shelve",
    "import builtins",
    "import runpy",
    "import importlib\nimportlib.import_module('os')",
    "from importlib import import_module",
    "import importlib.util",
    "import pkgutil",
    "eval('1')",
    "exec('x = 1')",
    "compile('1', '', 'eval')",
    "__import__('os')",
    "run = eval",
    "class Box:\n    def exec(self): exec('x')",
]

PURE = [
    "from os import O_CREAT, SEEK_SET, PathLike",
    "from posixpath import normpath",
    "import errno, stat, sys\nsys.maxsize",
    "from pathlib import PurePosixPath",
    "import io\nio.BytesIO(b'')",
    "import tarfile, gzip\ntarfile.open(fileobj=f)\ngzip.GzipFile(fileobj=f)",
    "import time\ntime.strftime('%Y', time.gmtime(0))",
    "from datetime import UTC, datetime\ndatetime.fromtimestamp(0, UTC)",
    "from zoneinfo import ZoneInfo\nzone: ZoneInfo = ZoneInfo.from_file(data)",
    "import random\nrandom.Random(7).random()",
    "import uuid\nuuid.UUID(int=1)",
    "import re\nre.compile('a')",
    "import http, urllib.parse",
    "process.open('/f')\nsandbox.exec('ls')",
    "class Server:\n    def open(self, node): return self.open(node)",
    "def eval(text): return text\ndef again(text): return eval(text)",
    "def feed(input): return [input for _ in input]",
    "def late():\n    open = 1\n    return open",
    "from belljar.kernel import signal\nsignal.send",
]


def run_checker(package: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools/check_host.py"), str(package)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("source", HOST_CONTACT)
def test_host_contact_is_found(source: str) -> None:
    assert check_source(source, "kernel/pipe.py")


@pytest.mark.parametrize("source", HOST_CONTACT)
def test_host_files_may_touch_the_host(source: str) -> None:
    assert check_source(source, "kernel/pipe_host.py") == []


@pytest.mark.parametrize("source", DATA_AS_CODE)
@pytest.mark.parametrize("path", ["kernel/pipe.py", "kernel/pipe_host.py", "api/sandbox.py"])
def test_data_as_code_is_found_everywhere(source: str, path: str) -> None:
    assert check_source(source, path)


@pytest.mark.parametrize("source", PURE)
def test_pure_code_passes(source: str) -> None:
    assert check_source(source, "kernel/pipe.py") == []


def test_only_the_discovery_module_imports_by_name() -> None:
    source = "import importlib, pkgutil\nimportlib.import_module('belljar.bin.wc')"
    assert check_source(source, "bin/_kit/discovery.py") == []
    assert check_source(source, "bin/wc.py")


def test_asyncio_is_free_only_above_the_worker() -> None:
    assert check_source("import asyncio", "api/sandbox.py") == []
    assert check_source("import asyncio", "worker/session.py")


def test_a_finding_says_where_what_and_what_to_do(tmp_path: Path) -> None:
    bad = tmp_path / "kernel" / "pipe.py"
    bad.parent.mkdir()
    bad.write_text('"""Pipes."""\n\nimport socket\n')
    (tmp_path / "kernel" / "pipe_host.py").write_text("import socket\n")
    (tmp_path / "kernel" / "torn.py").write_text("def (\n")
    run = run_checker(tmp_path)
    assert run.returncode == 1
    first, second = run.stdout.splitlines()
    assert first.startswith(f"{bad}:3: imports `socket`: host contact: move it to a *_host.py file")
    assert second.startswith(f"{bad.parent}/torn.py:1: is not Python")


def test_a_missing_package_is_not_a_pass(tmp_path: Path) -> None:
    assert run_checker(tmp_path / "nowhere").returncode == 2


@pytest.mark.battery
def test_the_tree_passes() -> None:
    assert check_package(ROOT / "src/belljar") == []
