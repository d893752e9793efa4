// HTTP messages: parsed by Node's own realm, which tells what it found; that is then told to Node's library here.
'use strict';

const ask = require('belljar/ask');
const { own } = require('belljar/node/remote');

const ON_BODY = 3; // as Node numbers what a parser tells
const SKIP_BODY = 1, UPGRADE = 2;

class HTTPParser {
  #number;

  initialize(type, _resource, ...options) {
    if (this.#number !== undefined) ask('drop', this.#number);
    this.#number = ask('parserOpen', type, options.slice(0, 2).map((value) => value ?? 0));
  }

  // What the answer to a request has no body for is known by who asked.
  get #skips() {
    const { method } = this.socket?._httpMessage ?? {};
    return method === 'HEAD' ? SKIP_BODY : method === 'CONNECT' ? UPGRADE : 0;
  }

  #tell({ events, value, error }) {
    const { Buffer } = require('buffer');
    for (const { 0: kind, 1: values } of events) {
      if (kind === ON_BODY) this[kind](Buffer.from(values[0].buffer, values[0].byteOffset, values[0].byteLength));
      else this[kind]?.(...values);
    }
    if (error === undefined) return value;
    const { message, ...rest } = error;
    return primordials.ObjectAssign(new primordials.Error(message), rest);
  }

  execute(data) { return this.#tell(ask('parserRun', this.#number, own(data), this.#skips)); }
  finish() { return this.#number === undefined ? undefined : this.#tell(ask('parserRun', this.#number, undefined, this.#skips)); }
  close() { this.free(); }
  free() {
    if (this.#number !== undefined) ask('drop', this.#number);
    this.#number = undefined;
  }
  remove() {}
  pause() {}
  resume() {}
  consume() {}
  unconsume() {}
  getCurrentBuffer() {}
  duration() { return 0; }
  headersCompleted() { return true; }
}
for (const { 0: name, 1: value } of primordials.ObjectEntries(ask('parserConstants'))) HTTPParser[name] = value;

// Servers look through their connections for such that take too long.
class ConnectionsList {
  all() { return []; }
  idle() { return []; }
  active() { return []; }
  expired() { return []; }
}

module.exports = { http_parser: { HTTPParser, ConnectionsList } };
