"""Package managers with compiled code, on the native tier: real pip and npm, from mirrors that the test serves."""

from __future__ import annotations

import pytest

from belljar import Network, Sandbox
from tests.bin.pip.archives import sdist
from tests.engines.js.tarballs import tarball
from tests.native.conftest import needs_native
from tests.net.servers import PackageIndex, Registry

pytestmark = [needs_native, pytest.mark.slow]
AT = "127.0.0.7"

EXTENSION = r"""
/* An extension module by the stable ABI, without its headers. */
#include <stddef.h>
typedef struct object object;
extern object *PyModule_Create2(void *, int);
extern object *PyLong_FromLong(long);
static object *seven(object *self, object *none) { (void)self, (void)none; return PyLong_FromLong(7); }
static struct { const char *name; object *(*call)(object *, object *); int flags; const char *doc; } methods[] = {
    {"seven", seven, 4, NULL}, {NULL, NULL, 0, NULL}};
static struct {
    size_t references; void *type; void *init; ptrdiff_t index; void *copy;
    const char *name, *doc; ptrdiff_t size; void *methods, *slots, *traverse, *clear, *release;
} module = {.references = 1, .name = "built", .size = -1, .methods = methods};
object *PyInit_built(void) { return PyModule_Create2(&module, 3); }
"""
BACKEND = r"""
import pathlib, subprocess, sysconfig, zipfile

def build_wheel(directory, settings=None, metadata=None):
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", "built.abi3.so", "built.c"], check=True)
    tag = "cp38-abi3-" + sysconfig.get_platform().replace("-", "_")
    info = "built-1.0.dist-info/"
    with zipfile.ZipFile(pathlib.Path(directory, f"built-1.0-{tag}.whl"), "w") as wheel:
        wheel.write("built.abi3.so")
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: built\nVersion: 1.0\n")
        wheel.writestr(info + "WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n")
        wheel.writestr(info + "RECORD", "")
    return f"built-1.0-{tag}.whl"
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "built"
version = "1.0"
"""
ADDON = r"""
/* An addon by Node-API, without its headers. */
typedef struct env *env; typedef struct value *value;
extern int napi_create_int32(env, int, value *), napi_set_named_property(env, value, const char *, value);
value napi_register_module_v1(env here, value exports) {
    value seven;
    napi_create_int32(here, 7, &seven);
    napi_set_named_property(here, exports, "seven", seven);
    return exports;
}
"""


def run(sandbox: Sandbox, script: str) -> str:
    result = sandbox.exec(script, timeout=300)
    assert result.exit_code == 0, (result.stdout[-2000:], result.stderr[-2000:])
    return result.stdout


def test_pip_installs_compiled_wheels_and_compiles() -> None:
    with PackageIndex(address=AT) as index:
        index.compiled("psutil")
        about = "Metadata-Version: 2.1\nName: built\nVersion: 1.0\n"
        files = {"PKG-INFO": about, "pyproject.toml": PROJECT, "backend.py": BACKEND, "built.c": EXTENSION}
        index.add("built", "built-1.0.tar.gz", sdist("built-1.0", files))
        network = Network.allow(f"pypi.test:{index.port}", hosts={"pypi.test": AT})
        with Sandbox(tier="native", network=network) as sandbox:
            source = f"-i http://pypi.test:{index.port}/simple/ --trusted-host pypi.test --no-cache-dir -q"
            run(sandbox, f"python3 -m pip install {source} --target libraries psutil built")
            assert run(sandbox, "find libraries -name '*.so' | wc -l") == "2\n"
            use = "import os, psutil, built; print(built.seven(), psutil.Process().pid == os.getpid())"
            assert run(sandbox, f"PYTHONPATH=libraries python3 -c '{use}'") == "7 True\n"


def test_npm_installs_native_modules_and_compiles() -> None:
    with Registry(address=AT) as registry:
        registry.address = "npm.test"  # in the addresses of tarballs
        gyp = {"bin": {"node-gyp-build": "./bin.js", "node-gyp-build-test": "./build-test.js"}}
        registry.publish("node-gyp-build", "4.8.4", manifest=gyp, data=tarball("node-gyp-build-4.8.4"))
        prebuilt = {"scripts": {"install": "node-gyp-build"}, "dependencies": {"node-gyp-build": "^4.3.0"}}
        registry.publish("bufferutil", "4.0.9", manifest=prebuilt, data=tarball("bufferutil-4.0.9"))
        compiles = "gcc -shared -fPIC -O2 -Wall -Werror -o addon.node addon.c"
        registry.publish(
            "compiled", "1.0.0", {"index.js": "module.exports = require('./addon.node')\n", "addon.c": ADDON},
            manifest={"scripts": {"install": compiles}},
        )  # fmt: skip
        network = Network.allow(f"npm.test:{registry.port}", hosts={"npm.test": AT})
        with Sandbox(tier="native", network=network) as sandbox:
            source = f"--registry http://npm.test:{registry.port}/ --no-audit --no-fund --cache /tmp/c --loglevel=error"
            run(sandbox, f"echo '{{}}' > package.json && npm install {source} bufferutil compiled")
            mask = "const b = Buffer.from('abcd'); require('bufferutil').mask(b, Buffer.from([1, 2, 3, 4]), b, 0, 4)"
            use = f"{mask}; console.log(require('compiled').seven, b.toString('hex'))"
            assert run(sandbox, f'node -e "{use}"') == "7 60606060\n"
            loads = "require('node-gyp-build').resolve('node_modules/bufferutil')"
            assert run(sandbox, f'node -p "{loads}"').endswith(".node\n"), "the one in C, not its stand-in"
