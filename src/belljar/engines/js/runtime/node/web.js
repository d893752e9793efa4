// Web requests: http, https and fetch, made by the sandbox's network (the files of /mnt/web), which has the policy and the
// certificates. Servers of this program itself are reached without it.
'use strict';

const { ArrayPrototypePush, Error, ObjectAssign, ObjectDefineProperty, StringPrototypeIndexOf, StringPrototypeSlice } = primordials;
const kernel = require('belljar/kernel');
const { Request, later } = require('belljar/node/loop');
const { serves } = require('belljar/node/tcp');
const { encode } = native;

const AT_FDCWD = -100, O_RDONLY = 0, O_WRONLY = 1, O_RDWR = 2, LATIN1 = 4, END = 2 ** 53, PIECE = 64 << 10;
const CODES = { __proto__: null, denied: 'EACCES', dns: 'ENOTFOUND', connect: 'ECONNREFUSED', tls: 'ERR_TLS_CERT_ALTNAME_INVALID', timeout: 'ETIMEDOUT', reset: 'ECONNRESET' };

const text = (bytes) => encode(bytes, LATIN1, 0, END);
const open = (path, flags) => kernel.call('open', AT_FDCWD, path, flags, 0)[0];

// { url, method, headers: [[name, value]], body: bytes or undefined } -> told: head(status, reason, [name, value, ...]), data(bytes),
// end(), fail(error).
function request({ url, method, headers, body }, told) {
  let control, number, stream = -1, over = false, paused = false;
  const close = () => {
    over = true;
    for (const fd of [control, stream]) if (fd >= 0) try { kernel.call('close', fd); } catch { /* it was */ }
  };
  const fail = (error) => {
    if (over) return;
    let line = '';
    try { line = text(kernel.call('read_file', AT_FDCWD, `/mnt/web/${number}/error`)).trim(); } catch { /* there is no network at all */ }
    close();
    const at = StringPrototypeIndexOf(line, ': ');
    const kind = StringPrototypeSlice(line, 0, at);
    const made = new Error(line === '' ? 'there is no network here: the host has granted none' : StringPrototypeSlice(line, at + 2));
    told.fail(ObjectAssign(made, { code: CODES[kind] ?? 'ECONNREFUSED', syscall: 'connect', ...(error?.errno && { errno: -error.errno }) }));
  };
  const read = () => new Request('read', [stream, PIECE], (error, data) => {
    if (over) return;
    if (error !== null) return fail(error);
    if (data.length === 0) {
      close();
      return told.end();
    }
    if (told.data(data) === false) paused = true;
    else read();
  });
  const start = () => new Request('open', [AT_FDCWD, `/mnt/web/${number}/body`, O_RDONLY, 0], (error, fd) => {
    if (error !== null) return fail(error);
    stream = fd;
    if (over) return close();
    const { 0: status, ...lines } = text(kernel.call('read_file', AT_FDCWD, `/mnt/web/${number}/response`)).split('\r\n');
    const { 1: code, 2: reason } = /^\S+ (\d+) ?(.*)$/.exec(status);
    const fields = [];
    for (const line of primordials.ObjectValues(lines)) {
      const at = line.indexOf(':');
      if (at > 0) ArrayPrototypePush(fields, line.slice(0, at), line.slice(at + 1).trim());
    }
    told.head(Number(code), reason, fields);
    read();
  });
  try {
    control = open('/mnt/web/clone', O_RDWR);
    number = text(kernel.call('read', control, 64)).trim();
    const say = (line) => kernel.call('write', control, native.decode(`${line}\n`, LATIN1));
    say(`url ${url}`);
    say(`method ${method}`);
    for (const { 0: name, 1: value } of headers) {
      if (!/^(?:host|connection|transfer-encoding|content-length|keep-alive)$/i.test(name)) say(`header ${name}: ${value}`);
    }
    if (body === undefined || body.length === 0) {
      start();
    } else {
      const post = open(`/mnt/web/${number}/postbody`, O_WRONLY);
      const send = (rest) => new Request('write', [post, rest.subarray(0, PIECE)], (error, count) => {
        if (error !== null) { kernel.call('close', post); return fail(error); }
        if (count < rest.length) return send(rest.subarray(count));
        kernel.call('close', post);
        return start();
      });
      send(body);
    }
  } catch (error) {
    later(() => fail(error));
  }
  const resume = () => {
    if (!paused) return;
    paused = false;
    read();
  };
  return { close, resume };
}

// A connection that takes requests as HTTP/1.1 and answers them as a server would, for http.request.
function connection(scheme, options) {
  const { Duplex } = require('stream');
  const { Buffer } = require('buffer');
  const { HTTPParser, methods } = internalBinding('http_parser');
  const host = options.host ?? options.hostname ?? 'localhost', port = options.port;
  const authority = `${host.includes(':') ? `[${host}]` : host}${port && port !== (scheme === 'https' ? 443 : 80) ? `:${port}` : ''}`;
  let head, parts = [], running;
  const parser = new HTTPParser();
  parser.initialize(HTTPParser.REQUEST, {});
  const keep = (fields) => { for (let i = 0; i < fields.length; i += 2) ArrayPrototypePush(head.headers, [fields[i], fields[i + 1]]); };
  parser[HTTPParser.kOnMessageBegin] = () => { head = { headers: [] }; parts = []; };
  parser[HTTPParser.kOnHeaders] = (fields, url) => { keep(fields); head.path ??= url; };
  parser[HTTPParser.kOnHeadersComplete] = (_major, _minor, fields, method, url) => {
    if (fields !== undefined) keep(fields);
    head.method = typeof method === 'number' ? methods[method] : method;
    head.path ??= url;
  };
  parser[HTTPParser.kOnBody] = (bytes) => { ArrayPrototypePush(parts, Buffer.from(bytes)); };
  parser[HTTPParser.kOnMessageComplete] = () => {
    const { method, headers } = head;
    const given = headers.find(({ 0: name }) => name.toLowerCase() === 'host')?.[1] ?? authority;
    const url = head.path.startsWith('http') ? head.path : `${scheme}://${given}${head.path}`;
    let chunked = false;
    running = request({ url, method, headers, body: Buffer.concat(parts) }, {
      head(status, reason, fields) {
        let lines = `HTTP/1.1 ${status} ${reason}\r\n`;
        const bodiless = method === 'HEAD' || status === 204 || status === 304;
        chunked = !bodiless;
        for (let i = 0; i < fields.length; i += 2) {
          const name = fields[i].toLowerCase();
          if (name === 'connection' || name === 'transfer-encoding' || (chunked && name === 'content-length')) continue;
          lines += `${fields[i]}: ${fields[i + 1]}\r\n`;
        }
        stream.push(Buffer.from(`${lines}${chunked ? 'Transfer-Encoding: chunked\r\n' : ''}\r\n`, 'latin1'));
      },
      data(bytes) {
        stream.push(Buffer.from(`${bytes.length.toString(16)}\r\n`));
        stream.push(Buffer.from(bytes));
        return stream.push('\r\n');
      },
      end() { if (chunked) stream.push('0\r\n\r\n'); running = undefined; },
      fail(error) { stream.destroy(ObjectAssign(error, { hostname: host, address: host, port })); },
    });
  };
  const stream = new Duplex({
    read() { running?.resume(); },
    write(chunk, _encoding, done) {
      const parsed = parser.execute(chunk);
      done(parsed instanceof Error ? parsed : undefined);
    },
    final(done) { done(); },
    destroy(error, done) { running?.close(); parser.free(); done(error); },
  });
  ObjectAssign(stream, { remoteAddress: host, remotePort: port, encrypted: scheme === 'https', authorized: scheme === 'https' });
  for (const name of ['setTimeout', 'setNoDelay', 'setKeepAlive', 'ref', 'unref', 'cork', 'uncork']) {
    ObjectDefineProperty(stream, name, { __proto__: null, value: () => stream, writable: true, configurable: true });
  }
  stream.connecting = true;
  later(() => {
    stream.connecting = false;
    stream.emit('connect');
    if (scheme === 'https') stream.emit('secureConnect');
    stream.emit('ready');
  });
  return stream;
}

const local = (options) => serves(options.host ?? options.hostname ?? 'localhost', options.port);

// What undici's fetch is told to use.
class Dispatcher {
  #direct;
  constructor(direct) { this.#direct = direct; }

  dispatch(options, handler) {
    const { URL } = require('internal/url');
    const url = new URL(options.path, options.origin);
    if (serves(url.hostname, url.port || (url.protocol === 'https:' ? 443 : 80))) return this.#direct.dispatch(options, handler);
    let running, aborted = false;
    handler.onConnect((reason) => {
      aborted = true;
      running?.close();
      handler.onError(reason ?? new native.realm.DOMException('This operation was aborted', 'AbortError'));
    });
    if (aborted) return true;
    this.#run(options, handler, url.href).then((made) => { running = made; }, (error) => handler.onError(error));
    return true;
  }

  async #run({ method, headers, body }, handler, url) {
    const { Buffer } = require('buffer');
    const parts = [];
    if (typeof body === 'string' || primordials.ArrayBufferIsView(body)) ArrayPrototypePush(parts, Buffer.from(body));
    else if (body) for await (const part of body) ArrayPrototypePush(parts, Buffer.from(part));
    const fields = pairsOf(headers);
    const running = request({ url, method, headers: fields, body: Buffer.concat(parts) }, {
      head: (status, reason, raw) => handler.onHeaders(status, raw.map((word) => Buffer.from(word, 'latin1')), () => running.resume(), reason),
      data: (bytes) => handler.onData(Buffer.from(bytes)),
      end: () => handler.onComplete([]),
      fail: (error) => handler.onError(error),
    });
    return running;
  }

  close() { return primordials.PromiseResolve(); }
  destroy() { return primordials.PromiseResolve(); }
}

function pairsOf(headers) {
  if (!headers) return [];
  if (primordials.ArrayIsArray(headers)) {
    const pairs = [];
    for (let i = 0; i < headers.length; i += 2) ArrayPrototypePush(pairs, [`${headers[i]}`, `${headers[i + 1]}`]);
    return pairs;
  }
  return primordials.ObjectEntries(headers).flatMap(({ 0: name, 1: value }) => (primordials.ArrayIsArray(value) ? value.map((one) => [name, one]) : [[name, `${value}`]]));
}

// By the files of Node's library that open connections: what they export is changed to go this way.
module.exports = {
  __proto__: null,
  '_http_agent'({ Agent }) {
    const { createConnection } = Agent.prototype;
    Agent.prototype.createConnection = function(options, ...rest) {
      if (options?.socketPath || local(options)) return primordials.ReflectApply(createConnection, this, [options, ...rest]);
      return connection('http', options);
    };
  },
  'https'({ Agent }) {
    Agent.prototype.createConnection = (options) => connection('https', options);
  },
  'internal/deps/undici/undici'({ getGlobalDispatcher, setGlobalDispatcher }) {
    setGlobalDispatcher(new Dispatcher(getGlobalDispatcher()));
  },
};
