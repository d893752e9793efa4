"""Variables of an interpreter, saved and restored in another one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import belljar
from belljar import AsyncSandbox, Sandbox
from belljar.api.errors import SnapshotError
from belljar.api.saved import SavedVariables


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def moved(one: Any, two: Any, code: str, check: str, **functions: Any) -> tuple[Any, dict[str, str]]:
    """What `check` gives after `code` ran elsewhere, and what did not come along. Both must see the same."""
    made = one.run(code, globals=functions)
    assert made.ok, made.error
    saved = SavedVariables.unseal(one.save().seal(b"key", "thread"), b"key", "thread")
    lost = two.load(saved, globals=functions)
    here, there = one.run(check), two.run(check)
    assert there.ok, there.error
    assert there.value == here.value
    return there.value, {**saved.left_out, **lost}


PYTHON = """
import collections, dataclasses, enum, math, typing

@dataclasses.dataclass
class Point:
    x: int
    near: list = dataclasses.field(default_factory=list)
    def twice(self) -> "Point": return Point(self.x * 2, self.near)

class Colour(enum.Enum):
    RED = 1

class Base:
    def hi(self): return "base"

class Derived(Base):
    def hi(self): return "derived " + super().hi()

class Pair(typing.NamedTuple):
    a: int

Old = collections.namedtuple("Old", "q r")

def counter():
    n = 0
    def inc():
        nonlocal n
        n += 1
        return n
    def get(): return n
    return inc, get

inc, get = counter()
inc(); inc()
total = 0
def add(k: int = 5, *, more=[1]) -> int:
    global total
    total += k
    return total
add()
def fact(n): return 1 if n < 2 else n * fact(n - 1)
point = Point(3, [1])
same = point
holder = {"p": point}
itself = []; itself.append(itself)
colour, derived, pair, old = Colour.RED, Derived(), Pair(4), Old(1, 2)
looked = look
"""
PYTHON_CHECK = """
[point.twice().x, same is point, holder["p"] is point, itself[0] is itself, colour is Colour.RED, derived.hi(), pair.a,
 old.r, inc(), get(), add(), total, fact(5), math.pi > 3, add.__kwdefaults__, str(add.__annotations__), repr(point),
 Point(1) == Point(1), isinstance(derived, Base), looked(2), Colour(1).name]
"""


def test_python(sandbox: Sandbox) -> None:
    one, two = sandbox.python.another(), sandbox.python.another()
    value, lost = moved(one, two, PYTHON, PYTHON_CHECK, look=lambda number: number * 10)
    assert value[:4] == [6, True, True, True]
    assert lost == {}
    assert two.save().left_out == {}  # what was restored can be saved again
    one.reset()
    two.reset()


JAVASCRIPT = """
let n = 5, nothing, big = 12345678901234567890n, nan = NaN, zero = -0
const list = [1, , 3]; list.extra = 'x'
const object = { a: 1, get twice() { return this.a * 2 }, [Symbol.for('k')]: 2, m() { return this.a + n },
  async later() { return 7 } }
const itself = {}; itself.self = itself
const map = new Map([[itself, 1], ['k', list]]), set = new Set([map])
const date = new Date(1e12), pattern = /a(b)/gi, bytes = new Uint8Array([1, 255]), floats = new Float64Array([1.5])
class Base { static made = 0; constructor(x) { this.x = x; Base.made++ } hi() { return 'B' + this.x }
  get g() { return this.x } }
class Derived extends Base { hi() { return 'D' + super.hi() } static more = n + 1 }
const base = new Base(2), derived = new Derived(3)
function Old(x) { this.x = x } Old.prototype.get = function () { return this.x }
const old = new Old(4)
const arrow = (x) => x + n, later = async (x = 3) => x * 2
function* steps() { yield 1; yield n }
function adder(k) { return (x) => x + k }
const fact = function me(k) { return k < 2 ? 1 : k * me(k - 1) }
const error = new RangeError('bad', { cause: object })
const most = Math.max, frozen = Object.freeze({ z: [1] }), bare = Object.create(null), symbol = Symbol('u')
const looked = look, part = Base.prototype.hi
1
"""
JAVASCRIPT_CHECK = """
[n, nothing === undefined, big, Number.isNaN(nan), Object.is(zero, -0), 1 in list, list.extra, object.twice,
 object[Symbol.for('k')], object.m(), await object.later(), itself.self === itself, map.get(itself),
 map.get('k') === list, set.has(map), date.getTime(), pattern.source + pattern.flags, [...bytes], floats[0], Base.made,
 Derived.more, derived.hi(), derived instanceof Base, base.g, old.get(), old instanceof Old, arrow(1), await later(),
 [...steps()], adder(1)(2), fact(5), error.message, error instanceof RangeError, error.cause === object, most(1, 2),
 Object.isFrozen(frozen), Object.getPrototypeOf(bare), typeof symbol, await looked(4), part === Base.prototype.hi,
 arrow.name]
"""


def test_javascript() -> None:
    with belljar.js() as one, belljar.js() as two:
        value, lost = moved(one, two, JAVASCRIPT, JAVASCRIPT_CHECK, look=lambda number: number * 10)
        assert value[0] == 5
        assert lost == {}
        assert two.save().left_out == {}
        # Whose prototype is whose, and what a name means, can't be told from the text alone: these are left out.
        assert one.run("""
          const n2 = 1
          function counter() { let n2 = 0; return () => ++n2 }
          const count = counter(), kept = []
          for (let i = 0; i < 2; i++) kept.push(() => i)
          class Secret { #x = 1; get() { return this.#x } }
          const secret = new Secret()
          const promise = Promise.resolve(1), url = new URL('http://a/'), bound = count.bind({})
          const proxy = new Proxy({}, {}), iterator = [1][Symbol.iterator](), weak = new WeakMap(), fine = 1
          class Late { static { Late.at = Date } }
        """).ok
        left_out = one.save().left_out
        assert set(left_out) == {
            "count", "kept", "secret", "promise", "url", "bound", "proxy", "iterator", "weak"
        }  # fmt: skip
        assert "n2" in left_out["count"]
        assert "private" in left_out["secret"]


def test_what_python_can_not_save_is_named_and_costs_only_itself(sandbox: Sandbox) -> None:
    one, two = sandbox.python.another(), sandbox.python.another()
    code = """
def make(): yield 1
generator = make()
file = open("/tmp/f", "w")
deep = None
for _ in range(100_000): deep = [deep]
class Bad:
    def __reduce__(self): return 1 / 0
class Late:
    def __reduce__(self): return (int, ("no",))
bad, late, fine = Bad(), Late(), [1]
large = bytearray(2_000_000)
import sys, types
made_up = types.ModuleType("made_up"); sys.modules["made_up"] = made_up
"""
    assert one.run(code).ok
    saved = one.save(max_bytes=1_000_000)
    assert {"generator", "file", "deep", "bad", "large"} <= set(saved.left_out)
    assert "large" in saved.left_out["large"]
    lost = two.load(saved)
    assert "late" in lost
    assert two.run("fine, make.__name__, sys.maxsize > 0").value == [[1], "make", True]
    assert one.run("fine").value == [1]  # saving changes nothing
    one.reset()
    two.reset()


def test_functions_of_the_host_that_are_gone_are_told(sandbox: Sandbox) -> None:
    one, two = sandbox.python.another(), sandbox.python.another()
    one.run("kept = look; x = 1", globals={"look": lambda: 1})
    assert set(two.load(one.save())) == {"kept"}
    assert two.run("x").value == 1
    with belljar.js() as three, belljar.js() as four:
        three.run("kept = look; x = 1", globals={"look": lambda: 1})
        assert set(four.load(three.save())) == {"kept"}
        assert four.run("x").value == 1


def test_an_interpreter_that_was_never_used_saves_nothing(sandbox: Sandbox) -> None:
    interpreter = sandbox.python.another()
    assert not interpreter.started
    saved = interpreter.save(leave_out=["x"])
    assert saved.left_out == {}
    assert sandbox.python.another().load(saved) == {}


def test_a_seal_is_kept() -> None:
    saved = SavedVariables("python", b"data", {"x": "why"}, "import numpy\n")
    sealed = saved.seal(b"key", "thread 1")
    assert SavedVariables.unseal(sealed, b"key", "thread 1") == saved
    for other, key, context in [
        (sealed, b"another", "thread 1"),
        (sealed, b"", "thread 1"),
        (sealed, b"key", "thread 2"),
        (sealed[:-1] + b"x", b"key", "thread 1"),
        (sealed[:30], b"key", "thread 1"),
        (b"", b"key", "thread 1"),
        ("text", b"key", "thread 1"),
    ]:
        with pytest.raises(SnapshotError):
            SavedVariables.unseal(other, key, context)


def test_what_nobody_saved_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(SnapshotError, match="of javascript, not of python"):
        sandbox.python.load(SavedVariables("javascript", b"{}", {}))
    with pytest.raises(SnapshotError, match="could not be restored"):
        sandbox.python.load(SavedVariables("python", b"garbage", {}))
    assert sandbox.python.run("1 + 1").value == 2
    with belljar.js() as js:
        with pytest.raises(SnapshotError, match="could not be restored"):
            js.load(SavedVariables("javascript", b"garbage", {}))
        assert js.run("1 + 1").value == 2
    with pytest.raises(ValueError, match="max_bytes"):
        sandbox.python.save(max_bytes=1 << 40)


async def _both(sandbox: AsyncSandbox) -> None:
    for one, code in ((sandbox.python, "x = [1]\nf = lambda: x"), (sandbox.js, "let x = [1]; const f = () => x")):
        await one.run(code)
        two = one.another()
        assert await two.load(await one.save()) == {}
        assert (await two.run("f()")).value == [1]
        assert two.started
        await two.reset()
        assert not two.started


def test_awaited() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            await _both(sandbox)

    asyncio.run(main())
