"""The JavaScript that runs in QuickJS before a guest's: Node's library and ours."""

from __future__ import annotations

import json
from pathlib import Path

from belljar.engines.artefact_host import open_checked
from belljar.engines.wire.calls import CALLS


def load_sources(library: Path) -> dict[str, str]:
    """Node's library and ours: this engine's own files, and those of engines/js that it has none of."""
    with open_checked(library) as name:
        sources: dict[str, str] = json.loads(Path(name).read_bytes())
    here = Path(__file__).parent
    for runtime in (here.parent / "js" / "runtime", here / "runtime"):
        for file in runtime.rglob("*.js"):
            sources[f"belljar/{file.relative_to(runtime).with_suffix('').as_posix()}"] = file.read_text()
    table = {name: list(call) for name, call in CALLS.items()}
    sources["belljar/call_table"] = f"module.exports = {json.dumps(table)}"
    return sources
