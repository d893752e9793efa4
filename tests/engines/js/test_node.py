"""`node` in a sandbox says what Node itself says: each script is run by both."""
# ruff: noqa: E501 - other people's programs are not wrapped

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from belljar import Sandbox
from belljar.engines.owner.js_build_host import node

SCRIPTS: dict[str, str] = {
    "hello.js": "console.log('hello', [1, { a: 2 }], new Map([[1, 2]]), -0, 10n, null, undefined, Symbol('s'))",
    "argv.js": "console.log(process.argv.slice(2), process.argv.length, typeof process.pid, process.platform)",
    "files.js": """
        const fs = require('fs'), path = require('path')
        fs.mkdirSync('tree/a/b', { recursive: true })
        for (const [name, text] of [['a/x.txt', 'ex'], ['a/b/y.txt', 'why'], ['z.txt', 'zed']]) fs.writeFileSync(path.join('tree', name), text)
        function walk(dir) {
          return fs.readdirSync(dir, { withFileTypes: true }).flatMap((e) => e.isDirectory() ? walk(path.join(dir, e.name)) : [path.join(dir, e.name)])
        }
        for (const file of walk('tree')) console.log(file, fs.statSync(file).size, fs.readFileSync(file, 'utf8'))
        console.log(fs.readdirSync('tree', { recursive: true }).sort())
        fs.renameSync('tree/z.txt', 'tree/w.txt'); fs.copyFileSync('tree/w.txt', 'tree/v.txt'); fs.appendFileSync('tree/v.txt', '!')
        fs.symlinkSync('w.txt', 'tree/l'); console.log(fs.readlinkSync('tree/l'), fs.lstatSync('tree/l').isSymbolicLink(), fs.readFileSync('tree/l', 'latin1'))
        fs.chmodSync('tree/v.txt', 0o600); console.log((fs.statSync('tree/v.txt').mode & 0o777).toString(8), fs.existsSync('tree/none'))
        fs.cpSync('tree', 'copy', { recursive: true }); fs.rmSync('tree', { recursive: true, force: true })
        console.log(fs.existsSync('tree'), fs.readdirSync('copy'))
        for (const f of [() => fs.readFileSync('none'), () => fs.mkdirSync('copy'), () => fs.rmdirSync('copy'), () => fs.readdirSync('copy/v.txt')])
          try { f() } catch (e) { console.log(e.code, e.message, e.errno, e.syscall) }
    """,
    "descriptors.js": """
        const fs = require('fs'); const fd = fs.openSync('d.bin', 'w+'); fs.writeSync(fd, Buffer.from([1, 2, 3, 4])); fs.writeSync(fd, 'text', 8)
        const b = Buffer.alloc(16); console.log(fs.readSync(fd, b, 0, 16, 0), b); fs.ftruncateSync(fd, 2); console.log(fs.fstatSync(fd).size); fs.closeSync(fd)
        try { fs.closeSync(fd) } catch (e) { console.log(e.code) }
    """,
    "promises.mjs": """
        import { mkdtemp, readFile, writeFile, readdir, stat, rm, open, access } from 'node:fs/promises'
        import { join } from 'node:path'
        const dir = await mkdtemp('tmp-'); await writeFile(join(dir, 'a.json'), JSON.stringify({ n: [1, 2] }))
        console.log(JSON.parse(await readFile(join(dir, 'a.json'), 'utf8')), await readdir(dir), (await stat(dir)).isDirectory())
        const file = await open(join(dir, 'b'), 'w'); await file.write('hello '); await file.writeFile('world'); await file.close()
        for await (const line of (await open(join(dir, 'b'))).readLines()) console.log(line)
        await rm(dir, { recursive: true }); await access(dir).catch((e) => console.log(e.code))
    """,
    "callbacks.js": """
        const fs = require('fs')
        fs.writeFile('c', 'one\\ntwo\\n', () => fs.readFile('c', 'utf8', (e, text) => { console.log(e, text); fs.unlink('c', () => fs.stat('c', (e) => console.log(e.code))) }))
    """,
    "streams.js": """
        const { Readable, Transform, pipeline } = require('stream'), fs = require('fs')
        const upper = new Transform({ transform(chunk, _, done) { done(null, String(chunk).toUpperCase()) } })
        pipeline(Readable.from(['a', 'b', 'c']), upper, fs.createWriteStream('s.txt'), (e) => { console.log(e, fs.readFileSync('s.txt', 'utf8'))
          fs.createReadStream('s.txt', { start: 1 }).on('data', (d) => console.log(d)).on('close', () => console.log('closed')) })
    """,
    "stream_promises.mjs": """
        import { pipeline } from 'node:stream/promises'; import { Readable } from 'node:stream'
        let total = 0; await pipeline(Readable.from([1, 2, 3]), async function* (source) { for await (const n of source) yield n * 2 }, async (source) => { for await (const n of source) total += n }); console.log(total)
    """,
    "events.js": """
        const { EventEmitter, once } = require('events'); const e = new EventEmitter(); e.once('x', (v) => console.log('once', v)); e.on('x', (v) => console.log('on', v))
        console.log(e.emit('x', 1), e.emit('x', 2), e.emit('y'), e.listenerCount('x')); once(e, 'z').then(([v]) => console.log('awaited', v)); e.emit('z', 9)
        try { e.emit('error', new Error('unheard')) } catch (error) { console.log(error.message) }
    """,
    "util.js": """
        const util = require('util'); console.log(util.format('%s %d %j %o', 'a', 1.5, { x: 1 }, [1]), util.inspect({ a: { b: { c: { d: 1 } } } }), util.isDeepStrictEqual([1, { a: 2 }], [1, { a: 2 }]))
        console.log(util.types.isDate(new Date()), util.inspect(new Proxy({}, {})), util.inspect(class A extends Map {}), [1.0, , 3], new Set('ab'), Buffer.from('hi'), [new Error('e').message])
        util.promisify((v, cb) => cb(null, v + 1))(1).then(console.log)
        console.log(util.styleText('red', 'x') === '\\x1b[31mx\\x1b[39m', util.parseArgs({ args: ['-f', '--bar', 'b'], options: { f: { type: 'boolean', short: 'f' }, bar: { type: 'string' } } }).values)
    """,
    "assert.js": """
        const assert = require('assert'); assert.strictEqual(1, 1); assert.deepStrictEqual({ a: [1] }, { a: [1] }); assert.throws(() => { throw new TypeError('x') }, TypeError)
        try { assert.strictEqual(1, 2) } catch (e) { console.log(e.code, e.name, e.actual, e.expected) } try { assert.deepEqual([1], [2], 'differs') } catch (e) { console.log(e.message) }
    """,
    "path_url.js": """
        const path = require('path'); console.log(path.join('a', '..', 'b', './c'), path.resolve('/a', '../b'), path.relative('/a/b/c', '/a/d'), path.parse('/x/y.tar.gz'), path.extname('.bashrc'), path.posix === path)
        const u = new URL('https://u:p@h.example:8080/p/a?q=1&q=2#f'); console.log(u.host, u.searchParams.getAll('q'), require('url').fileURLToPath('file:///a%20b'), require('querystring').parse('a=1&b=%20'))
    """,
    "buffer.js": """
        console.log(Buffer.from('aGk=', 'base64').toString(), Buffer.from('ff00', 'hex'), Buffer.concat([Buffer.from('a'), Buffer.alloc(2)]), Buffer.byteLength('é'), Buffer.from('abc').subarray(1).toString('hex'))
        const b = Buffer.alloc(8); b.writeUInt32BE(0xdeadbeef, 0); b.writeDoubleLE; console.log(b.readUInt16LE(1), b.equals(Buffer.from(b)), b.indexOf(0xbe), Buffer.compare(Buffer.from('a'), Buffer.from('b')))
    """,
    "crypto.js": """
        const c = require('crypto'); for (const h of ['md5', 'sha1', 'sha256', 'sha512']) console.log(h, c.createHash(h).update('a').update('b').digest('hex'))
        console.log(c.createHmac('sha256', 'key').update('data').digest('base64'), c.randomBytes(8).length, c.randomUUID().length, c.randomInt(5) < 5, c.timingSafeEqual(Buffer.from('a'), Buffer.from('a')))
    """,
    "children.js": """
        const { execSync, spawnSync, spawn, exec, execFileSync } = require('child_process')
        console.log(execSync('echo hi | tr a-z A-Z', { encoding: 'utf8' }), spawnSync('sh', ['-c', 'cat; exit 3'], { input: 'in' }).stdout.toString(), execFileSync('printf', ['%s-', 'a', 'b']).toString())
        try { execSync('exit 7', { stdio: 'pipe' }) } catch (e) { console.log(e.status, e.message) }
        console.log(spawnSync('no-such-command').error.code)
        const child = spawn('sh', ['-c', 'read x; echo got $x; echo no >&2; exit 4']); child.stdout.on('data', (d) => console.log(String(d))); child.stderr.on('data', (d) => console.log(String(d)))
        child.on('close', (code, signal) => { console.log(code, signal); exec('kill -TERM $$', (e) => console.log(e.signal, e.killed)) }); child.stdin.end('it\\n')
    """,
    "exec_promise.mjs": """
        import { promisify } from 'node:util'; import { exec } from 'node:child_process'
        const { stdout } = await promisify(exec)('echo $((6 * 7))'); console.log(stdout.trim()); try { await promisify(exec)('exit 2') } catch (e) { console.log(e.code) }
    """,
    "timers.js": """
        setTimeout(() => console.log('later'), 500); setTimeout(() => console.log('sooner'), 1); const i = setInterval(() => { console.log('tick'); clearInterval(i) }, 5)
        process.nextTick(() => console.log('tick of next')); Promise.resolve().then(() => console.log('microtask')); console.log('first'); setTimeout(() => {}, 100000).unref()
    """,
    "timers_promises.mjs": "import { setTimeout as sleep } from 'node:timers/promises'; console.log(await sleep(5, 'slept'))",
    "require.js": """
        require('fs').writeFileSync('lib.js', 'exports.n = (exports.n || 0) + 1; exports.file = __filename.split("/").pop(); exports.main = require.main === module'); require('fs').mkdirSync('dir', { recursive: true })
        require('fs').writeFileSync('dir/index.js', 'module.exports = class Thing {}'); require('fs').writeFileSync('data.json', '{"k": [1]}')
        console.log(require('./lib'), require('./lib.js') === require('./lib'), new (require('./dir'))(), require('./data').k, require.main === module, module.id)
        try { require('./none') } catch (e) { console.log(e.code, e.message.split('\\n')[0]) } try { require('left-pad') } catch (e) { console.log(e.code) }
    """,
    "cycle.cjs": """
        const fs = require('fs'); fs.writeFileSync('a.cjs', "exports.done = false; const b = require('./b.cjs'); console.log('in a', b.done); exports.done = true")
        fs.writeFileSync('b.cjs', "exports.done = false; const a = require('./a.cjs'); console.log('in b', a.done); exports.done = true"); console.log(require('./a.cjs'))
    """,
    "modules.mjs": """
        import fs from 'node:fs'; fs.writeFileSync('m.mjs', 'export let n = 1; export const add = (x) => (n += x); export default function named() { return n } export { add as plus }; export * from "./o.mjs"')
        fs.writeFileSync('o.mjs', 'export const o = "o"; export class K { static s = import.meta.url.endsWith("o.mjs") }'); fs.writeFileSync('q.cjs', 'exports.q = 1; exports.r = "r"')
        const m = await import('./m.mjs'); console.log(Object.keys(m).sort(), m.add(2), m.n, m.default(), m.o, m.K.s); const q = await import('./q.cjs'); console.log(q.default, q.q)
        await import('./nope.mjs').catch((e) => console.log(e.code)); console.log(typeof require, import.meta.dirname === process.cwd(), this)
    """,
    "packages.js": """
        const fs = require('fs'); fs.mkdirSync('node_modules/@s/p/dist', { recursive: true }); fs.mkdirSync('node_modules/old', { recursive: true })
        fs.writeFileSync('node_modules/@s/p/package.json', JSON.stringify({ name: '@s/p', exports: { '.': { import: './dist/i.mjs', require: './dist/r.cjs' }, './x/*': './dist/*.cjs', './secret': null } }))
        fs.writeFileSync('node_modules/@s/p/dist/i.mjs', 'export default "import"'); fs.writeFileSync('node_modules/@s/p/dist/r.cjs', 'module.exports = "require"')
        fs.writeFileSync('node_modules/old/package.json', '{"main": "lib"}'); fs.writeFileSync('node_modules/old/lib.js', 'module.exports = "main"')
        console.log(require('@s/p'), require('@s/p/x/r'), require('old')); for (const n of ['@s/p/secret', '@s/p/dist/r.cjs']) try { require(n) } catch (e) { console.log(e.code) }
        import('@s/p').then((m) => console.log(m.default))
    """,
    "typescript.ts": """
        interface P { name: string; age?: number }
        const make = <T extends P>(p: T): T => p; type Id = string | number
        class Box<T> { private value: T; constructor(value: T) { this.value = value } get(): T { return this.value } }
        console.log(make({ name: 'a' } as P), new Box<Id>(3).get(), ([1, 2] satisfies number[]).length)
    """,
    "json.js": """
        const rows = Array.from({ length: 5 }, (_, i) => ({ id: i, tag: 'ab'[i % 2], score: i ** 2 })); const groups = Object.groupBy(rows, (r) => r.tag)
        console.log(JSON.stringify(groups, null, 1), Object.entries(groups).map(([k, v]) => [k, v.reduce((s, r) => s + r.score, 0)])); console.table(rows.slice(0, 2)); console.error('not here')
        console.log(structuredClone(new Map([[{ a: 1 }, new Date(0)]])), [3, 1, 2].toSorted(), 'x'.padStart(3), (12345.678).toLocaleString('en-US').length > 0)
    """,
    "fails.js": "function inner() {\n  throw new RangeError('too far')\n}\ninner()",
    "rejects.js": "Promise.reject(new Error('nobody cares'))",
    "exits.js": "process.on('exit', (code) => console.log('exiting', code)); process.exitCode = 3; setTimeout(() => console.log('last'), 1)",
    "exits_now.js": "process.on('exit', (c) => console.log('bye', c)); process.exit(9); console.log('never')",
    "syntax.js": "let x = ;",
    "catches.js": "process.on('uncaughtException', (e) => { console.log('caught', e.message); process.exit(4) }); setTimeout(() => { throw new Error('late') }, 1)",
    "environment.js": "process.env.NEW = 1; console.log(process.env.NEW, process.env.NONE, 'HOME' in process.env, delete process.env.NEW, process.env.NEW); process.chdir('/tmp'); console.log(process.cwd())",
    "readline.js": """
        const rl = require('readline').createInterface({ input: process.stdin }); let n = 0; rl.on('line', (line) => console.log(++n, line)).on('close', () => console.log('end'))
    """,
    "stdin.mjs": "let text = ''; for await (const chunk of process.stdin) text += chunk; console.log(text.split('\\n').length, text.length)",
    "webapis.js": """
        console.log(new TextDecoder().decode(new TextEncoder().encode('é')), btoa('a'), typeof fetch, typeof AbortController, new URLSearchParams({ a: 1 }).toString(), typeof performance.now(), new Headers({ a: 'b' }).get('A'))
        const c = new AbortController(); c.signal.addEventListener('abort', () => console.log('aborted')); c.abort(); queueMicrotask(() => console.log('micro'))
    """,
    "test_runner.js": """
        const tests = []; const test = (name, f) => tests.push([name, f]); const assert = require('node:assert/strict')
        test('adds', () => assert.equal(1 + 1, 2)); test('fails', () => assert.equal(1, 2)); test('awaits', async () => assert.deepEqual(await Promise.resolve([1]), [1]))
        ;(async () => { let bad = 0; for (const [name, f] of tests) try { await f(); console.log('ok', name) } catch (e) { bad++; console.log('not ok', name, e.code) } process.exitCode = bad })()
    """,
}
STDIN = "one\ntwo words\nthree"


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_says_what_it_says_to_node(name: str, sandbox: Sandbox, tmp_path: Path, engine: str) -> None:
    home = f"/workspace/{engine}/{name.replace('.', '_')}"
    sandbox.files.write(f"{home}/{name}", SCRIPTS[name])
    (tmp_path / name).write_text(SCRIPTS[name])
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/root"}
    real = subprocess.run(
        [str(node()), name, "-x", "arg"],
        cwd=tmp_path,
        env=environment,
        input=STDIN,
        capture_output=True,
        text=True,
        timeout=60,
    )
    ours = sandbox.exec(["node", name, "-x", "arg"], cwd=home, stdin=STDIN, timeout=60)
    assert (ours.stdout, ours.exit_code) == (real.stdout, real.returncode), ours.stderr


@pytest.mark.parametrize(
    ("command", "stdout"),
    [
        ("node -e 'console.log(require(\"fs\") === fs, process.argv.length)' a", "true 2\n"),
        ("node -p '[1, 2].map((x) => x * 2)'", "[ 2, 4 ]\n"),
        ("echo 'console.log(\"piped\", process.argv[2])' | node - x", "piped x\n"),
        ("node --input-type=module -e 'import os from \"os\"; console.log(typeof os.cpus, await 1)'", "function 1\n"),
        ("printf '#!/usr/bin/env node\\nconsole.log(\"script\")' > s; chmod +x s; ./s", "script\n"),
        ("ln -s /usr/bin/node $'/tmp/\\xff'; $'/tmp/\\xff' -e 'console.log(process.execPath)'", "/tmp/\ufffd\n"),
        ("node -e 'throw 1' 2>/dev/null || echo $?", "1\n"),
        ("node --bogus 2>&1; echo $?", "node: bad option: --bogus\n9\n"),
        ("node -e 'while (true) {}' & sleep 0.2; kill $!; wait $! 2>/dev/null; echo $?", "143\n"),
        ("node -e 'console.log(\"x\".repeat(300000))' | wc -c", "300001\n"),
        # As with Node itself, only a time limit ends a loop that nobody reads.
        ("node -e 1; timeout 5 node -e 'for (;;) console.log(1)' | head -n 2", "1\n1\n"),
        (
            "node -e 'new (require(\"worker_threads\").Worker)(\"\", { eval: true })' 2>&1 | grep -o 'in this sandbox'",
            "in this sandbox\n",
        ),
    ],
)
def test_ways_to_start_it(command: str, stdout: str, sandbox: Sandbox, engine: str) -> None:
    assert sandbox.exec(command, timeout=60).stdout == stdout
