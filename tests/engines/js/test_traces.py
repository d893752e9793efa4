"""What `node` shows of errors is what Node shows, to the letter: the line, the marks under it, the stack, the status."""
# ruff: noqa: E501 - other people's programs are not wrapped

from __future__ import annotations

from pathlib import Path

import pytest

from belljar import Sandbox
from tests.engines.js.both import say_both

PROGRAMS: dict[str, str] = {
    "thrown.js": "function f() { throw new Error('boom') }\nf()",
    "number.js": "throw 5",
    "object.js": "throw { a: 1 }",
    "nothing.js": "throw null",
    "function.js": "throw function foo() {}",
    "no_stack.js": "throw Object.assign(new Error('q'), { stack: undefined })",
    "rejected.js": "Promise.reject(new TypeError('nope'))",
    "rejected_text.js": "Promise.reject('text')",
    "syntax.js": "const x = ;",
    "syntax.mjs": "const x = ;",
    "reserved.js": "enum X { A }",
    "json.js": "JSON.parse('{bad')",
    "no_export.mjs": "import { nope } from 'fs';",
    "no_file.mjs": "import x from './none.mjs';",
    "no_package.mjs": "import x from 'nopkg';",
    "no_module.js": "try { require('./nofile') } catch (e) { console.log(e.message.split('\\n')[0]); throw e.code }",
    "timer.js": "setTimeout(() => { null.x }, 1)",
    "tick.js": "process.nextTick(() => { throw new Error('tick') }); queueMicrotask(() => console.log('micro'))",
    "microtask.js": "queueMicrotask(() => { throw new Error('in micro') })",
    "awaited.js": "(async () => { await null; throw new Error('async boom') })()",
    "top.mjs": "throw new Error('esm top')",
    "never.mjs": "await new Promise(() => {})",
    "cause.js": "const e = new Error('with cause', { cause: new RangeError('inner') }); e.code = 'E_X'; throw e",
    "aggregate.js": "throw new AggregateError([new Error('a')], 'agg')",
    "evaluated.js": "try { eval('foo bar') } catch (e) { console.log(e.stack.split('\\n').slice(0, 3)) }\nconsole.log(new Error('q').stack)\nnew Function('throw new Error(\"in fn\")')()",
    "types.ts": "interface A { x: number }\nconst a: A = { x: 1 };\nfunction g(y: string): never {\n  throw new Error('ts ' + y + (a satisfies A).x);\n}\ng('z');",
    "enum.ts": "enum X { A }\nconsole.log(X.A)",
    "assertion.js": "require('assert').strictEqual(1, 2)",
    "unheard.js": "const { EventEmitter } = require('events'); new EventEmitter().emit('error', new Error('unheard'))",
    "method.js": "class Foo { constructor() { this.bar() } bar() { [1].map(() => { throw new SyntaxError('custom') }) } } new Foo()",
    "caught.js": "process.on('uncaughtException', (e, o) => console.log('caught', e.message, o)); process.on('exit', (c) => console.log('exit', c)); setTimeout(() => console.log('later'), 5); throw new Error('u')",
    "handled.js": "process.on('unhandledRejection', (r) => console.log('un', r)); Promise.reject(3); process.on('beforeExit', () => console.log('before'))",
    "warning.js": "console.trace('here'); process.emitWarning('careful')",
    "mapped.js": "throw new Error('x')\n//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbIm9yaWdpbmFsLnRzIl0sInNvdXJjZXNDb250ZW50IjpbImNvbnN0IGE6IG51bWJlciA9IDE7XG50aHJvdyBuZXcgRXJyb3IoJ3gnKTsiXSwibmFtZXMiOltdLCJtYXBwaW5ncyI6IkFBQ0EsTUFBTSxJQUFJLEtBQUssQ0FBQyJ9",
}
NEEDS: dict[str, list[str]] = {"mapped.js": ["--enable-source-maps"]}


pytestmark = pytest.mark.usefixtures("v8")


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_error_is_shown_as_node_shows_it(name: str, sandbox: Sandbox, tmp_path: Path) -> None:
    words = [*NEEDS.get(name, []), name]
    ours, real = say_both(sandbox, f"/workspace/{name.replace('.', '_')}", tmp_path, {name: PROGRAMS[name]}, words)
    if name in ("no_file.mjs", "no_package.mjs"):
        # Ten frames are kept of a stack, and one of them is ours: see docs/known-differences.md.
        ours, real = (said._replace(stderr=nine_frames(said.stderr)) for said in (ours, real))
    assert ours == real


def nine_frames(text: str) -> str:
    lines = text.splitlines(keepends=True)
    frames = [line for line in lines if line.startswith("    at ")]
    return "".join(line.replace(" {\n", "\n") for line in lines if line not in frames[9:])


@pytest.mark.parametrize(
    "words",
    [
        ["-e", "foo bar"],
        ["--input-type=module", "-e", "throw new Error('m')"],
        ["-e", "import fs from 'fs'; console.log(typeof fs.readFileSync); await 1; throw new Error('detected')"],
        ["-c", "good.js"],
        ["-c", "bad.js"],
        ["--check", "bad.mjs"],
        ["none.js"],
    ],
)
def test_a_command_line_fails_as_it_does_in_node(words: list[str], sandbox: Sandbox, tmp_path: Path) -> None:
    files = {"good.js": "throw 1", "bad.js": "let a; let a", "bad.mjs": "export { x }"}
    ours, real = say_both(sandbox, "/workspace/words", tmp_path, files, words)
    assert ours == real


@pytest.mark.parametrize("words", [["-e", "throw new Error('e')"], ["-p", "null.x"]])
def test_text_that_is_run_fails_as_it_does_in_node(words: list[str], sandbox: Sandbox, tmp_path: Path) -> None:
    ours, real = say_both(sandbox, "/workspace/words", tmp_path, {"any": ""}, words)
    # A frame of ours between the text and Node's library costs the last of the ten.
    assert ours.stderr.splitlines()[:12] == real.stderr.splitlines()[:12]
    assert ours.status == real.status


def test_no_frame_of_ours_is_seen(sandbox: Sandbox) -> None:
    code = "fs.readFile('/none', (e) => console.log(e.stack, new Error('x').stack)); try { fs.readFileSync('/none') } catch (e) { console.log(e.stack) }; setTimeout(() => console.log(new Error('y').stack)); require('zlib').gzip('x', () => console.log(new Error('z').stack)); fs.promises.stat('/none').catch((e) => console.log(e.stack))"
    said = sandbox.exec(["node", "-e", code], timeout=60).stdout
    assert said.count("Error") >= 6
    assert "belljar" not in said
    assert "site-packages" not in said
