"""Guest JavaScript of a page: QuickJS as WebAssembly, Node's library, and the memory of an engine that loaded it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Final

from belljar.browser.errors import BuildError
from belljar.engines.artefact_host import ArtefactError
from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner.js_build_host import node
from belljar.engines.owner.quickjs_package_host import library, sources
from belljar.engines.quickjs.sources_host import load_sources

_UNUSED: Final = ("internal/deps/amaro/",)
"""What of Node's library never runs here: TypeScript has a transformer of its own."""
_SECONDS: Final = 900


def add_javascript(page: Path) -> None:
    """Put the files of guest JavaScript into a page that is being built. BuildError."""
    place = page / "node"
    place.mkdir()
    try:
        engine, transformer = sources()
        code = {name: text for name, text in load_sources(library()).items() if not name.startswith(_UNUSED)}
        binary = node()
    except (EngineUnavailable, ArtefactError) as error:
        raise BuildError(str(error)) from None
    shutil.copyfile(engine.path, place / "quickjs.wasm")
    shutil.copyfile(transformer.path, place / "typescript.wasm")
    (place / "library.json").write_text(json.dumps(code, sort_keys=True))
    command = [str(binary), str(Path(__file__).parent / "page/image.mjs"), str(place)]
    done = subprocess.run(command, capture_output=True, timeout=_SECONDS)  # noqa: S603 - our own script
    if done.returncode:
        raise BuildError(f"QuickJS could not be started: {done.stderr.decode('utf-8', 'replace')[-2000:]}")
