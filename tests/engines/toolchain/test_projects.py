"""Real projects of others are built and tested in a virtual sandbox, from their release archives as Debian has them."""

from __future__ import annotations

import os

import pytest

from belljar import Limits, Sandbox
from tests.debian import download

pytestmark = pytest.mark.slow

PROJECTS = {
    # name: (place in Debian's pool, its digest, what to run, what its output ends with)
    "cjson": (
        "c/cjson/cjson_1.7.15.orig.tar.gz",
        "5308fd4bd90cef7aa060558514de6a1a4a0819974a26e6ed13973c5f624c24b2",
        "make static test | tail -3",
        '{\n\t"number":\tnull\n}\n',
    ),
    "zlib": (
        "z/zlib/zlib_1.2.13.dfsg.orig.tar.bz2",
        "71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1",
        "./configure --static && make && make test",
        "\t\t*** zlib 64-bit test OK ***\n",
    ),
    "bzip2": (
        "b/bzip2/bzip2_1.0.8.orig.tar.gz",
        "ab5a03176ee106d3f0fa90e381da478ddae405918153cca248e682cd0c4a2269",
        "make && make check && echo checked",
        "checked\n",
    ),
    "lua": (
        "l/lua5.4/lua5.4_5.4.4.orig.tar.gz",
        "164c7849653b80ae67bec4b7473b884bf5cc8d2dca05653475ec2ed27b9ebf61",
        'cd src && make generic && echo \'print(select("#", ...), pcall(error, "x"))\' > t.lua && '
        "./luac -o t.out t.lua && ./lua t.out a b c",
        "3\tfalse\tx\n",
    ),
    "mawk": (
        "m/mawk/mawk_1.3.4.20200120.orig.tar.gz",
        "7fd4cd1e1fae9290fe089171181bbc6291dfd9bca939ca804f0ddb851c8b8237",
        "./configure && make && make check",
        "results consistent: ignoring floating exceptions\n",
    ),
    "hello": (
        "h/hello/hello_2.10.orig.tar.gz",
        "31e066137a962676e89f69d1b65382de95a7ef7d914b8cb956f41ea72e0f516b",
        "./configure && make && make check && ./hello",
        "Hello, world!\n",
    ),
}
SAMPLE = ("cjson",)


@pytest.mark.parametrize("name", PROJECTS if os.environ.get("BELLJAR_WHOLE") else SAMPLE)
def test_a_project_builds_and_passes_its_tests(name: str) -> None:
    place, digest, script, ending = PROJECTS[name]
    archive = download(place, digest)
    with Sandbox(files={"/tmp/source": archive}, limits=Limits(cpu_seconds=3000, wall_seconds=3000)) as sandbox:
        done = sandbox.exec(f"tar xf /tmp/source && cd */ && {{ {script}; }}", timeout=3000)
        assert done.stdout.endswith(ending), done.stdout[-2000:] + done.stderr[-2000:]
        assert done.exit_code == 0
