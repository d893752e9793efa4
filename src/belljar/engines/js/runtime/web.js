// What a web page or a Node program finds on its global object, from Node's own library.
'use strict';

const {
  ObjectDefineProperty, SafeSet, SymbolToStringTag, TypeError, TypedArrayPrototypeGetSymbolToStringTag, Uint8Array,
} = primordials;
const { DOMException } = internalBinding('messaging');
const ask = require('belljar/ask');
const clock = require('belljar/clock');
const { clone } = require('belljar/structured_clone');

const { URL, URLSearchParams } = require('internal/url');
const { TextDecoder, TextEncoder } = require('internal/encoding');
const { Event, EventTarget } = require('internal/event_target');
const { AbortController, AbortSignal } = require('internal/abort_controller');
const { Blob } = require('internal/blob');
const { File } = require('internal/file');
const { Buffer, atob, btoa } = require('buffer');
const { ReadableStream } = require('internal/webstreams/readablestream');
const { WritableStream } = require('internal/webstreams/writablestream');
const { TransformStream } = require('internal/webstreams/transformstream');
const { TextDecoderStream, TextEncoderStream } = require('internal/webstreams/encoding');

function structuredClone(value, options) {
  if (arguments.length === 0) throw new TypeError('The "value" argument must be specified');
  return clone(value, options?.transfer ?? []);
}

const integers = new SafeSet(['Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array', 'BigInt64Array', 'BigUint64Array']);
const digests = { '__proto__': null, 'SHA-1': 'sha1', 'SHA-256': 'sha256', 'SHA-384': 'sha384', 'SHA-512': 'sha512' };
const hex = (bytes, start, end) => native.encode(bytes, 5, start, end);

class SubtleCrypto {
  async digest(algorithm, data) {
    const name = `${algorithm?.name ?? algorithm}`.toUpperCase();
    if (digests[name] === undefined) throw new DOMException(`Unrecognized algorithm name: ${name}`, 'NotSupportedError');
    return ask('digest', digests[name], new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0, data.byteLength)).buffer;
  }
}

class Crypto {
  get subtle() { return subtle; }
  getRandomValues(array) {
    if (!integers.has(TypedArrayPrototypeGetSymbolToStringTag(array))) {
      throw new DOMException('The data argument must be an integer-type TypedArray', 'TypeMismatchError');
    }
    if (array.byteLength > 65536) throw new DOMException(`The requested length exceeds 65,536 bytes`, 'QuotaExceededError');
    native.random(array);
    return array;
  }
  randomUUID() {
    const bytes = new Uint8Array(16);
    native.random(bytes);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    return `${hex(bytes, 0, 4)}-${hex(bytes, 4, 6)}-${hex(bytes, 6, 8)}-${hex(bytes, 8, 10)}-${hex(bytes, 10, 16)}`;
  }
}
const subtle = new SubtleCrypto();
const crypto = new Crypto();

class Performance {
  now() { return clock.now(); }
  get timeOrigin() { return clock.timeOrigin(); }
  toJSON() { return { timeOrigin: clock.timeOrigin() }; }
}
const performance = new Performance();

for (const made of [SubtleCrypto, Crypto, Performance]) {
  ObjectDefineProperty(made.prototype, SymbolToStringTag, { __proto__: null, configurable: true, value: made.name });
}

const { queueMicrotask } = {
  queueMicrotask(callback) {
    if (typeof callback !== 'function') throw new TypeError('The "callback" argument must be of type function.');
    process.queueMicrotask(callback);
  },
};

module.exports = {
  AbortController, AbortSignal, Blob, Crypto, DOMException, Event, EventTarget, File, ReadableStream, SubtleCrypto,
  TextDecoder, TextDecoderStream, TextEncoder, TextEncoderStream, TransformStream, URL, URLSearchParams,
  WritableStream, atob, btoa, crypto, performance, queueMicrotask, structuredClone,
  ...require('belljar/timers').globals,
};
