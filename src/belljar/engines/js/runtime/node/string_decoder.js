// Text from pieces of bytes: decoded by Node's own realm, which gets the state of the decoder and gives it back.
'use strict';

const { TypedArrayPrototypeSet, Uint8Array } = primordials;
const ask = require('belljar/ask');

const bytes = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

function run(method, state, chunk) {
  const { 0: text, 1: after } = ask('decoder', method, bytes(state), chunk === undefined ? undefined : bytes(chunk));
  TypedArrayPrototypeSet(state, after);
  return text;
}

module.exports = {
  string_decoder: {
    decode(state, chunk) {
      if (typeof chunk === 'string') return chunk;
      if (!primordials.ArrayBufferIsView(chunk)) {
        const { ERR_INVALID_ARG_TYPE } = require('internal/errors').codes;
        throw new ERR_INVALID_ARG_TYPE('buf', ['Buffer', 'TypedArray', 'DataView'], chunk);
      }
      return run('decode', state, chunk);
    },
    flush: (state) => run('flush', state),
  },
};
