"""Modules of every kind are found, linked and evaluated as Node does it."""
# ruff: noqa: E501 - other people's programs are not wrapped

from __future__ import annotations

from pathlib import Path

import pytest

from belljar import Sandbox
from tests.engines.js.both import say_both

PACKAGES = {
    "node_modules/dual/package.json": '{"name": "dual", "exports": {".": {"import": "./m.mjs", "require": "./c.cjs"}, "./sub/*": "./lib/*.js", "./hidden": null}}',
    "node_modules/dual/m.mjs": "export const kind = 'esm'; export default class Dual {}",
    "node_modules/dual/c.cjs": "exports.kind = 'cjs'",
    "node_modules/dual/lib/a.js": "module.exports = { a: __filename.split('/').slice(-3).join('/') }",
    "node_modules/old/package.json": '{"main": "lib"}',
    "node_modules/old/lib/index.js": "Object.defineProperty(exports, '__esModule', { value: true }); exports.named = 1; exports.default = 'default of old'; exports.self = require('old') === exports",
    "node_modules/reexports/index.js": "module.exports = require('./inner'); module.exports.own = 2",
    "node_modules/reexports/inner.js": "exports.inner = 1",
    "package.json": '{"name": "me", "imports": {"#dep": "./dep.js", "#os": "os"}, "exports": {"./self": "./dep.js"}}',
    "dep.js": "module.exports = { dep: true }",
}
PROGRAMS: dict[str, dict[str, str]] = {
    "live bindings": {
        "main.mjs": "import { n, add, ns } from './a.mjs'; console.log(n); add(); console.log(n, ns.n, Object.isSealed(ns), ns[Symbol.toStringTag]); try { n = 1 } catch (e) { console.log(e.name, e.message) } try { ns.n = 5 } catch (e) { console.log(e.message) } console.log(ns)",
        "a.mjs": "export let n = 1; export const add = () => { n++ }; export * as ns from './a.mjs'",
    },
    "cycles": {
        "main.mjs": "import { a } from './a.mjs'; console.log(a())",
        "a.mjs": "import { b, late } from './b.mjs'; export function a() { return 'a' + b } export const value = 1; console.log('a sees', late())",
        "b.mjs": "import { a, value } from './a.mjs'; export const b = 'b'; try { value } catch (e) { console.log(e.name, e.message) } console.log(typeof a, a.name); export const late = () => value",
    },
    "import.meta": {
        "main.mjs": "console.log(import.meta.url, import.meta.filename, import.meta.dirname, import.meta.main, import.meta.resolve('./x.js'), Object.keys(import.meta)); import './other.mjs'",
        "other.mjs": "console.log(import.meta.main, import.meta.url.split('/').pop())",
    },
    "awaits at the top": {
        "main.mjs": "import { x } from './slow.mjs'; import './quick.mjs'; console.log('main', x); for await (const y of [Promise.resolve(1)]) console.log(y)",
        "slow.mjs": "console.log('slow starts'); export const x = await new Promise((r) => setTimeout(r, 5, 'waited')); console.log('slow ends')",
        "quick.mjs": "console.log('quick')",
    },
    "attributes": {
        "main.mjs": "import data from './d.json' with { type: 'json' }; console.log(data); const again = await import('./d.json', { with: { type: 'json' } }); console.log(again.default === data, again); for (const f of [() => import('./d.json'), () => import('./d.json', { with: { type: 'css' } }), () => import('./b.json', { with: { type: 'json' } })]) await f().catch((e) => console.log(e.code, e.name, e.message.split('\\n')[0]))",
        "d.json": '{"k": [1, 2]}',
        "b.json": "{bad",
    },
    "require of a module": {
        "main.cjs": "const m = require('./m.mjs'); console.log(m, m.default, m.__esModule); try { require('./tla.mjs') } catch (e) { console.log(e.code) } console.log(require('./whole.mjs')); import('./m.mjs').then((n) => console.log(n === m, n.named))",
        "m.mjs": "export default 1; export const named = 2",
        "tla.mjs": "await 1; export default 3",
        "whole.mjs": "const it = () => {}; export { it as 'module.exports' }",
    },
    "names of CommonJS": {
        "main.mjs": "import old, { named } from 'old'; import * as ns from 'old'; import { inner } from 'reexports'; console.log(old, named, Object.keys(ns), inner); import('./late.cjs').then((n) => console.log(Object.keys(n), n.default)); const bad = await import('./use.mjs').catch((e) => e); console.log(bad.name, bad.message)",
        "late.cjs": "for (const k of ['x', 'y']) exports[k] = k; exports.z = 1",
        "use.mjs": "import { x } from './late.cjs'",
    },
    "packages": {
        "main.mjs": "import { kind } from 'dual'; import { createRequire } from 'node:module'; const require = createRequire(import.meta.url); console.log(kind, require('dual').kind, require('dual/sub/a'), (await import('#dep')).default, typeof (await import('#os')).default.cpus, require('me/self')); for (const id of ['dual/hidden', 'dual/none', '#none', 'me/other', 'nope', 'dual/sub/zz', './dep', 'node:nope']) { try { require(id) } catch (e) { console.log('require', id, e.code) } await import(id).catch((e) => console.log('import', id, e.code, e.message.split('\\n')[0])) }",
    },
    "kinds are told apart": {
        "main.js": "import('./a.js').then((m) => console.log(m.default)); console.log(typeof require, module.id)",
        "a.js": "export default 'detected'; console.log(typeof require, this)",
        "b/package.json": '{"type": "module"}',
    },
    "a module by its words": {
        "main.js": "import path from 'path'; console.log(path.sep, await Promise.resolve(7), typeof module)"
    },
    "typescript modules": {
        "main.ts": "import { type A, make } from './lib.ts'; import type { B } from './none.ts'; const a: A = make<number>(3); console.log(a satisfies A); export type { B }",
        "lib.ts": "export interface A { n: number } export function make<T extends number>(n: T): A { return { n } }",
    },
    "typescript that is stripped": {
        "main.mts": "import { readFileSync } from 'node:fs'; const f = (x: unknown): x is string => typeof x === 'string'; abstract class Q<T> { abstract m(): T; declare z: number } console.log(f('a'), typeof readFileSync, Q.name, (1 as any as string)!)"
    },
    "the loader's own names": {
        "main.js": "const Module = require('module'); console.log(Module.builtinModules.includes('fs'), Module.isBuiltin('node:test'), require.resolve('./main.js').endsWith('/main.js'), require.main === module, module.children.length, module.paths[0].endsWith('/node_modules')); const load = Module._load; Module._load = (id, ...rest) => id === 'fake' ? { faked: true } : load(id, ...rest); console.log(require('fake')); require.extensions['.txt'] = (m, file) => { m.exports = require('fs').readFileSync(file, 'utf8') }; console.log(require('./note.txt')); delete require.cache[require.resolve('./count.js')]; console.log(require('./count.js'), require('./count.js')); const made = new Module('made'); made._compile('module.exports = 1 + 1', 'made.js'); console.log(made.exports)",
        "note.txt": "a note",
        "count.js": "globalThis.count = (globalThis.count ?? 0) + 1; module.exports = globalThis.count",
    },
    "hooks of a program": {
        "main.mjs": "import { registerHooks } from 'node:module'; registerHooks({ resolve(s, c, next) { return s === 'virtual' ? { url: 'virtual:x', shortCircuit: true } : next(s, c) }, load(url, c, next) { return url === 'virtual:x' ? { format: 'module', source: 'export default \"from nowhere\"', shortCircuit: true } : next(url, c) } }); console.log((await import('virtual')).default)",
    },
    "realms": {
        "main.js": "const vm = require('vm'); const c = vm.createContext({ a: 1, console }); console.log(vm.runInContext('a += 1; var b = a * 2; globalThis.z = 3; typeof process', c), c.a, c.b, c.z, vm.isContext(c), vm.runInNewContext('x + 1', { x: 4 })); try { vm.runInContext('throw new Error(\"in ctx\")', c) } catch (e) { console.log(e.message, e instanceof Error) } console.log(vm.runInContext('[] instanceof Array', c), vm.runInContext('[]', c) instanceof Array, vm.compileFunction('return a + b', ['a', 'b'])(1, 2)); try { new vm.Script('foo bar', 'x.js') } catch (e) { console.log(e.stack.split('\\n').slice(0, 5)) } console.log(new vm.Script('this.q = 7').runInThisContext(), globalThis.q)",
    },
}


pytestmark = pytest.mark.usefixtures("v8")


@pytest.mark.parametrize("name", PROGRAMS)
def test_modules_are_what_they_are_in_node(name: str, sandbox: Sandbox, tmp_path: Path) -> None:
    home = f"/workspace/{name.replace(' ', '_')}"
    main = next(iter(PROGRAMS[name]))
    ours, real = say_both(sandbox, home, tmp_path, {**PACKAGES, **PROGRAMS[name]}, [main])
    assert ours == real
    assert ours.status == 0, ours.stderr


def test_options_that_load_modules(sandbox: Sandbox, tmp_path: Path) -> None:
    files = {
        "first.cjs": "globalThis.order = ['required']",
        "second.mjs": "order.push('imported')",
        "main.js": "console.log(order, process.execArgv, process.argv.length)",
    }
    words = ["-r", "./first.cjs", "--import", "./second.mjs", "--no-warnings", "main.js", "a"]
    ours, real = say_both(sandbox, "/workspace/options", tmp_path, files, words)
    assert ours == real
