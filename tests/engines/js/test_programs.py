"""Programs as people write them, each run by Node and by `node` in a sandbox: the same output, the same status."""
# ruff: noqa: E501 - other people's programs are not wrapped

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar import Sandbox
from belljar.engines.owner.js_build_host import node

PROGRAMS: dict[str, str] = {
    "logs.js": r"""
        const fs = require('node:fs'), readline = require('node:readline')
        const lines = Array.from({ length: 200 }, (_, i) => `10.0.0.${i % 7} - [${new Date(i * 6e4).toISOString()}] "${['GET', 'POST'][i % 2]} /p/${i % 5}" ${[200, 200, 404, 500][i % 4]} ${i * 13}`)
        fs.writeFileSync('access.log', lines.join('\n') + '\n')
        async function main() {
          const hits = new Map(), status = {}; let bytes = 0
          for await (const line of readline.createInterface({ input: fs.createReadStream('access.log'), crlfDelay: Infinity })) {
            const [, ip, method, path, code, size] = /^(\S+) - \[.*?\] "(\w+) (\S+)" (\d+) (\d+)$/.exec(line)
            hits.set(ip, (hits.get(ip) ?? 0) + 1); (status[code] ??= {})[method] = (status[code][method] ?? 0) + 1; bytes += Number(size)
          }
          console.log([...hits].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).slice(0, 3), status, bytes.toLocaleString('en-US'))
        }
        main()
    """,
    "tree.mjs": """
        import { mkdir, writeFile, readdir, stat } from 'node:fs/promises'; import path from 'node:path'
        for (const file of ['src/a.js', 'src/lib/b.js', 'src/lib/deep/c.txt', 'README.md', 'empty/.keep']) { await mkdir(path.dirname(file), { recursive: true }); await writeFile(file, file.repeat(3)) }
        async function* walk(dir, indent = '') {
          const entries = (await readdir(dir, { withFileTypes: true })).filter((e) => !e.name.endsWith('.mjs')).sort((a, b) => a.name.localeCompare(b.name))
          for (const [i, entry] of entries.entries()) { const last = i === entries.length - 1; yield indent + (last ? '`-- ' : '|-- ') + entry.name; if (entry.isDirectory()) yield* walk(path.join(dir, entry.name), indent + (last ? '    ' : '|   ')) }
        }
        for await (const line of walk('.')) console.log(line)
        const sizes = await Promise.all((await readdir('src', { recursive: true })).sort().map(async (f) => [f, (await stat(path.join('src', f))).isFile()])); console.log(sizes)
    """,
    "munge.js": """
        const orders = JSON.parse('[{"id":1,"who":{"name":"Ann","tags":["vip"]},"items":[{"sku":"x","n":2,"price":9.99},{"sku":"y","n":1,"price":5}]},{"id":2,"who":{"name":"Bob","tags":[]},"items":[{"sku":"x","n":1,"price":9.99}]}]')
        const rows = orders.flatMap(({ id, who: { name }, items }) => items.map((item) => ({ id, name, ...item, total: +(item.n * item.price).toFixed(2) })))
        console.table(rows); console.log(Object.fromEntries(Object.entries(Object.groupBy(rows, (r) => r.sku)).map(([k, v]) => [k, v.reduce((s, r) => s + r.total, 0)])))
        const diff = (a, b, at = '$') => Object.is(a, b) ? [] : typeof a !== 'object' || typeof b !== 'object' || !a || !b ? [`${at}: ${JSON.stringify(a)} -> ${JSON.stringify(b)}`] : [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((k) => diff(a[k], b[k], `${at}.${k}`))
        const changed = structuredClone(orders); changed[0].items[1].n = 3; delete changed[1].who.tags; changed.push(null); console.log(diff(orders, changed))
        console.log(JSON.stringify({ d: new Date(0), u: undefined, n: NaN, m: new Map([[1, 2]]), big: String(2n ** 70n), toJSON() { return { ...this, toJSON: undefined, extra: [1, , 3] } } }, (k, v) => typeof v === 'number' ? v : v, 2))
    """,
    "pipeline.mjs": """
        import { Readable, Transform, Writable } from 'node:stream'; import { pipeline } from 'node:stream/promises'; import { createReadStream, createWriteStream, readFileSync } from 'node:fs'; import { createHash } from 'node:crypto'
        class Lines extends Transform { #rest = ''; constructor() { super({ readableObjectMode: true }) } _transform(chunk, _, done) { const parts = (this.#rest + chunk).split('\\n'); this.#rest = parts.pop(); for (const part of parts) this.push({ text: part, size: part.length }); done() } _flush(done) { if (this.#rest) this.push({ text: this.#rest, size: this.#rest.length }); done() } }
        await pipeline(Readable.from(function* () { for (let i = 0; i < 5000; i++) yield `line ${i} ${'x'.repeat(i % 40)}\\n` }()), createWriteStream('big.txt', { highWaterMark: 1000 }))
        let count = 0, longest = { size: 0 }; await pipeline(createReadStream('big.txt', { highWaterMark: 777, encoding: 'utf8' }), new Lines(), new Writable({ objectMode: true, highWaterMark: 3, write(line, _, done) { count++; if (line.size > longest.size) longest = line; setImmediate(done) } })); console.log(count, longest)
        const hash = createHash('sha256'); for await (const chunk of createReadStream('big.txt')) hash.update(chunk); console.log(hash.digest('hex') === createHash('sha256').update(readFileSync('big.txt')).digest('hex'))
        await pipeline(Readable.from(['a']), async function* (source) { for await (const _ of source) throw new Error('in the middle') }, async () => {}).catch((e) => console.log('failed:', e.message)); console.log(await Readable.from([1, 2, 3, 4]).filter((n) => n % 2).map((n) => n * 10).toArray())
    """,
    "runner.mjs": """
        import assert from 'node:assert/strict'; import { performance } from 'node:perf_hooks'
        const suites = []; let current = null; const describe = (name, body) => { suites.push(current = { name, tests: [], before: [] }); body() }; const it = (name, body) => current.tests.push([name, body]); const beforeEach = (f) => current.before.push(f)
        describe('arithmetic', () => { let n; beforeEach(() => { n = 40 }); it('adds', () => assert.equal(n + 2, 42)); it('is wrong', () => assert.deepEqual({ a: [1, { b: n }] }, { a: [1, { b: 41 }] })); it('throws', () => assert.throws(() => null.x, TypeError)) })
        describe('promises', () => { it('awaits', async () => assert.equal(await Promise.resolve(1), 1)); it('rejects', () => assert.rejects(Promise.reject(new Error('no')), /no/)); it('times out', () => Promise.race([new Promise(() => {}), new Promise((_, r) => setTimeout(r, 5, new Error('timeout')))])) })
        let failed = 0; const start = performance.now(); for (const { name, tests, before } of suites) { console.log(name); for (const [title, body] of tests) { try { for (const f of before) f(); await body(); console.log('  ok', title) } catch (e) { failed++; console.log('  FAIL', title, e.name, e.code ?? e.message) } } } console.log(failed, performance.now() >= start); process.exitCode = failed
    """,
    "queue.ts": """
        import { EventEmitter } from 'node:events'
        type Job<T> = { id: number; run: () => Promise<T>; retries: number }
        class Queue<T> extends EventEmitter<{ done: [number, T]; failed: [number, Error]; idle: [] }> {
          private readonly waiting: Job<T>[] = []; private running = 0; private readonly limit: number
          constructor(limit: number) { super(); this.limit = limit }
          add(run: () => Promise<T>, retries = 0): this { this.waiting.push({ id: this.waiting.length + this.running, run, retries }); queueMicrotask(() => this.next()); return this }
          private async next(): Promise<void> { while (this.running < this.limit && this.waiting.length > 0) { const job = this.waiting.shift()!; this.running++; job.run().then((v) => this.emit('done', job.id, v), (e: Error) => job.retries-- > 0 ? void this.waiting.push(job) : this.emit('failed', job.id, e)).finally(() => { this.running--; this.waiting.length + this.running === 0 ? this.emit('idle') : this.next() }) } }
        }
        const sleep = (ms: number) => new Promise<void>((r) => setTimeout(r, ms)); let tries = 0; const queue = new Queue<string>(2)
        queue.on('done', (id, v) => console.log('done', id, v)).on('failed', (id, e) => console.log('failed', id, e.message)).on('idle', () => console.log('idle', tries))
        queue.add(async () => { await sleep(30); return 'slow' }).add(async () => 'quick').add(async () => { tries++; throw new Error(`try ${tries}`) }, 2)
    """,
    "words.py.js": r"""
        const text = 'It was the best of times, it was the worst of times; it was the age of wisdom... Über façade naïve — the END.'
        const words = text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase().match(/\p{L}+/gu); const counts = words.reduce((m, w) => m.set(w, (m.get(w) ?? 0) + 1), new Map())
        for (const [word, n] of [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 6)) console.log(word.padEnd(8, '.') + String(n).padStart(3)); console.log([...new Intl.Segmenter('en', { granularity: 'grapheme' }).segment('👨‍👩‍👧é')].length, 'ß'.toUpperCase(), 'İ'.toLowerCase().length, [...'a💡b'].length, 'abc'.at(-1), text.matchAll(/times/g).next().value.index)
        const wrap = (s, w) => s.split(' ').reduce((lines, word) => ((lines.at(-1) + ' ' + word).length > w ? lines.push(word) : lines.push((lines.pop() + ' ' + word).trim()), lines), ['']); console.log(wrap(text, 30).join('\n'))
    """,
    "cli.mjs": """
        import { parseArgs, inspect, styleText } from 'node:util'; import path from 'node:path'; import { fileURLToPath, pathToFileURL } from 'node:url'
        const options = { verbose: { type: 'boolean', short: 'v' }, out: { type: 'string', short: 'o', default: 'a.out' }, define: { type: 'string', multiple: true, short: 'D' } }
        for (const args of [['-v', '-DX=1', '-D', 'Y', 'in.c'], ['--out=x', '--', '-v'], ['--nope'], ['-o']]) try { const { values, positionals } = parseArgs({ args, options, allowPositionals: true }); console.log({ ...values }, positionals) } catch (e) { console.log(e.code, e.message.split('.')[0]) }
        console.log(path.basename(fileURLToPath(import.meta.url)), pathToFileURL('/a b#c').href, process.argv.slice(2), process.argv0.length > 0, import.meta.filename === process.argv[1], inspect(new (class Foo { #x = 1; y = [new Set([1])] })(), { depth: 0 }), inspect('a\\'b'), process.exitCode)
        process.on('beforeExit', () => console.log('before')); process.once('exit', (code) => console.log('exit', code))
    """,
    "primes.js": """
        function sieve(n) { const a = new Uint8Array(n + 1); const out = []; for (let i = 2; i <= n; i++) { if (a[i]) continue; out.push(i); for (let j = i * i; j <= n; j += i) a[j] = 1 } return out }
        const modpow = (b, e, m) => { let r = 1n; for (b %= m; e > 0n; e >>= 1n, b = (b * b) % m) if (e & 1n) r = (r * b) % m; return r }; const p = sieve(200000)
        console.log(p.length, p.at(-1), modpow(3n, 10n ** 30n, 2n ** 89n - 1n), (2n ** 127n - 1n).toString(36), BigInt.asUintN(8, 300n), 0.1 + 0.2, (1e21).toString(), (255).toString(2), Number.parseFloat('1e-7'), -7 % 3, 2 ** -1074, Math.hypot(3, 4), Math.fround(5.05), Math.clz32(1))
        const m = [[2, 1], [1, 3]]; const mul = (a, b) => a.map((r) => b[0].map((_, j) => r.reduce((s, v, k) => s + v * b[k][j], 0))); console.log([1, 2, 3].reduce((acc) => mul(acc, m), [[1, 0], [0, 1]]), new Float64Array([1.5, -0]), new DataView(new ArrayBuffer(8)).getFloat64(0))
    """,
    "observe.js": """
        const observe = (target, on, at = []) => new Proxy(target, { get: (t, k, r) => { const v = Reflect.get(t, k, r); return typeof v === 'object' && v !== null ? observe(v, on, [...at, k]) : v }, set: (t, k, v) => { on([...at, String(k)].join('.'), t[k], v); return Reflect.set(t, k, v) }, deleteProperty: (t, k) => { on([...at, String(k)].join('.'), t[k]); return Reflect.deleteProperty(t, k) } })
        const state = observe({ user: { name: 'a', tags: ['x'] }, n: 1 }, (...change) => console.log('changed', ...change)); state.n++; state.user.name = 'b'; state.user.tags.push('y'); delete state.user.name; console.log(JSON.stringify(state))
        class Temp { static #count = 0; static { Temp.unit = 'C' } #c; constructor(c) { this.#c = c; Temp.#count++ } get f() { return this.#c * 9 / 5 + 32 } set f(v) { this.#c = (v - 32) * 5 / 9 } static get count() { return Temp.#count } [Symbol.toPrimitive](hint) { return hint === 'number' ? this.#c : `${this.#c}${Temp.unit}` } static is(x) { return #c in x } *[Symbol.iterator]() { yield this.#c; yield this.f } }
        const t = new Temp(100); t.f = 32; console.log(`${t}`, +t, [...t], Temp.count, Temp.is({}), t, Object.getOwnPropertyNames(Temp.prototype)); const wm = new WeakMap([[t, 1]]); console.log(wm.get(t), new WeakRef(t).deref() === t)
    """,
    "errors.mjs": """
        class AppError extends Error { constructor(message, options) { super(message, options); this.name = 'AppError'; this.at = 'here' } }
        try { try { JSON.parse('{bad') } catch (cause) { throw new AppError('could not read', { cause }) } } catch (e) { console.log(e instanceof AppError, e.cause.name, e.message, Object.keys(e), String(e)) }
        const all = await Promise.allSettled([1, Promise.reject(new RangeError('r')), new Promise((r) => setTimeout(r, 1, 'late'))]); console.log(all.map((r) => r.status + (r.value ?? r.reason.message)))
        await Promise.any([Promise.reject(1), Promise.reject(2)]).catch((e) => console.log(e.constructor.name, e.errors)); const { promise, resolve } = Promise.withResolvers(); setTimeout(resolve, 1, 'resolved'); console.log(await promise)
        const signal = AbortSignal.timeout(5), awake = setTimeout(() => {}, 10000); await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))).catch((e) => console.log(e.name, signal.aborted)); clearTimeout(awake); try { structuredClone(() => {}) } catch (e) { console.log(e.name) }
        console.log([1, [2, [3, [4]]]].flat(Infinity), Object.fromEntries(new Map([['a', 1]])), [3, 1, 2].toSorted().with(0, 9), Array.from({ length: 3 }, (_, i) => i ** 2), 'a-b-c'.replaceAll('-', '+'), new Error('x', { cause: 1 }).cause, Object.hasOwn({ a: 1 }, 'a'), [1, 2, 3].findLast((x) => x < 3))
    """,
    "shell.js": """
        const { spawn, execFileSync, spawnSync, execSync } = require('node:child_process'); const fs = require('node:fs')
        fs.writeFileSync('in.txt', 'pear\\napple\\nfig\\napple\\n'); console.log(execSync('sort in.txt | uniq -c | sed "s/^ *//"', { encoding: 'utf8' }).trim().split('\\n'))
        const sort = spawn('sort', ['-r']), head = spawn('head', ['-n', '2']); sort.stdout.pipe(head.stdin); let out = ''; head.stdout.on('data', (d) => { out += d }); head.on('close', (code) => { console.log(JSON.stringify(out), code); const r = spawnSync('sh', ['-c', 'echo out; echo err >&2; kill -TERM $$'], { encoding: 'utf8' }); console.log(r.status, r.signal, r.stdout, r.stderr) }); for (const n of [3, 1, 2]) sort.stdin.write(`${n}\\n`); sort.stdin.end()
        console.log(execFileSync('env', { env: { ONLY: 'this' }, encoding: 'utf8' }), spawnSync('cat', { input: 'x'.repeat(100000) }).stdout.length, execSync('pwd', { cwd: '/tmp', encoding: 'utf8' }).trim()); try { execSync('cat none', { stdio: 'pipe' }) } catch (e) { console.log(e.status, /No such file/.test(e.stderr)) }
    """,
    "data.mjs": """
        import { writeFileSync } from 'node:fs'; writeFileSync('data.json', '{"v": [1, 2]}'); writeFileSync('mod.cjs', 'module.exports = { a: 1, f() { return this.a } }; module.exports.self = () => require.main === undefined'); writeFileSync('lib.mjs', 'export let count = 0; export const bump = () => ++count; export default class {}; export { bump as "odd name" }')
        const { default: data } = await import('./data.json', { with: { type: 'json' } }); const cjs = (await import('./mod.cjs')).default; const lib = await import('./lib.mjs'); lib.bump(); console.log(data, cjs.f(), lib.count, Object.keys(lib).sort(), lib[Symbol.toStringTag], lib === await import('./lib.mjs'), typeof lib.default)
        console.log(typeof (await import('node:fs')).default.readFileSync, await import('./none.mjs').catch((e) => e.code), await import('no-such-package').catch((e) => e.code))
    """,
    "modules.cts": "const { join }: typeof import('node:path') = require('node:path'); function over(x: string): string; function over(x: number): number; function over(x: any): any { return x } declare const nothing: unique symbol; abstract class A<in out T> { declare y: T; protected abstract z(): void; constructor(readonly_: T) { this.y = readonly_ } } class B extends A<number> { override z() {} } module.exports = { here: join('a', 'b'), over: over(2)!, b: new B(3) as unknown }; console.log(module.exports)",
    "blocks.js": """
        function* take(n, it) { let i = 0; for (const x of it) { if (i++ >= n) return; yield x } } function* naturals() { let n = 0; try { while (true) yield n++ } finally { console.log('closed') } }
        console.log([...take(4, naturals())], [...take(3, naturals().filter((n) => n % 2).map((n) => n * n))]); outer: for (const a of [1, 2, 3]) { for (const b of [1, 2, 3]) { if (b === 2) continue outer; if (a === 3) break outer; console.log(a, b) } }
        const tag = (s, ...v) => s.raw.map((x, i) => x + (v[i] ?? '')).join('|'); console.log(tag`a\\n${1}b${2}`, ((a, { b = 2, ...c } = {}, [d, , e] = [4, 5, 6], ...f) => ({ a, b, c, d, e, f }))(1, { x: 9 }, undefined, 7, 8), typeof undeclared, void 0 ?? 'null', (0 || null)?.x?.y ?? 'deep', [..."ab"].entries().toArray())
        label: { if (Math.random() >= 0) break label; console.log('never') } switch (3) { case 1: console.log(1); default: console.log('d'); case 2: console.log(2) } console.log(new Function('a', 'return a + 1')(1), eval('var q = 5; q * 2'), (() => { try { return 'try' } finally { console.log('finally') } })(), new Date(Date.UTC(2024, 1, 29)).toISOString(), new Date('2024-02-30').getTime())
    """,
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(env={"TZ": "UTC"}) as made:
        yield made


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_says_what_it_says_to_node(name: str, sandbox: Sandbox, tmp_path: Path) -> None:
    home = f"/workspace/{name.replace('.', '_')}"
    sandbox.files.write(f"{home}/{name}", PROGRAMS[name])
    (tmp_path / name).write_text(PROGRAMS[name])
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/root", "TZ": "UTC"}
    command = [str(node()), name, "one", "two"]
    real = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert "SyntaxError" not in real.stderr
    ours = sandbox.exec(["node", name, "one", "two"], cwd=home, timeout=120)
    assert (ours.stdout, ours.exit_code) == (real.stdout, real.returncode), ours.stderr or real.stderr
