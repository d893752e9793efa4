"""Node's own modules in a sandbox: each program is run by both, and says the same."""
# ruff: noqa: E501 - other people's programs are not wrapped

from __future__ import annotations

from pathlib import Path

import pytest

from belljar import Network, Sandbox
from tests.engines.js.both import say_both
from tests.net.servers import HttpServer, Response

PROGRAMS: dict[str, str] = {
    "crypto.js": r"""
const c=require("crypto"); console.log(c.createHash("sha256").update("a").digest("hex"), c.createHmac("sha1","k").update("d").digest("base64"), c.randomBytes(4).length, c.pbkdf2Sync("a","b",10,16,"sha256").toString("hex"), c.scryptSync("a","b",16)); const k=c.randomBytes(32), iv=c.randomBytes(16); const ci=c.createCipheriv("aes-256-cbc",k,iv); const e=ci.update("hi","utf8","hex")+ci.final("hex"); const d=c.createDecipheriv("aes-256-cbc",k,iv); console.log(d.update(e,"hex","utf8")+d.final("utf8")); const {publicKey,privateKey}=c.generateKeyPairSync("ed25519"); console.log(c.verify(null,Buffer.from("x"),publicKey,c.sign(null,Buffer.from("x"),privateKey)), publicKey.export({type:"spki",format:"pem"}).split("\n")[0]); crypto.subtle.digest("SHA-256",new Uint8Array(3)).then(x=>console.log(x)); c.randomInt(5,(e,v)=>console.log(typeof v)); console.log(crypto.randomUUID().length, c.getHashes().length); try { c.createHash("nope") } catch(e) { console.log(e.code, e.message) }
c.pbkdf2('a','b',10,16,'sha1',(e,k)=>console.log(e,k));
(async()=>{ const k=await crypto.subtle.generateKey({name:'HMAC',hash:'SHA-256'},true,['sign','verify']); const s=await crypto.subtle.sign('HMAC',k,new TextEncoder().encode('x')); console.log(s.byteLength, await crypto.subtle.verify('HMAC',k,s,new TextEncoder().encode('x')));
const a=await crypto.subtle.generateKey({name:'AES-GCM',length:256},true,['encrypt','decrypt']); const iv=new Uint8Array(12); const ct=await crypto.subtle.encrypt({name:'AES-GCM',iv},a,new TextEncoder().encode('hey')); console.log(new TextDecoder().decode(await crypto.subtle.decrypt({name:'AES-GCM',iv},a,ct)), k);
const jwk = await crypto.subtle.exportKey('jwk', a); console.log(Object.keys(jwk), c.createPublicKey(privateKey).asymmetricKeyType, privateKey);
const r=c.generateKeyPairSync('rsa',{modulusLength:1024}); const sig=c.createSign('sha256').update('x').sign(r.privateKey); console.log(sig.length, c.createVerify('sha256').update('x').verify(r.publicKey,sig), r.publicKey.asymmetricKeyDetails);
const g=c.createCipheriv('aes-128-gcm',Buffer.alloc(16),Buffer.alloc(12)); g.setAAD(Buffer.from('aad')); console.log(g.update('x','utf8','hex')+g.final('hex'), g.getAuthTag()); const dg=c.createDecipheriv('aes-128-gcm',Buffer.alloc(16),Buffer.alloc(12)); dg.setAuthTag(Buffer.alloc(16)); try{dg.update('aa','hex');dg.final()}catch(e){console.log(e.message,e.code)}
const dh=c.createECDH('secp256k1'); dh.generateKeys(); console.log(dh.getPublicKey('hex').length, c.timingSafeEqual(Buffer.from('a'),Buffer.from('a')), c.hash('md5','x'), c.createSecretKey(Buffer.from('abc')).export());
})().catch(e=>console.log('ERR',e));
""",
    "files.js": r"""
const fs = require('fs'), path = require('path'); fs.mkdirSync('d/e', { recursive: true }); fs.writeFileSync('d/e/f', 'x'); fs.writeFileSync('d/g', 'y')
const dir = fs.opendirSync('d'); let n = 0; for (let x; (x = dir.readSync());) n++; dir.closeSync(); console.log(n);
(async () => { for await (const x of await fs.promises.opendir('d', { recursive: true })) n++; console.log(n); fs.cpSync('d', 'c', { recursive: true }); console.log(fs.readdirSync('c', { recursive: true }).sort()); await fs.promises.cp('d', 'c2', { recursive: true }); console.log(fs.existsSync('c2/e/f')); console.log(fs.statSync('none', { throwIfNoEntry: false }), fs.statfsSync('/').type >= 0); fs.rmSync('d', { recursive: true }); try { fs.rmSync('d') } catch (e) { console.log(e.code, e.message) } fs.rmSync('d', { force: true })
const h = await fs.promises.open('h', 'w+'); await h.write('hello'); console.log((await h.read(Buffer.alloc(5), 0, 5, 0)).buffer.toString(), (await h.stat()).size); await h.truncate(2); console.log(await fs.promises.readFile('h', 'utf8')); await h.close(); const s = fs.createWriteStream('big'); for (let i = 0; i < 1000; i++) s.write('line ' + i + '\n'); s.end(); await require('events').once(s, 'close'); console.log(fs.statSync('big').size); let c = 0; for await (const chunk of fs.createReadStream('big', { highWaterMark: 100 })) c += chunk.length; console.log(c); console.log(fs.readFileSync('big').length, fs.globSync('c/**').sort(), await fs.promises.access('zz').catch((e) => e.code), fs.realpathSync('c/../h'), fs.mkdtempSync('/tmp/a-').length); fs.utimesSync('h', 1, 2); console.log(fs.statSync('h').mtimeMs, fs.lstatSync('h', { bigint: true }).mtimeNs); fs.writeFileSync('a.txt', 'q', { flag: 'a' }); fs.appendFileSync('a.txt', 'r'); console.log(fs.readFileSync('a.txt', 'utf8')); const fd = fs.openSync('a.txt'); console.log(fs.readFileSync(fd, 'utf8')); fs.closeSync(fd); try { fs.openSync('/nope/x', 'w') } catch (e) { console.log(e.message) } console.log(fs.readvSync(fs.openSync('a.txt'), [Buffer.alloc(1), Buffer.alloc(1)])); for (const m of ['readFile', 'readdir', 'stat']) await fs.promises[m]('nope').catch((e) => console.log(e.message, e.stack.split('\n').length)); const w = fs.watchFile && 1; console.log(w, fs.readdirSync('.', { withFileTypes: true }).map((d) => [d.name, d.isFile(), d.parentPath === '.'])[0]); console.log(process.umask().toString(8), process.cwd() === __dirname); process.chdir('c'); console.log(process.cwd().endsWith('/c')); try { process.chdir('nope') } catch (e) { console.log(e.message) } })()
""",
    "bytes.js": r"""
const { once, EventEmitter } = require('events'); const ee = new EventEmitter(); setTimeout(() => ee.emit('x', 1), 1); once(ee, 'x').then(console.log); const { pipeline } = require('stream/promises'); const zlib = require('zlib'), { Readable, Writable } = require('stream'); pipeline(Readable.from(['a'.repeat(100000)]), zlib.createGzip(), zlib.createGunzip(), async function (src) { let n = 0; for await (const c of src) n += c.length; console.log(n) }); console.log(new Blob(['a']).size, new File(['x'], 'n').name); new Blob(['hello']).text().then(console.log); console.log(require('buffer').constants.MAX_LENGTH, Buffer.from([1, 2, 3]).lastIndexOf(2), Buffer.from('abcabc').indexOf('ca'), Buffer.from('aXbX').lastIndexOf('X'), Buffer.from('ab\u20ac', 'utf16le').indexOf('\u20ac', 0, 'utf16le'), Buffer.from('test').fill('ab').toString(), Buffer.from('616263', 'hex').toString('ascii'), Buffer.alloc(3, 'é'), Buffer.from('zz').compare(Buffer.from('za')), Buffer.from('x').swap16 && 1, Buffer.from('aGVsbG8', 'base64url').toString(), require('buffer').transcode(Buffer.from('é'), 'utf8', 'latin1')); console.log(new TextDecoder('utf-16le').decode(new Uint8Array([104, 0])), new TextDecoder('latin1').decode(new Uint8Array([233])), new TextEncoder().encodeInto('héé', new Uint8Array(4))); console.log(require('util').inspect(new Proxy({ a: 1 }, {}), { showProxy: true }), require('util').types.isProxy(new Proxy({}, {})), [1, 2, 3].values(), new Map([[1, 2]]).entries(), (function* () { })(), async () => { }, class A { }, Symbol('x'), new WeakMap(), Promise.resolve(4), new (class Foo extends Map { })([[1, 2]]))
""",
    "server.js": r"""
const http = require('http'); const s = http.createServer((q, r) => { let b = ''; q.on('data', (d) => b += d); q.on('end', () => { r.setHeader('x-a', 'b'); r.end(q.method + q.url + b) }) }); s.listen(0, () => { const { port } = s.address(); http.get({ port, path: '/p' }, (r) => { console.log(r.statusCode, r.headers['x-a']); r.on('data', (d) => console.log(String(d))); r.on('end', async () => { const x = await fetch(`http://localhost:${port}/f`, { method: 'POST', body: 'body' }); console.log(x.status, await x.text(), x.headers.get('x-a')); s.close(() => console.log('closed')); s.closeAllConnections() }) }) })
""",
    "many.mjs": r"""
import fs from 'node:fs'; import { setTimeout as sleep } from 'node:timers/promises'; import { parseArgs, styleText } from 'node:util'; import { AsyncLocalStorage, createHook, executionAsyncId } from 'node:async_hooks'; import { performance, PerformanceObserver } from 'node:perf_hooks'; import { createRequire, builtinModules, isBuiltin } from 'node:module'; import v8 from 'node:v8'; import vm from 'node:vm'; import dc from 'node:diagnostics_channel'; import worker from 'node:worker_threads'; import os from 'node:os'; import tty from 'node:tty'; import readline from 'node:readline'; import http from 'node:http'; import https from 'node:https'; import net from 'node:net'; import dns from 'node:dns'; import zlib from 'node:zlib'; import test from 'node:test'; import cluster from 'node:cluster'; import sd from 'node:string_decoder'; import { Readable } from 'node:stream'
const als = new AsyncLocalStorage(); await als.run({ id: 1 }, async () => { await sleep(1); console.log('als', als.getStore()); setTimeout(() => console.log('als2', als.getStore()), 1); process.nextTick(() => console.log('als3', als.getStore())) }); await sleep(5); console.log(als.getStore())
console.log(builtinModules.length, isBuiltin('fs'), isBuiltin('node:test'), isBuiltin('test'))
const require = createRequire(import.meta.url); console.log(require('fs') === fs, require.resolve('fs'), typeof require.cache)
console.log(v8.deserialize(v8.serialize({ a: [1, new Map([[1, { b: 2 }]])], d: new Date(0), u: new Uint8Array([1,2]) })), Object.keys(v8.getHeapStatistics()).length)
console.log(vm.runInThisContext('1 + 1'), new vm.Script('x = 7').runInThisContext(), globalThis.x, vm.isContext({}))
console.log(worker.isMainThread, worker.threadId, worker.parentPort);
const { port1, port2 } = new MessageChannel(); port2.on('message', (m) => { console.log('msg', m); port2.close() }); port1.postMessage({ hi: [1] })
dc.subscribe('x', (m, n) => console.log('dc', m, n)); dc.channel('x').publish({ a: 1 })
console.log(typeof performance.now(), performance.timeOrigin > 1e12, performance.mark('a').name, performance.measure('m', 'a').name, typeof performance.eventLoopUtilization().idle)
console.log(parseArgs({ args: ['-f', '--bar', 'b'], options: { f: { type: 'boolean', short: 'f' }, bar: { type: 'string' } } }).values, styleText('red', 'x', { validateStream: false }))
console.log(structuredClone(new Map([[1, new Set([2])]])), Object.keys(process.memoryUsage()), typeof process.hrtime.bigint(), process.resourceUsage().userCPUTime > 0)
console.log(net.isIP('1.2.3.4'), http.STATUS_CODES[404], https.globalAgent.protocol, dns.getServers().length >= 0, tty.isatty(1), typeof os.cpus().length, cluster.isPrimary)
console.log(await new Promise((r) => zlib.gzip('x', (e, b) => r(zlib.gunzipSync(b).toString()))))
console.log(new sd.StringDecoder('utf8').write(Buffer.from([0xe2, 0x82])) === '', Buffer.from('héllo').toString('latin1'))
const rl = readline.createInterface({ input: Readable.from(['a\nb\n', 'c']) }); for await (const l of rl) console.log('line', l)
console.log(await import('./data.json', { with: { type: 'json' } }).catch((e) => e.code)); try { await import('./nojson.json') } catch (e) { console.log(e.code) }
console.log(typeof navigator, typeof WebSocket, typeof fetch, typeof URLPattern, new URLPattern({ pathname: '/a/:b' }).exec('http://x/a/c').pathname.groups)
console.log(new Intl.NumberFormat('de').format(1234.5), 'ä'.localeCompare('z', 'de'), new Date(0).toLocaleDateString('en-US', { timeZone: 'UTC' }))
queueMicrotask(() => console.log('micro')); process.nextTick(() => console.log('tick')); await 1; console.log('after await')
console.log(Object.getOwnPropertyNames(globalThis).filter((n) => !n.startsWith('_')).sort().join())
""",
    "warnings.js": "process.emitWarning('old', 'DeprecationWarning', 'DEP0'); process.emitWarning('new'); new Buffer(1)",
    "zlib.js": "const zlib = require('zlib'); for (const [a, b] of [['gzipSync', 'gunzipSync'], ['deflateSync', 'inflateSync'], ['deflateRawSync', 'inflateRawSync'], ['brotliCompressSync', 'brotliDecompressSync'], ['zstdCompressSync', 'zstdDecompressSync']]) console.log(a, zlib[b](zlib[a]('text '.repeat(1000))).length, zlib[a]('x').toString('hex')); console.log(zlib.crc32('abc'), zlib.gzipSync('d', { level: 9, dictionary: undefined }).length); try { zlib.gunzipSync(Buffer.from('nope')) } catch (e) { console.log(e.code, e.errno, e.message) } zlib.createGunzip().on('error', (e) => console.log(e.code)).end('bad')",
    "stores.mjs": "import { AsyncLocalStorage, AsyncResource, executionAsyncId } from 'node:async_hooks'; const store = new AsyncLocalStorage(); const f = async (n) => { await null; await new Promise((r) => setTimeout(r, 3 - n)); return [n, store.getStore()] }; console.log(await Promise.all([1, 2].map((n) => store.run(n * 10, f, n))), store.getStore(), typeof executionAsyncId()); const bound = store.run('kept', () => AsyncResource.bind(() => store.getStore())); console.log(bound(), store.run(1, () => store.exit(() => store.getStore())))",
    "timing.js": "const order = []; setTimeout(() => order.push('t1'), 1); setTimeout(() => order.push('t0'), 0); const i = setInterval(() => { order.push('i'); if (order.filter((x) => x === 'i').length === 2) { clearInterval(i); console.log(order.join()) } }, 20); process.nextTick(() => Promise.resolve().then(() => order.push('p')).then(() => order.push('p2'))); process.nextTick(() => order.push('n')); const t = setTimeout(() => {}, 1e6); t.unref(); console.log(t.hasRef(), typeof t[Symbol.toPrimitive]()); require('timers/promises').setTimeout(1, 'v').then(console.log); require('util').promisify(setTimeout)(1, 'w').then(console.log)",
}

pytestmark = pytest.mark.usefixtures("v8")


@pytest.mark.parametrize("name", PROGRAMS)
def test_modules_of_nodes_own_do_what_they_do_there(name: str, sandbox: Sandbox, tmp_path: Path) -> None:
    ours, real = say_both(sandbox, f"/workspace/{name.replace('.', '_')}", tmp_path, {name: PROGRAMS[name]}, [name])
    assert ours == real
    assert ours.status == 0


def test_web_requests_go_to_the_network() -> None:
    code = """
        const http = require('http'), url = process.argv[1];
        http.get(url + '/a', (r) => { let t = ''; r.on('data', (d) => t += d); r.on('end', async () => {
          console.log(r.statusCode, r.headers['content-type'] !== undefined, t);
          const f = await fetch(url + '/echo', { method: 'POST', body: 'sent', headers: { 'x-a': 'b' } }); console.log(f.status, await f.text());
          const q = http.request(url + '/echo', { method: 'PUT' }, (r) => r.on('data', (d) => console.log(String(d)))); q.write('one '); q.end('two');
          await fetch('http://other.example/').catch((e) => console.log(e.message, e.cause.code)) }) })
    """
    server = HttpServer({"/a": "text", "/echo": lambda request: Response(200, request.body)})
    with server, Sandbox(network=Network.allow(server.authority)) as sandbox:
        said = sandbox.exec(["node", "-e", code, server.url], timeout=60)
    lines = said.stdout.splitlines()
    assert lines[:2] == ["200 true text", "200 sent"], said.stderr
    assert sorted(lines[2:]) == ["fetch failed EACCES", "one two"]


def test_without_a_network_it_is_refused_in_nodes_way(sandbox: Sandbox) -> None:
    code = "fetch('http://example.com').catch((e) => console.log('fetch', e.cause.code, e.cause.message)); require('https').get('https://example.com').on('error', (e) => console.log('https', e.code)); require('dns').lookup('example.com', (e) => console.log('dns', e.code)); require('net').connect(80, '192.0.2.1').on('error', (e) => console.log('net', e.code))"
    said = sandbox.exec(["node", "-e", code], timeout=60).stdout.splitlines()
    assert sorted(said) == [
        "dns EACCES",
        "fetch EACCES this sandbox was granted no network",
        "https EACCES",
        "net EACCES",
    ]


def test_the_prompt(sandbox: Sandbox) -> None:
    typed = "const a = 5\na * 2\nfoo.bar\n({ x: [1] })\nfunction f() {\nreturn 3\n}\nf()\n.exit\n"
    said = sandbox.exec(["node", "-i"], stdin=typed, timeout=60)
    answers = said.stdout.replace("| ", "").split("> ")[1:]
    assert answers == [
        "undefined\n",
        "10\n",
        "Uncaught ReferenceError: foo is not defined\n",
        "{ x: [ 1 ] }\n",
        "undefined\n",
        "3\n",
        "",
    ]
    assert said.exit_code == 0


def test_the_test_runner(sandbox: Sandbox) -> None:
    sandbox.files.write(
        "/workspace/t/a.test.mjs",
        "import { test, describe, it } from 'node:test'; import assert from 'node:assert'; test('adds', () => assert.equal(1 + 1, 2)); describe('group', () => { it('fails', () => assert.ok(false)); it.skip('later') })",
    )
    sandbox.files.write(
        "/workspace/t/b.test.js", "require('node:test')('second', async (t) => { await t.test('inner', () => {}) })"
    )
    said = sandbox.exec("node --test --test-reporter=tap", cwd="/workspace/t", timeout=60)
    assert said.exit_code == 1
    for line in (
        "ok 1 - adds",
        "not ok 2 - group",
        "    not ok 1 - fails",
        "ok 3 - second",
        "# pass 3",
        "# fail 1",
        "# skipped 1",
    ):
        assert line in said.stdout.splitlines(), said.stdout
