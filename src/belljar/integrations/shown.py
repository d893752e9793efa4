"""An interpreter's run as text for a model."""

from __future__ import annotations

import json
from typing import Any

from belljar.api.runs import NotExported, RunResult


def plain_value(result: RunResult) -> Any:
    """The last expression; as text if it is no plain data."""
    try:
        return result.value
    except NotExported as error:
        return "\n".join(output.text for output in result.outputs if output.mime == "text/plain") or f"[{error}]"


def texts(result: RunResult) -> list[str]:
    """Return its output, its displayed texts, and its error or value."""
    parts = [text.rstrip("\n") for text in (result.stdout, result.stderr) if text]
    parts += [output.text for output in result.outputs if output.mime == "text/plain"]
    if result.error is not None:
        parts.append(result.error.stack.rstrip() or f"{result.error.name}: {result.error.message}")
        if result.error.code not in ("RUNTIME_ERROR", "SYNTAX_ERROR"):
            parts.append(f"({result.error.code})")
    elif "default" not in result.exports.unsent and result.value is not None:
        value = result.value
        parts.append(value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False))
    elif not result.outputs and "default" in result.exports.unsent:
        parts.append(f"[{result.exports.unsent['default']}]")
    return parts
