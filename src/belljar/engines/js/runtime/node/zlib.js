// zlib, Brotli and Zstandard: the real ones, in Node's own realm; here is only what Node's library holds of a stream.
'use strict';

const { Uint32Array, Uint8Array } = primordials;
const ask = require('belljar/ask');
const { Handle } = require('belljar/node/handle');
const { later } = require('belljar/node/loop');
const { own } = require('belljar/node/remote');

function codec(name) {
  const { [name]: made } = { [name]: class extends Handle {
    #number;
    #state;
    #done;

    constructor(mode) {
      super();
      this.#number = ask('zlibOpen', name, mode);
    }

    // Zlib: (windowBits, level, memLevel, strategy, state, done, dictionary); others: (parameters, state, done, ...).
    init(...values) {
      const at = name === 'Zlib' ? 4 : values.findIndex((value, index) => index > 0 && value instanceof Uint32Array);
      this.#state = values[at];
      this.#done = values[at + 1];
      const plain = values.map((value) => (typeof value === 'function' ? undefined : value instanceof Uint8Array ? own(value) : value));
      return this.#report(ask('zlibInit', this.#number, plain, at));
    }

    #report({ error, value }) {
      if (error === undefined) return value;
      this.onerror(...error);
      return false;
    }

    #run(flush, input, offset, length, output, outputOffset, outputLength) {
      const piece = input === null || input === undefined ? undefined : own(input.subarray(offset, offset + length));
      const { error, made, state } = ask('zlibWrite', this.#number, flush, piece, outputLength);
      if (error !== undefined) return error;
      native.copy(made, output, outputOffset, 0, made.length);
      this.#state[0] = state[0];
      this.#state[1] = state[1];
      return undefined;
    }

    writeSync(...values) {
      const error = this.#run(...values);
      if (error !== undefined) this.onerror(...error);
    }

    write(...values) {
      this.busy = true;
      later(() => {
        this.busy = false;
        if (this.closed) return;
        const error = this.#run(...values);
        if (error !== undefined) this.onerror(...error);
        else this.#done();
      });
    }

    params(...values) { return this.#report(ask('zlibCall', this.#number, 'params', values)); }
    reset() { return this.#report(ask('zlibCall', this.#number, 'reset', [])); }
    _close() { ask('drop', this.#number); }
  } };
  return made;
}

const zlib = { crc32: (data, value) => ask('crc32', typeof data === 'string' ? data : own(data), value) };
for (const name of ['Zlib', 'BrotliEncoder', 'BrotliDecoder', 'ZstdCompress', 'ZstdDecompress']) zlib[name] = codec(name);

module.exports = { zlib };
