"""The import fence: `pyproject.toml` names the layers, and an import that goes up breaks the contract."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/belljar"

PACKAGES = [
    *["abi", "kernel", "regex", "lockdown", "net", "store", "image", "packages", "shell", "bin", "engines"],
    *[
        "forking",
        "owner",
        "zygote",
        "worker",
        "vm",
        "native",
        "api",
        "cli",
        "integrations",
        "server",
        "cluster",
        "harness",
        "browser",
    ],
]

ALLOWED = [
    ("cli", "api"),
    ("cli", "server"),
    ("integrations", "api"),
    ("api", "owner"),
    ("owner", "forking"),
    ("zygote", "worker"),
    ("worker", "engines"),
    ("engines", "bin"),
    ("bin", "shell"),
    ("bin", "regex"),
    ("shell", "kernel"),
    ("shell", "regex"),
    ("net", "kernel"),
    ("store", "abi"),
    ("kernel", "abi"),
    ("regex", "abi"),
]

UPWARD = [
    ("api", "cli"),
    ("worker", "api"),
    ("worker", "owner"),
    ("zygote", "owner"),
    ("owner", "api"),
    ("worker", "zygote"),
    ("forking", "net"),
    ("engines", "worker"),
    ("bin", "engines"),
    ("shell", "bin"),
    ("kernel", "shell"),
    ("kernel", "net"),
    ("kernel", "regex"),
    ("regex", "kernel"),
    ("net", "shell"),
    ("net", "regex"),
    ("store", "image"),
    ("abi", "kernel"),
]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """The real linter with the real contracts, on the package `belljar` found in `folder`."""
    program = str(Path(sys.executable).with_name("lint-imports"))
    command = [program, "--config", str(ROOT / "pyproject.toml"), "--no-cache", "--no-logo"]
    environment = os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "200"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def named_in_contracts() -> set[str]:
    """Packages that contracts name without parentheses: they must exist."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    keys = ("ancestors", "source_modules", "forbidden_modules")
    return {name for contract in contracts for key in keys for name in contract.get(key, [])}


def build(folder: Path, packages: list[str], imports: list[tuple[str, str]]) -> None:
    """An empty belljar with one module per import."""
    for package in packages:
        (folder / "belljar" / package).mkdir(parents=True, exist_ok=True)
        (folder / "belljar" / package / "__init__.py").touch()
    (folder / "belljar" / "__init__.py").touch()
    for name in named_in_contracts():
        place = folder.joinpath(*name.split("."))
        place.mkdir(parents=True, exist_ok=True)
        for package_folder in (place, place.parent):
            (package_folder / "__init__.py").touch()
    for importer, imported in imports:
        module = folder / "belljar" / importer / f"uses_{imported}.py"
        module.write_text(f"import belljar.{imported}\n")


def copy_tree(copy: Path) -> None:
    """Without what other processes make there while it is copied."""
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "static"))


def test_downward_imports_pass(tmp_path: Path) -> None:
    build(tmp_path, PACKAGES, ALLOWED)
    run = lint_imports(tmp_path)
    assert run.returncode == 0, run.stdout


def test_every_upward_import_is_found(tmp_path: Path) -> None:
    build(tmp_path, PACKAGES, UPWARD)
    run = lint_imports(tmp_path)
    assert run.returncode == 1
    missed = [
        (importer, imported)
        for importer, imported in UPWARD
        if f"belljar.{importer}.uses_{imported} -> belljar.{imported}" not in run.stdout
    ]
    assert missed == []


def test_packages_that_do_not_exist_yet_do_not_matter(tmp_path: Path) -> None:
    build(tmp_path, ["abi", "kernel"], [("kernel", "abi")])
    assert lint_imports(tmp_path).returncode == 0


def test_a_package_without_a_place_is_found(tmp_path: Path) -> None:
    build(tmp_path, [*PACKAGES, "helpers"], [])
    run = lint_imports(tmp_path)
    assert run.returncode == 1
    assert "helpers" in run.stdout


def test_a_copy_of_the_tree_with_one_upward_import_breaks(tmp_path: Path) -> None:
    copy_tree(tmp_path / "belljar")
    (tmp_path / "belljar/abi/upward.py").write_text("import belljar.kernel\n")
    run = lint_imports(tmp_path)
    assert run.returncode == 1
    assert "belljar.abi.upward -> belljar.kernel" in run.stdout


def test_the_tree_passes() -> None:
    run = lint_imports(SOURCE.parent)
    assert run.returncode == 0, run.stdout


def folders_the_linter_cannot_see(package: Path) -> list[Path]:
    """Folders with modules but no `__init__.py`, which import-linter skips in silence."""
    folders = {path.parent for path in package.rglob("*.py")}
    return sorted(folder for folder in folders if not (folder / "__init__.py").exists())


def test_folders_without_init_are_found(tmp_path: Path) -> None:
    build(tmp_path, ["abi"], [])
    hidden = tmp_path / "belljar/abi/hidden"
    hidden.mkdir()
    (hidden / "module.py").touch()
    assert folders_the_linter_cannot_see(tmp_path / "belljar") == [hidden]


def test_every_folder_of_the_tree_is_a_package() -> None:
    assert folders_the_linter_cannot_see(SOURCE) == []


def test_a_worker_that_imports_the_broker_is_found(tmp_path: Path) -> None:
    copy_tree(tmp_path / "belljar")
    (tmp_path / "belljar/net/guest/across.py").write_text("import belljar.net.broker.gate_host\n")
    (tmp_path / "belljar/worker/across.py").write_text("import belljar.net.broker.gate_host\n")
    run = lint_imports(tmp_path)
    assert run.returncode == 1
    assert "belljar.net.guest.across -> belljar.net.broker.gate_host" in run.stdout
    assert "belljar.worker.across -> belljar.net.broker.gate_host" in run.stdout


ACROSS = [
    ("worker", "owner.handle_host"),
    ("zygote", "api.core"),
    ("engines.worker", "engines.owner.template_host"),
    ("engines.python", "forking.owner.client_host"),
    ("forking.server", "forking.owner.client_host"),
    ("api", "worker.session"),
    ("engines.owner", "engines.worker.programs"),
    ("forking.owner", "forking.server.server_host"),
    ("engines.wasm", "engines.worker.wasm"),
    ("engines.worker", "engines.calls.client_host"),
]


def test_an_import_from_another_process_is_found(tmp_path: Path) -> None:
    copy_tree(tmp_path / "belljar")
    for number, (importer, imported) in enumerate(ACROSS):
        module = tmp_path.joinpath("belljar", *importer.split("."), f"across{number}.py")
        module.write_text(f"import belljar.{imported}\n")
    run = lint_imports(tmp_path)
    assert run.returncode == 1
    missed = [
        (importer, imported)
        for number, (importer, imported) in enumerate(ACROSS)
        if f"belljar.{importer}.across{number} -> belljar.{imported}" not in run.stdout
    ]
    assert missed == []
