"""pip over an index of files: what it resolves, checks, writes and says."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from belljar import ExecResult, Sandbox
from belljar.bin.pip.store import format_size
from tests.bin.pip.archives import INDEX, index, metadata, sdist, wheel

ROOT = Path(__file__).parents[3]
SITE = "/usr/local/lib/python3.15/site-packages"
FILES = index(
    {
        "alpha-1.0-py3-none-any.whl": wheel("alpha", "1.0", requires=("beta>=1,<3", "gamma; python_version < '3'")),
        "alpha-2.0-py3-none-any.whl": wheel("alpha", "2.0", requires=("beta>=1,<3",), extras={"more": ("delta",)}),
        "alpha-2.1rc1-py3-none-any.whl": wheel("alpha", "2.1rc1"),
        "beta-1.0-py3-none-any.whl": wheel("beta", "1.0"),
        "beta-2.0-py3-none-any.whl": wheel("beta", "2.0", requires=("delta",)),
        "beta-3.0-py3-none-any.whl": wheel("beta", "3.0"),
        "delta-1.0-py3-none-any.whl": wheel(
            "delta", "1.0", {"delta.py": "def main():\n    print('delta ran')\n"}, scripts="delta-run = delta:main"
        ),
        "binary-1.0-cp311-cp311-manylinux_2_17_x86_64.whl": wheel("binary", "1.0"),
        "yanked-1.0-py3-none-any.whl": wheel("yanked", "1.0"),
        "yanked-2.0-py3-none-any.whl": wheel("yanked", "2.0"),
        "newer-1.0-py3-none-any.whl": wheel("newer", "1.0"),
        "newer-2.0-py3-none-any.whl": wheel("newer", "2.0"),
        "pinner-1.0-py3-none-any.whl": wheel("pinner", "1.0", requires=("beta==1.0",)),
    },
    {
        "yanked-2.0-py3-none-any.whl": 'data-yanked="bad"',
        "newer-2.0-py3-none-any.whl": 'data-requires-python="&gt;=3.99"',
    },
)


@pytest.fixture(scope="module")
def template() -> Iterator[Sandbox]:
    with Sandbox(files=FILES, env={"PIP_INDEX_URL": INDEX}) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(template: Sandbox) -> Sandbox:
    """One sandbox for all, without what the test before installed, or left behind if it failed."""
    template.exec(f"shopt -s dotglob; rm -rf {SITE} /usr/local/bin/* /workspace/* /tmp/* ~/.cache ~/.config")
    return template


def pip(sandbox: Sandbox, arguments: str) -> ExecResult:
    return sandbox.exec(f"pip {arguments}", timeout=60)


def versions(sandbox: Sandbox) -> dict[str, str]:
    listed = pip(sandbox, "list -l --format freeze").stdout.split()
    return dict(line.split("==") for line in listed)


def test_what_is_needed_comes_along(sandbox: Sandbox) -> None:
    result = pip(sandbox, "install alpha")
    assert result.exit_code == 0, result.stderr
    assert versions(sandbox) == {"alpha": "2.0", "beta": "2.0", "delta": "1.0"}
    assert result.stdout.splitlines() == [
        "Collecting alpha",
        "  Processing /tmp/pip-{}/alpha-2.0-py3-none-any.whl ({})".format(
            result.stdout.split("/tmp/pip-")[1].split("/")[0],
            format_size(len(FILES["/srv/files/alpha-2.0-py3-none-any.whl"])),
        ),
        *result.stdout.splitlines()[2:-2],
        "Installing collected packages: delta, beta, alpha",
        "Successfully installed alpha-2.0 beta-2.0 delta-1.0",
    ]
    assert "Collecting beta<3,>=1 (from alpha)" in result.stdout
    assert sandbox.files.read(f"{SITE}/alpha/__init__.py") == "__version__ = '2.0'\n"
    assert sandbox.files.read(f"{SITE}/alpha-2.0.dist-info/INSTALLER") == "pip\n"
    assert sandbox.files.exists(f"{SITE}/alpha-2.0.dist-info/REQUESTED")
    assert not sandbox.files.exists(f"{SITE}/beta-2.0.dist-info/REQUESTED")
    assert not sandbox.exec("ls -d /tmp/pip-*").stdout
    again = pip(sandbox, "install alpha")
    assert again.stdout.splitlines()[0] == f"Requirement already satisfied: alpha in {SITE} (2.0)"


def test_versions_are_chosen_as_asked(sandbox: Sandbox) -> None:
    assert pip(sandbox, "install 'alpha<2' 'beta==1.0'").exit_code == 0
    assert versions(sandbox) == {"alpha": "1.0", "beta": "1.0"}
    assert pip(sandbox, "install -U alpha").exit_code == 0
    assert versions(sandbox) == {"alpha": "2.0", "beta": "1.0"}
    assert pip(sandbox, "install --pre -U alpha").exit_code == 0
    assert versions(sandbox)["alpha"] == "2.1rc1"
    assert pip(sandbox, "install yanked newer").exit_code == 0
    assert versions(sandbox)["yanked"] == "1.0"
    assert versions(sandbox)["newer"] == "1.0"
    assert pip(sandbox, "install yanked==2.0").exit_code == 0
    assert versions(sandbox)["yanked"] == "2.0"


def test_an_older_version_replaces_a_newer_where_another_needs_it(sandbox: Sandbox) -> None:
    assert pip(sandbox, "install beta").exit_code == 0
    assert versions(sandbox)["beta"] == "3.0"
    result = pip(sandbox, "install pinner")
    assert result.exit_code == 0, result.stderr
    assert versions(sandbox)["beta"] == "1.0"
    assert "Found existing installation: beta 3.0" in result.stdout
    assert not sandbox.files.exists(f"{SITE}/beta-3.0.dist-info")


def test_extras_and_constraints(sandbox: Sandbox) -> None:
    sandbox.files.write("/workspace/limits.txt", "beta<2  # not two\n")
    result = pip(sandbox, "install 'alpha[more]' -c limits.txt")
    assert result.exit_code == 0, result.stderr
    assert versions(sandbox) == {"alpha": "2.0", "beta": "1.0", "delta": "1.0"}


def test_no_deps_target_dry_run_quiet(sandbox: Sandbox) -> None:
    assert pip(sandbox, "install --no-deps -q alpha").stdout == ""
    assert versions(sandbox) == {"alpha": "2.0"}
    assert pip(sandbox, "install --dry-run beta").stdout.endswith("Would install beta-3.0\n")
    assert pip(sandbox, "install -t out delta").exit_code == 0
    assert sandbox.exec("ls out out/bin").stdout.split() == [
        "out:",
        "bin",
        "delta-1.0.dist-info",
        "delta.py",
        "out/bin:",
        "delta-run",
    ]
    assert versions(sandbox) == {"alpha": "2.0"}


def test_requirements_files(sandbox: Sandbox) -> None:
    sandbox.files.write("/workspace/more.txt", "delta\n")
    sandbox.files.write(
        "/workspace/requirements.txt",
        "# what is needed\nalpha == 1.0 ; python_version >= '3'\nbeta \\\n  == ${WHICH}\n\n-r more.txt\n"
        "never; sys_platform == 'win32'\n",
    )
    result = sandbox.exec("WHICH=2.0 pip install -r requirements.txt")
    assert result.exit_code == 0, result.stderr
    assert versions(sandbox) == {"alpha": "1.0", "beta": "2.0", "delta": "1.0"}
    assert "Ignoring never: markers 'sys_platform == \"win32\"' don't match your environment" in result.stdout
    missing = pip(sandbox, "install -r none.txt")
    assert missing.exit_code == 1
    assert (
        missing.stderr == "ERROR: Could not open requirements file: [Errno 2] No such file or directory: 'none.txt'\n"
    )


def test_hashes(sandbox: Sandbox) -> None:
    data = FILES["/srv/files/delta-1.0-py3-none-any.whl"]
    assert isinstance(data, bytes)
    good = hashlib.sha256(data).hexdigest()
    sandbox.files.write("/workspace/r.txt", f"delta==1.0 --hash=sha256:{good}\n")
    assert pip(sandbox, "install -r r.txt").exit_code == 0
    sandbox.exec(f"rm -rf {SITE}")
    sandbox.files.write("/workspace/r.txt", f"delta==1.0 \\\n    --hash=sha256:{'0' * 64}\n")
    wrong = pip(sandbox, "install -r r.txt")
    assert wrong.exit_code == 1
    assert wrong.stderr.startswith("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES")
    assert f"Got        {good}" in wrong.stderr
    assert versions(sandbox) == {}
    sandbox.files.write("/workspace/r.txt", f"beta==2.0 --hash=sha256:{'0' * 64}\n")
    assert "HASHES" in pip(sandbox, "install -r r.txt").stderr
    assert not sandbox.exec("ls -d /tmp/pip-*").stdout
    assert "HASHES" in pip(sandbox, "download -d wheels -r r.txt").stderr
    assert sandbox.exec("ls wheels").stdout == ""
    assert "Hashes are required" in pip(sandbox, "install --require-hashes delta==1.0").stderr


def test_a_download_that_fails_leaves_a_file_of_that_name(sandbox: Sandbox) -> None:
    name, page = "delta-1.0-py3-none-any.whl", sandbox.files.read("/srv/simple/delta/index.html")
    sandbox.files.write(f"/workspace/wheels/{name}", "mine")
    try:
        sandbox.files.write("/srv/simple/delta/index.html", page.replace("/files/", "/none/"))
        assert pip(sandbox, "download -d wheels delta").exit_code == 1
    finally:
        sandbox.files.write("/srv/simple/delta/index.html", page)
    assert sandbox.files.read(f"/workspace/wheels/{name}") == "mine"


def test_an_index_whose_file_is_not_what_it_says(sandbox: Sandbox) -> None:
    page = sandbox.files.read("/srv/simple/delta/index.html")
    try:
        sandbox.files.write("/srv/simple/delta/index.html", page.replace("#sha256=", "#sha256=00"))
        assert "Expected sha256" in pip(sandbox, "install delta").stderr
    finally:
        sandbox.files.write("/srv/simple/delta/index.html", page)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            "nothing",
            "ERROR: Could not find a version that satisfies the requirement nothing (from versions: none)\n"
            "ERROR: No matching distribution found for nothing\n",
        ),
        (
            "'beta>9'",
            "ERROR: Could not find a version that satisfies the requirement beta>9 (from versions: 1.0, 2.0, 3.0)\n"
            "ERROR: No matching distribution found for beta>9\n",
        ),
        (
            "binary",
            "ERROR: Could not find a version that satisfies the requirement binary (from versions: 1.0)\n"
            "ERROR: binary has compiled parts (binary-1.0-cp311-cp311-manylinux_2_17_x86_64.whl), and only pure-Python "
            "packages can be installed here.\nERROR: No matching distribution found for binary\n",
        ),
    ],
)
def test_what_can_not_be_found(sandbox: Sandbox, asked: str, said: str) -> None:
    result = pip(sandbox, f"install {asked}")
    assert (result.exit_code, result.stderr) == (1, said)


COMPILED = index(
    {
        "core-9.0-cp315-cp315-manylinux_2_17_x86_64.whl": wheel("core", "9.0"),
        "core-8.0-cp314-cp314-macosx_11_0_arm64.whl": wheel("core", "8.0"),
        **{f"model-2.{n}-py3-none-any.whl": wheel("model", f"2.{n}", requires=("core>=8",)) for n in range(30)},
        "model-1.9-py3-none-any.whl": wheel("model", "1.9"),
        "model-1.8-py3-none-any.whl": wheel("model", "1.8"),
        **{f"web-0.{n}-py3-none-any.whl": wheel("web", f"0.{n}", requires=("model>=2",)) for n in range(20, 60)},
        **{f"web-0.{n}-py3-none-any.whl": wheel("web", f"0.{n}", requires=("model>=1.8",)) for n in range(10, 20)},
        "aged-3.0-cp315-cp315-win_amd64.whl": wheel("aged", "3.0"),
        "aged-1.0-py3-none-any.whl": wheel("aged", "1.0"),
        "limits-1.0-py3-none-any.whl": wheel("limits", "1.0", requires=("model<2",)),
    }
)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            "web",
            "ERROR: core has compiled parts (core-9.0-cp315-cp315-manylinux_2_17_x86_64.whl), and only pure-Python "
            "packages can be installed here.\n    It is needed by model 2.29, which is needed by web 0.59.\n"
            "    These older versions are pure Python: pip install 'web==0.19' 'model==1.9'\n",
        ),
        (
            "model",
            "    It is needed by model 2.29.\n    These older versions are pure Python: pip install 'model==1.9'\n",
        ),
        ("aged", "    These older versions are pure Python: pip install 'aged==1.0'\n"),
        ("'model>=2'", "    These older versions are pure Python: pip install 'model==1.9'\n"),
    ],
)
def test_a_compiled_dependency_ends_it_at_once(asked: str, said: str) -> None:
    with Sandbox(files=COMPILED, env={"PIP_INDEX_URL": INDEX}) as sandbox:
        result = sandbox.exec(f"pip install {asked}")
        assert result.exit_code == 1
        assert said in result.stderr
        assert "No matching distribution found" in result.stderr.splitlines()[-1]
        assert result.stdout.count("Collecting model") <= 1, "it went back through the releases"
        advice = re.search(r"pip install ('.*)", result.stderr)
        assert advice is not None
        assert sandbox.exec(f"pip install -q {advice[1]}").exit_code == 0, "what is advised works"


def test_a_version_that_others_ask_for_is_found_beside_compiled_ones() -> None:
    with Sandbox(files=COMPILED, env={"PIP_INDEX_URL": INDEX}) as sandbox:
        result = sandbox.exec("pip install -q model limits && pip list -l --format freeze")
        assert result.stdout == "limits==1.0\nmodel==1.9\n"


def test_hundreds_of_archives_are_looked_into_with_few_open_files() -> None:
    many = {f"many-1.{n}-py3-none-any.whl": wheel("many", f"1.{n}", requires=("alpha>5",)) for n in range(300)}
    last = {"many-1.0-py3-none-any.whl": wheel("many", "1.0"), "alpha-1.0-py3-none-any.whl": wheel("alpha", "1.0")}
    with Sandbox(files=index({**many, **last}), env={"PIP_INDEX_URL": INDEX}) as sandbox:
        result = sandbox.exec("ulimit -n 64; pip install many")
        assert result.stdout.splitlines()[-1] == "Successfully installed many-1.0", result.stderr


def test_a_conflict(sandbox: Sandbox) -> None:
    result = pip(sandbox, "install pinner 'beta>=2'")
    assert result.exit_code == 1
    assert "because these package versions have conflicting dependencies." in result.stderr
    assert "    The user requested beta>=2\n" in result.stderr
    assert "    pinner 1.0 depends on beta==1.0\n" in result.stderr
    assert result.stderr.endswith("ERROR: ResolutionImpossible\n")
    assert versions(sandbox) == {}


def test_show_freeze_check_uninstall(sandbox: Sandbox) -> None:
    assert pip(sandbox, "install alpha").exit_code == 0
    shown = pip(sandbox, "show -f beta").stdout
    assert "Name: beta\nVersion: 2.0\nSummary: beta for tests\n" in shown
    assert f"Location: {SITE}\nRequires: delta\nRequired-by: alpha\nFiles:\n" in shown
    assert "  beta/__init__.py\n" in shown
    assert pip(sandbox, "freeze").stdout == "alpha==2.0\nbeta==2.0\ndelta==1.0\n"
    assert pip(sandbox, "list -l").stdout == "Package Version\n------- -------\nalpha   2.0\nbeta    2.0\ndelta   1.0\n"
    assert pip(sandbox, "check").stdout == "No broken requirements found.\n"
    assert pip(sandbox, "uninstall -y delta").stdout == (
        "Found existing installation: delta 1.0\nUninstalling delta-1.0:\n  Successfully uninstalled delta-1.0\n"
    )
    assert not sandbox.files.exists("/usr/local/bin/delta-run")
    assert not sandbox.files.exists(f"{SITE}/delta.py")
    broken = pip(sandbox, "check")
    assert (broken.exit_code, broken.stdout) == (1, "beta 2.0 requires delta, which is not installed.\n")
    assert sandbox.exec("echo n | pip uninstall beta").exit_code == 0
    assert "beta" in versions(sandbox)
    assert sandbox.exec("echo | pip uninstall beta").exit_code == 0
    assert "beta" not in versions(sandbox)
    assert pip(sandbox, "uninstall -y none").stderr == "WARNING: Skipping none as it is not installed.\n"
    none = pip(sandbox, "show none")
    assert (none.exit_code, none.stderr) == (1, "WARNING: Package(s) not found: none\n")


def test_uninstall_stays_inside(sandbox: Sandbox) -> None:
    """A RECORD is the guest's to write: what it names outside of the environment is left alone."""
    assert pip(sandbox, "install delta").exit_code == 0
    record = f"{SITE}/delta-1.0.dist-info/RECORD"
    sandbox.files.write("/workspace/precious", "x")
    sandbox.files.write(
        record, sandbox.files.read(record) + "../../../../../workspace/precious,,\n/workspace/precious,,\n"
    )
    assert pip(sandbox, "uninstall -y delta").exit_code == 0
    assert sandbox.files.exists("/workspace/precious")


def test_download(sandbox: Sandbox) -> None:
    result = pip(sandbox, "download -d wheels beta==2.0")
    assert result.exit_code == 0, result.stderr
    assert sandbox.exec("ls wheels").stdout.split() == ["beta-2.0-py3-none-any.whl", "delta-1.0-py3-none-any.whl"]
    assert pip(sandbox, "install --no-index --find-links wheels beta").exit_code == 0
    assert versions(sandbox) == {"beta": "2.0", "delta": "1.0"}


def test_entry_points_run_python(sandbox: Sandbox) -> None:
    assert pip(sandbox, "install delta").exit_code == 0
    script = sandbox.files.read("/usr/local/bin/delta-run")
    assert script.startswith("#!/usr/bin/python3\n")
    assert "from delta import main\n" in script
    assert sandbox.files.stat("/usr/local/bin/delta-run").mode == 0o755


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        (
            "evil-1.0-py3-none-any.whl",
            wheel("evil", "1.0", {"../../../../evil": "x"}),
            "outside of where it is installed",
        ),
        ("evil-1.0-py3-none-any.whl", wheel("evil", "1.0", {"/etc/evil": "x"}), "outside of where it is installed"),
        ("evil-1.0-py3-none-any.whl", wheel("evil", "1.0", {"evil-1.0.data/scripts/../../x": "x"}), "outside of where"),
        ("evil-1.0-py3-none-any.whl", wheel("evil", "1.0", {"evil-1.0.data/etc/x": "x"}), "no such scheme"),
        (
            "evil-1.0-py3-none-any.whl",
            wheel("evil", "1.0", {"evil.py": "x"}, record={"evil.py": "sha256=" + "A" * 43}),
            "not what its RECORD says",
        ),
        ("evil-1.0-py3-none-any.whl", wheel("evil", "1.0", {"evil.py": "x"}, record={"evil.py": ""}), "has no hash"),
        ("evil-1.0-py3-none-any.whl", wheel("evil", "1.0", unlisted={"more.py": "x"}), "more.py is not in its RECORD"),
        ("evil-1.0-py3-none-any.whl", wheel("good", "1.0"), "not its own .dist-info directory"),
        ("evil-1.0-py3-none-any.whl", b"PK\x05\x06" + bytes(18), ".dist-info directories"),
        ("evil-1.0-py3-none-any.whl", b"no zip", "is invalid"),
        ("evil-1.0-py3-none-any.whl", wheel("evil", "1.0", scripts="../x = a:b"), "bad entry point"),
        ("evil.whl", wheel("evil", "1.0"), "Invalid wheel filename"),
        ("evil-1.0-cp311-cp311-linux_x86_64.whl", wheel("evil", "1.0"), "is not a supported wheel on this platform"),
    ],
)
def test_a_bad_wheel_leaves_nothing(sandbox: Sandbox, name: str, data: bytes, said: str) -> None:
    sandbox.files.write(f"/workspace/{name}", data)
    before = sandbox.exec("find / -xdev -newer /srv -name '*evil*' -not -path '/workspace/*' 2> /dev/null").stdout
    result = pip(sandbox, f"install ./{name}")
    assert result.exit_code == 1
    assert said in result.stderr
    assert versions(sandbox) == {}
    assert (
        sandbox.exec("find / -xdev -newer /srv -name '*evil*' -not -path '/workspace/*' 2> /dev/null").stdout == before
    )


def _project(text: str) -> str:
    return dedent(text).lstrip()


SOURCES = {
    "setuptools": {
        "PKG-INFO": metadata("built", "1.0"),
        "setup.py": "from setuptools import setup\nsetup()\n",
        "src/built/__init__.py": "x = 1\n",
        "src/built/data.txt": "data\n",
        "src/built.egg-info/SOURCES.txt": "",
        "src/built.egg-info/top_level.txt": "built\n",
        "src/built.egg-info/requires.txt": "delta\n\n[more]\nbeta\n",
        "src/built.egg-info/entry_points.txt": "[console_scripts]\nbuilt = built:main\n",
    },
    "hatchling": {
        "PKG-INFO": metadata("built", "1.0", ("delta",)),
        "pyproject.toml": _project(
            """
            [build-system]
            requires = ["hatchling"]
            build-backend = "hatchling.build"
            [project]
            name = "built"
            dynamic = ["version"]
            scripts = {built = "built:main"}
            """
        ),
        "src/built/__init__.py": "x = 1\n",
        "src/built/data.txt": "data\n",
    },
    "flit": {
        "PKG-INFO": metadata("built", "1.0", ("delta",)),
        "pyproject.toml": _project(
            """
            [build-system]
            requires = ["flit_core"]
            build-backend = "flit_core.buildapi"
            [project]
            name = "built"
            version = "1.0"
            scripts = {built = "built:main"}
            """
        ),
        "built/__init__.py": "x = 1\n",
        "built/data.txt": "data\n",
    },
    "poetry": {
        "PKG-INFO": metadata("built", "1.0", ("delta",)),
        "pyproject.toml": _project(
            """
            [build-system]
            requires = ["poetry-core"]
            build-backend = "poetry.core.masonry.api"
            [tool.poetry]
            name = "built"
            version = "1.0"
            packages = [{include = "built", from = "lib"}]
            [tool.poetry.scripts]
            built = "built:main"
            """
        ),
        "lib/built/__init__.py": "x = 1\n",
        "lib/built/data.txt": "data\n",
    },
}


@pytest.mark.parametrize("backend", sorted(SOURCES))
def test_a_source_archive_of_plain_python(sandbox: Sandbox, backend: str) -> None:
    sandbox.files.write("/workspace/built-1.0.tar.gz", sdist("built-1.0", SOURCES[backend]))
    result = pip(sandbox, "install ./built-1.0.tar.gz")
    assert result.exit_code == 0, result.stderr
    assert versions(sandbox) == {"built": "1.0", "delta": "1.0"}
    assert sandbox.files.read(f"{SITE}/built/data.txt") == "data\n"
    assert "from built import main" in sandbox.files.read("/usr/local/bin/built")
    assert pip(sandbox, "uninstall -y built").exit_code == 0
    assert not sandbox.files.exists(f"{SITE}/built")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"pyproject.toml": '[build-system]\nrequires=["maturin"]\nbuild-backend="maturin"\n'},
            "build backend 'maturin'",
        ),
        ({"pyproject.toml": '[build-system]\nrequires=["setuptools", "Cython>=3"]\n'}, "needs Cython>=3"),
        (
            {"setup.py": "setup(name='built', ext_modules=[Extension('a', ['a.c'])])", "built.py": ""},
            "extension modules",
        ),
        ({"setup.py": "setup(**compute())"}, "without running its code"),
        ({"pyproject.toml": "x = ["}, "pyproject.toml can't be read"),
    ],
)
def test_a_source_that_needs_more_is_refused(sandbox: Sandbox, files: dict[str, str], said: str) -> None:
    sandbox.files.write("/workspace/built-1.0.tar.gz", sdist("built-1.0", files))
    result = pip(sandbox, "install ./built-1.0.tar.gz")
    assert result.exit_code == 1
    assert said in result.stderr
    assert "Only pure-Python packages can be installed here." in result.stderr


def test_a_project_directory(sandbox: Sandbox) -> None:
    sandbox.files.write(
        "/workspace/app/pyproject.toml",
        '[project]\nname = "my-app"\nversion = "0.1"\ndependencies = ["delta"]\nscripts = {my-app = "my_app:main"}\n',
    )
    sandbox.files.write("/workspace/app/src/my_app/__init__.py", "def main(): pass\n")
    assert pip(sandbox, "install ./app").exit_code == 0
    assert versions(sandbox) == {"my-app": "0.1", "delta": "1.0"}
    assert sandbox.files.exists(f"{SITE}/my_app/__init__.py")
    assert pip(sandbox, "freeze").stdout == "delta==1.0\nmy-app @ file:///workspace/app\n"
    assert "my-app==0.1\n" in pip(sandbox, "list --format freeze").stdout
    pip(sandbox, "uninstall -y my-app")
    editable = sandbox.exec("cd app && pip install -e .")
    assert editable.exit_code == 0, editable.stderr
    assert sandbox.files.read(f"{SITE}/__editable__.my_app-0.1.pth") == "/workspace/app/src\n"
    assert "-e /workspace/app\n" in pip(sandbox, "freeze").stdout


def test_the_network_is_closed_unless_granted(sandbox: Sandbox) -> None:
    result = pip(sandbox, "install -i https://pypi.org/simple httpx")
    assert result.exit_code == 1
    assert "the network is closed to pypi.org" in result.stderr
    assert "Network.allow('pypi.org', 'files.pythonhosted.org')" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("install", "You must give at least one requirement to install"),
        ("install 'a b c'", "Invalid requirement: 'a b c'"),
        ("install ./none", "File './none' does not exist"),
        ("install git+https://example.com/x.git", "version control is not supported here"),
        ("frobnicate", 'unknown command "frobnicate"'),
        ("install --frobnicate", "frobnicate"),
    ],
)
def test_a_wrong_command_line(sandbox: Sandbox, arguments: str, said: str) -> None:
    result = pip(sandbox, arguments)
    assert result.exit_code in (1, 2)
    assert said in result.stderr


def test_version_and_help(sandbox: Sandbox) -> None:
    assert pip(sandbox, "--version").stdout == f"pip 26.0 from {SITE}/pip (python 3.15)\n"
    assert "install NAME" in pip(sandbox, "--help").stdout
    assert "--index-url" in pip(sandbox, "install --help").stdout
    assert sandbox.exec("pip3 --version").exit_code == 0


def test_without_its_packages_pip_says_what_to_install() -> None:
    """In a process of its own, where they can't be imported."""
    code = (
        "import sys; sys.modules |= dict.fromkeys(['packaging', 'resolvelib', 'dulwich']);"
        "from belljar.bin._kit.discovery import preload; preload();"
        "from tests.adapter import run; print(run('pip install x', {}, {'/tmp/w/x': b''}, b''))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert "pip install -e '.[python]'" in done.stdout, done.stderr
    assert "127" in done.stdout


def test_pip_is_there_and_stays_what_it_is(sandbox: Sandbox) -> None:
    """`pip install --upgrade pip` is how many scripts begin: another pip would find nothing to work with here."""
    for arguments in ("install --upgrade pip", "install -U --force-reinstall pip", "install 'pip>=21' beta==3.0"):
        done = pip(sandbox, arguments)
        assert "Requirement already satisfied: pip" in done.stdout, done
        assert done.exit_code == 0
    assert versions(sandbox) == {"beta": "3.0"}
    assert "Version: 26.0\n" in pip(sandbox, "show pip").stdout
    assert pip(sandbox, "freeze").stdout == "beta==3.0\n"
    assert "Not uninstalling pip" in pip(sandbox, "uninstall -y pip").stdout
    refused = pip(sandbox, "install pip==1.0")
    assert (refused.exit_code, "No matching distribution found for pip==1.0" in refused.stderr) == (1, True)


def test_packages_that_come_with_python_give_way_to_installed_ones() -> None:
    files = index({"requests-99.0-py3-none-any.whl": wheel("requests", "99.0")})
    with Sandbox(files=files, env={"PIP_INDEX_URL": INDEX}) as sandbox:
        shown = "python3 -c 'import requests; print(requests.__version__)'"
        assert sandbox.exec(shown).stdout.startswith("2.")
        assert "Requirement already satisfied: requests in" in sandbox.exec("pip install requests").stdout
        assert sandbox.exec("python3 -m venv v && v/bin/pip install -q requests").exit_code == 0
        assert sandbox.exec(shown.replace("python3", "v/bin/python")).stdout == "99.0\n", "an environment is apart"
        assert sandbox.exec("pip install -qU requests").exit_code == 0
        assert sandbox.exec(shown).stdout == "99.0\n"


def test_pytest_and_venv_are_there_offline() -> None:
    with Sandbox() as sandbox:
        sandbox.files.write(
            "test_sums.py", "def test_good():\n    assert 1 + 1 == 2\n\ndef test_bad():\n    assert [1] == [2]\n"
        )
        result = sandbox.exec("pytest -q -p no:cacheprovider; python3 -m pytest -q -k good")
        assert result.exit_code == 0
        assert "1 failed, 1 passed" in result.stdout
        assert "E       assert [1] == [2]" in result.stdout
        assert result.stderr == ""
        made = sandbox.exec(
            "python3 -c 'import venv; venv.create(\"v\", with_pip=True)' && . v/bin/activate && which python pip"
        )
        assert made.stdout == "/workspace/v/bin/python\n/workspace/v/bin/pip\n"


def test_index_config_cache_hash(sandbox: Sandbox) -> None:
    assert pip(sandbox, "index versions beta").stdout == "beta (3.0)\nAvailable versions: 3.0, 2.0, 1.0\n"
    pip(sandbox, "install -q beta==1.0")
    assert pip(sandbox, "index versions beta").stdout.endswith("  INSTALLED: 1.0\n  LATEST:    3.0\n")
    assert "beta    1.0     3.0    wheel" in pip(sandbox, "list --outdated").stdout
    assert pip(sandbox, "index versions nothing").exit_code == 1
    done = sandbox.exec(
        "unset PIP_INDEX_URL; export HOME=/tmp/h; pip config set global.index-url file:///srv/simple;"
        "pip config get global.index-url; pip config list; pip install -q delta && delta-run;"
        "pip config unset global.index-url; pip config list; pip config get global.index-url"
    )
    assert done.stdout == (
        "Writing to /tmp/h/.config/pip/pip.conf\nfile:///srv/simple\nglobal.index-url='file:///srv/simple'\ndelta ran\n"
        "Writing to /tmp/h/.config/pip/pip.conf\n"
    )
    assert done.stderr == "ERROR: No such key - global.index-url\n"
    assert pip(sandbox, "cache dir").stdout == "/home/agent/.cache/pip\n"
    assert pip(sandbox, "cache purge").stdout == "Files removed: 0 (0 bytes)\n"
    hashed = sandbox.exec("printf abc >f; pip hash f").stdout
    assert hashed == f"f:\n--hash=sha256:{hashlib.sha256(b'abc').hexdigest()}\n"


def test_wheels_are_made_of_directories_and_indexes(sandbox: Sandbox) -> None:
    sandbox.files.write(
        "p/pyproject.toml", '[project]\nname = "made-here"\nversion = "0.3"\ndependencies = ["delta"]\n'
    )
    sandbox.files.write("p/made_here/__init__.py", "x = 5\n")
    result = pip(sandbox, "wheel -q -w out ./p")
    assert result.exit_code == 0, result.stderr
    assert sandbox.exec("ls out").stdout == "delta-1.0-py3-none-any.whl\nmade_here-0.3-py3-none-any.whl\n"
    installed = sandbox.exec(
        "pip install -q --no-index -f out made-here && python3 -c 'import made_here; print(made_here.x)'"
    )
    assert installed.stdout == "5\n", installed.stderr
