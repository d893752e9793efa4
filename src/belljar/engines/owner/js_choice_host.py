"""Chooses the engine for JavaScript: V8, or QuickJS where V8 is unavailable, and says why.

`BELLJAR_JS=v8` or `BELLJAR_JS=quickjs` in the owner's environment decides it; nothing else than the lack of V8 does.
"""

from __future__ import annotations

import os
import subprocess
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner import js_prefix_host as prefix_host

VARIABLE: Final = "BELLJAR_JS"
Engine = Literal["v8", "quickjs"]
_PROBE_SECONDS: Final = 60.0


class SlowerEngine(RuntimeWarning):
    """JavaScript runs on QuickJS because V8 can't be had; says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An engine, and why it is not V8 ("" if it is)."""

    engine: Engine
    reason: str

    def __str__(self) -> str:
        return self.engine if not self.reason else f"{self.engine} ({self.reason})"


_found: Choice | None = None


def wanted() -> Engine | None:
    """Return the engine that the owner's environment names; None if unset. Raises EngineUnavailable."""
    asked = os.environ.get(VARIABLE, "")
    match asked:
        case "" | "auto":
            return None
        case "v8" | "quickjs":
            return asked
    raise EngineUnavailable(f"{VARIABLE}={asked!r} is no engine: it may be v8, quickjs or auto")


def command(guests: prefix_host.Guests) -> list[str]:
    """Return the command that starts the chosen engine's template. Raises EngineUnavailable."""
    chosen = choose()
    if chosen.engine == "v8":
        return prefix_host.command(guests)
    from belljar.engines.owner import quickjs_package_host as package_host  # only where it is used

    return package_host.command()


def choose() -> Choice:
    """The engine of this process, with all that V8 needs built. Warns, once, if it is QuickJS for want of V8.

    Raises EngineUnavailable if there is neither; it says what both lack.
    """
    global _found
    asked = wanted()
    if asked is not None:
        return Choice(asked, "" if asked == "v8" else f"{VARIABLE}=quickjs")
    if _found is None:
        found = _look()
        if found.engine == "quickjs":
            _tell(found.reason)
        _found = found
    return _found


def _tell(reason: str) -> None:
    """Raises EngineUnavailable for an owner to whom warnings are errors."""
    said = (
        f"JavaScript runs on QuickJS, which is several times slower than V8: {reason}. "
        f"{VARIABLE}=quickjs makes it your choice and silences this; docs/javascript.md tells what differs"
    )
    try:
        warnings.warn(said, SlowerEngine, stacklevel=3)
    except SlowerEngine:
        raise EngineUnavailable(said) from None


def _look() -> Choice:
    try:
        prove_v8()
    except EngineUnavailable as error:
        return _instead(str(error))
    return Choice("v8", "")


def _instead(lack: str) -> Choice:
    """QuickJS, for want of V8. Raises EngineUnavailable, with what both lack, if there is no QuickJS."""
    from belljar.engines.artefact_host import ArtefactError  # only where it is used
    from belljar.engines.owner import quickjs_package_host as package_host

    try:
        package_host.sources()
        package_host.library_place()
    except (EngineUnavailable, ArtefactError) as error:
        said = str(error)
        both = lack if said in lack else f"{lack}. QuickJS, the fallback, is not there either: {said}"
        raise EngineUnavailable(both) from None
    return Choice("quickjs", lack)


def prove_v8() -> None:
    """Have Node load the addon, once for each addon: what compiles may still not run. Raises EngineUnavailable."""
    from belljar.engines.owner.js_build_host import addon, addon_digest, addon_places, node

    made = addon()
    proof = addon_places()[1].with_suffix(".loads")
    if proof.exists():
        return
    addon_digest(made)
    command = [str(node()), *prefix_host.NODE_FLAGS, "-e", "require(process.argv[1])", str(made)]
    try:
        subprocess.run(  # noqa: S603 - the package's own binary
            command, check=True, capture_output=True, timeout=_PROBE_SECONDS, env={}, cwd="/"
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EngineUnavailable(f"V8 does not run here: {_reason(error)}") from None
    with suppress(OSError):  # the cache may be read-only: then Node is asked each time
        proof.touch(mode=0o600)


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = error.stderr.decode("utf-8", "replace").strip().splitlines()
        return f"Node ended with status {error.returncode}" + (f", saying: {lines[-1]}" if lines else "")
    return str(error)


def expected() -> Choice:
    """Predict the result of `choose` without building anything. Raises EngineUnavailable."""
    asked = wanted()
    if asked is not None:
        return Choice(asked, "" if asked == "v8" else f"{VARIABLE}=quickjs")
    if _found is not None:
        return _found
    from belljar.engines.owner.js_build_host import check_buildable

    try:
        check_buildable()
    except EngineUnavailable as error:
        return _instead(str(error))
    return Choice("v8", "")


def describe() -> str:
    """The same in words, for people."""
    try:
        return str(expected())
    except EngineUnavailable as error:
        return f"none ({error})"


def check_wasm() -> None:
    """Raises EngineUnavailable where guests can't have WebAssembly."""
    chosen = choose()
    if chosen.engine == "quickjs":
        raise EngineUnavailable(f"WebAssembly in JavaScript needs V8, and here it runs on QuickJS: {chosen.reason}")
