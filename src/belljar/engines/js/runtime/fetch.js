// fetch, Request, Response, Headers, FormData: undici, which Node carries, over one host function instead of sockets.
'use strict';

const { Error, ObjectDefineProperty, Promise, SafeMap, TypeError, Uint8Array } = primordials;

class Absent {} // what undici extends or instantiates only when it opens connections itself
const stubs = new SafeMap([
  ['node:http', { METHODS: [], STATUS_CODES: {}, maxHeaderSize: 16384, Agent: Absent, globalAgent: {} }],
  ['node:net', { Socket: Absent, connect() {}, isIP: () => 0 }],
  ['node:tls', { connect() {} }],
  ['node:zlib', { constants: {} }],
  ['node:crypto', { randomFillSync: native.random, getHashes: () => [] }],
  ['node:worker_threads', { markAsUncloneable() {}, isMainThread: true }],
  ['node:async_hooks', { AsyncResource: class AsyncResource { runInAsyncScope(callback, self, ...values) { return primordials.ReflectApply(callback, self, values); } emitDestroy() {} } }],
  ['node:perf_hooks', { performance: { now: require('belljar/clock').now, timeOrigin: 0, markResourceTiming() {} } }],
  ['node:sqlite', {}],
]);
const web = { ...require('belljar/web'), Buffer: require('buffer').Buffer, MessagePort: Absent };
const names = primordials.ObjectKeys(web); // undici finds them on the global object, which is the guest's to change
const undici = { exports: {} };
const load = native.compile('internal/deps/undici/undici', ['exports', 'require', 'module', 'process', ...names]);
load(undici.exports, (id) => stubs.get(id) ?? require(id), undici, process, ...names.map((name) => web[name]));
const { FormData, Headers, Request, Response } = undici.exports;

let transport; // the host's function, where it has one

// The host's function gets (url, {method, headers, body}) and gives {status, statusText, headers, body, url}.
async function fetch(input, init) {
  const request = new Request(input, init);
  if (transport === undefined) {
    throw new TypeError('fetch failed', { cause: new Error('there is no network here: the host has granted none') });
  }
  request.signal.throwIfAborted();
  const body = request.body === null ? null : new Uint8Array(await request.arrayBuffer());
  const aborted = new Promise((_, reject) => {
    request.signal.addEventListener('abort', () => reject(request.signal.reason), { once: true });
  });
  const asked = transport(request.url, { method: request.method, headers: [...request.headers], ...(body && { body }) });
  const failed = (error) => { throw new TypeError(`fetch failed: ${error.message}`, { cause: error }); };
  const given = await Promise.race([aborted, asked.catch(failed)]);
  if (typeof given?.status !== 'number') return given; // not a response: a function of the host's own kind
  const { status, statusText = '', headers = {}, body: content = null, url = request.url } = given;
  const empty = status === 204 || status === 205 || status === 304;
  const response = new Response(empty ? null : content, { status, statusText, headers });
  ObjectDefineProperty(response, 'url', { __proto__: null, value: url, enumerable: true, configurable: true });
  return response;
}

module.exports = { FormData, Headers, Request, Response, fetch, setTransport(made) { transport = made; } };
