"""What guest code tries against the page it runs in: programs of Python, JavaScript and WebAssembly."""

from __future__ import annotations

ANY_JAVASCRIPT = "import _belljar_host; F = _belljar_host.call.constructor; "
"""The constructor of functions, from the one function of JavaScript that a guest always has."""
ATTACKS = {
    "the js module": "import js; js.fetch",
    "pyodide_js": "import pyodide_js; pyodide_js._module",
    "run_js": "from pyodide.code import run_js; run_js('globalThis')",
    "eval by a constructor": ANY_JAVASCRIPT + "F('return globalThis')()",
    "fetch by a constructor": ANY_JAVASCRIPT + "F('return fetch(\"{server}\")')()",
    "import of a remote module": ANY_JAVASCRIPT + "F('return import(\"{server}/x.mjs\")')()",
    "XMLHttpRequest": ANY_JAVASCRIPT + 'F(\'r = new XMLHttpRequest; r.open("GET", "{server}", false); r.send()\')()',
    "WebSocket": ANY_JAVASCRIPT + 'F(\'return new WebSocket("{server}".replace("http", "ws"))\')()',
    "another worker": ANY_JAVASCRIPT + "F('return new Worker(\"data:text/javascript,fetch(`{server}`)\")')()",
    "urllib": "import urllib.request; urllib.request.urlopen('{server}')",
    "a socket": "import socket; socket.create_connection(('{host}', {port}), 5)",
    "pyfetch": "import asyncio\nfrom pyodide.http import pyfetch\nasyncio.run(pyfetch('{server}'))",
}

JS_ATTACKS = {
    "fetch": "fetch('{server}').then(() => process.exit(0), () => process.exit(9))",
    "XMLHttpRequest": "const r = new XMLHttpRequest(); r.open('GET', '{server}', false); r.send()",
    "WebSocket": "new WebSocket('{server}'.replace('http', 'ws'))",
    "EventSource": "new EventSource('{server}')",
    "sendBeacon": "navigator.sendBeacon('{server}')",
    "import of a remote module": "import('{server}/x.mjs').then(() => process.exit(0), () => process.exit(9))",
    "require of a remote module": "require('{server}/x.js')",
    "http": "require('http').get('{server}', () => process.exit(0)).on('error', () => process.exit(9))",
    "a socket": "require('net').connect({port}, '{host}', () => process.exit(0)).on('error', () => process.exit(9))",
    "the document's cookies": "document.cookie.length",
    "local storage": "localStorage.secret.length",
    "a database of the origin": "indexedDB.open('x').toString()",
    "caches of the origin": "caches.open('x').toString()",
    "other tabs": "new BroadcastChannel('x').postMessage(1)",
    "a worker": "new Worker('data:text/javascript,fetch(`{server}`)')",
    "a thread": "new (require('worker_threads').Worker)('1', { eval: true }).on('error', () => process.exit(9))",
    "messages to the kernel's worker": "postMessage({ ended: true })",
    "the worker by a constructor": "console.log.constructor('return self')().close()",
    "the worker by an error": "try { fs.readFileSync('/no') } catch (e) { e.constructor.constructor('return self')() }",
    "the worker by an async function": "(async () => {}).constructor('self.close()')().catch(() => process.exit(9))",
    "WebAssembly": "new WebAssembly.Memory({ initial: 1 })",
    "the engine's own functions": "process.binding('natives').length.x.y",
}
"""Programs for `node`: each ends with an error, and reaches nobody."""
CPU_BOMBS = (
    "for (;;);",
    "/^(a+)+$/.test('a'.repeat(60) + '!')",
    "while (true) eval('1')",
    "'x'.repeat(2 ** 25).split('').sort()",
)
MEMORY_BOMBS = (
    "let s = 'x'; for (;;) s += s",
    "const a = []; for (;;) a.push(new Uint8Array(1e7).fill(1))",
    "const a = []; for (;;) try { a.push('x'.repeat(1e6) + a.length) } catch { }",
    "new Array(2 ** 31).fill(1)",
)
IMPORTS = """(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
 (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
 (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
 (import "belljar" "call" (func $call (param i32 i32 i32 i32) (result i32)))
 (memory (export "memory") 1)"""
START = '(memory (export "memory") 1) (func (export "_start"))'
WASM_ATTACKS = {
    "a function of JavaScript": (f'(import "wasi_snapshot_preview1" "constructor" (func)) {START}', 126),
    "a prototype": (f'(import "__proto__" "toString" (func)) {START}', 126),
    "the worker": (f'(import "env" "postMessage" (func (param i32))) {START}', 126),
    "a memory of another's": ('(import "env" "memory" (memory 1)) (func (export "_start"))', 126),
    "more memory than there is": (
        f"""{IMPORTS} (func (export "_start")
        (loop (br_if 0 (i32.ne (memory.grow (i32.const 64)) (i32.const -1))))
        (i32.store (i32.const 0x7ffffff0) (i32.const 1)))""",
        134,
    ),
    "a table without end": (
        f"""{IMPORTS} (table 1 externref) (func (export "_start")
        (loop (br_if 0 (i32.ne (table.grow (ref.null extern) (i32.const 100000)) (i32.const -1)))))""",
        0,
    ),
    "a path out of its root": (
        f"""{IMPORTS} (data (i32.const 0) "../../../../../../etc/shadow-of-the-host") (func (export "_start")
        (call $exit (call $open (i32.const 3) (i32.const 1) (i32.const 0) (i32.const 40) (i32.const 0) (i64.const 2)
          (i64.const 0) (i32.const 0) (i32.const 64))))""",
        44,
    ),
    "a call that is not for it": (
        f"""{IMPORTS} (data (i32.const 0) "\\34\\00\\ff\\ff\\ff\\ff") (func (export "_start")
        (call $exit (i32.sub (i32.const 0) (call $call (i32.const 0) (i32.const 6) (i32.const 64) (i32.const 64)))))""",
        52,
    ),
    "a call while it has no memory": (
        f"""{IMPORTS} (func $s (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
        (start $s) (func (export "_start"))""",
        0,
    ),
}
"""WebAssembly programs, and how they end."""
ASK_PROBE = """async ([script, url]) => new Promise((resolve, reject) => {
    const worker = new Worker(script, { type: "module" });
    worker.onerror = (event) => reject(new Error(event.message));
    worker.onmessage = ({ data }) => (data === "ready" ? worker.postMessage(url) : resolve(data));
})"""
PROBE = """
const tries = {
  fetch: (url) => fetch(url),
  xhr: (url) => { const r = new XMLHttpRequest(); r.open("GET", url, false); r.send(); },
  import: (url) => import(`${url}/x.mjs`),
  worker: (url) => new Promise((resolve, reject) => {
    const worker = new Worker(`data:text/javascript,fetch("${url}").then(() => postMessage(1), () => postMessage(0))`);
    worker.onmessage = ({ data }) => (data ? resolve() : reject(new Error("blocked")));
    worker.onerror = () => reject(new Error("blocked"));
  }),
  socket: (url) => new Promise((resolve, reject) => {
    const socket = new WebSocket(url.replace("http", "ws"));
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("blocked"));
  }),
  eval: () => eval("1"),
};
self.onmessage = async ({ data }) => {
  const done = [];
  for (const [name, act] of Object.entries(tries)) {
    try {
      await act(data);
      done.push(name);
    } catch { /* as it should be */ }
  }
  self.postMessage(done);
};
self.postMessage("ready");
"""
"""A worker's script that has everything a worker has, and tries to get out."""
