from pathlib import Path

root = Path("project")
for name in ("src/app/__init__.py", "src/app/main.py", "tests/test_main.py", "README.md", "src/data/a.txt"):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# {name}\n")
for path in sorted(root.rglob("*")):
    depth = len(path.relative_to(root).parts) - 1
    print("  " * depth + path.name + ("/" if path.is_dir() else f" ({path.stat().st_size})"))
print(sorted(p.as_posix() for p in root.glob("**/*.py")))
moved = (root / "README.md").rename(root / "README.txt")
print(moved.suffix, moved.stem, moved.with_suffix(".rst").name, moved.parent.name)
print((root / "README.md").exists(), Path("a/../b").as_posix(), Path("/x/y").is_relative_to("/x"))
link = root / "link"
link.symlink_to("src")
print(link.is_symlink(), link.readlink(), (link / "app").is_dir())
