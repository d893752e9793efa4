"""`js`: belljar's own V8, beside the sandbox on every tier."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from belljar import RunLimits, Sandbox, SandboxClosed, SandboxError, ToolError
from tests.tiers.conftest import Make

VALUES: dict[str, tuple[str, Any]] = {
    "null": ("null", None),
    "undefined": ("undefined", None),
    "a number": ("6 * 7", 42),
    "a fraction": ("0.5", 0.5),
    "a bigint": ("2n ** 100n", 2**100),
    "a string": ("'żółć'", "żółć"),
    "bytes": ("new Uint8Array([0, 255])", b"\x00\xff"),
    "an array": ("[1, [2]]", [1, [2]]),
    "an object": ("({a: {b: 1}})", {"a": {"b": 1}}),
    "a date": ("new Date(Date.UTC(2026, 0, 2))", datetime(2026, 1, 2, tzinfo=UTC)),
    "await": ("await Promise.resolve(7)", 7),
}


@pytest.mark.parametrize(("code", "value"), VALUES.values(), ids=VALUES)
def test_values(sb: Sandbox, code: str, value: Any) -> None:
    assert sb.js.run(code).check().value == value


def test_it_keeps_its_variables(sb: Sandbox) -> None:
    sb.js.run("const x = 40; function f(n) { return n + x }")
    assert sb.js.run("f(2)").value == 42


def test_printing(sb: Sandbox) -> None:
    result = sb.js.run("console.log('out', {a: 1}); console.error('err')")
    assert (result.stdout, result.stderr) == ("out { a: 1 }\n", "err\n")


ERRORS = {
    "syntax": ("1 +", "SYNTAX_ERROR", "SyntaxError"),
    "thrown": ("throw new RangeError('x')", "RUNTIME_ERROR", "RangeError"),
    "a name": ("missing", "RUNTIME_ERROR", "ReferenceError"),
}


@pytest.mark.parametrize(("code", "kind", "name"), ERRORS.values(), ids=ERRORS)
def test_errors(sb: Sandbox, code: str, kind: str, name: str) -> None:
    error = sb.js.run(code).error
    assert error is not None
    assert (error.code, error.name) == (kind, name)


LIMITS = {
    "CPU_LIMIT": ("for (;;) {}", RunLimits(cpu_ms=200)),
    "WALL_LIMIT": ("await new Promise((r) => setTimeout(r, 60000))", RunLimits(wall_ms=300)),
    "MEMORY_LIMIT": ("const a = []; for (;;) a.push(new Array(100000).fill(1))", RunLimits(memory_mb=32)),
    "BRIDGE_LIMIT": ("for (let n = 0; n < 100; n++) await f(n)", RunLimits(max_bridge_calls=10)),
}


@pytest.mark.parametrize("code", LIMITS)
def test_limits(sb: Sandbox, code: str) -> None:
    source, limits = LIMITS[code]
    error = sb.js.run(source, globals={"f": lambda n: n}, limits=limits).error
    assert error is not None
    assert error.code == code
    assert sb.js.run("1 + 1").value == 2


def test_host_functions(sb: Sandbox) -> None:
    def look(key: str) -> dict[str, str]:
        if key == "no":
            raise ToolError("nothing there")
        return {"found": key}

    assert sb.js.run("(await look('a')).found", globals={"look": look}).value == "a"
    error = sb.js.run("await look('no')").error
    assert error is not None
    assert "nothing there" in error.message


def test_tools_are_bound(make: Make) -> None:
    assert make(tools={"double": lambda n: n * 2}).js.run("await double(21)").value == 42


def test_a_prefix(sb: Sandbox) -> None:
    prefix = sb.js.precompile("globalThis.count = 0", globals={"f": lambda n: n + 1})
    assert [prefix.run("count += 1; export default await f(count)").exports["default"] for _ in range(3)] == [2, 2, 2]
    with pytest.raises(ValueError, match="other"):
        prefix.run("1", globals={"other": 1})


@pytest.mark.feature("fork")
def test_a_fork_has_its_variables(make: Make) -> None:
    sb = make()
    sb.js.run("let x = 1")
    branch = make.keep(sb.fork())
    assert branch.js.run("x += 1; x").value == 2
    assert sb.js.run("x").value == 1


def test_reset(sb: Sandbox) -> None:
    sb.js.run("var x = 1")
    sb.js.reset()
    assert sb.js.run("typeof x").value == "undefined"


def test_after_the_end(sb: Sandbox) -> None:
    sb.js.run("1")
    sb.close()
    with pytest.raises((SandboxClosed, SandboxError), match="closed"):
        sb.js.run("1")
