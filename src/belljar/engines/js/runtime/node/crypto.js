// crypto: OpenSSL's part of it is in Node's own realm; what writes into buffers, or would take a thread, is here.
'use strict';

const {
  ArrayPrototypeSlice, PromiseWithResolvers, ReflectApply, SafeWeakMap, StringPrototypeEndsWith, Uint8Array,
} = primordials;
const ask = require('belljar/ask');
const { later } = require('belljar/node/loop');
const { remoteClass } = require('belljar/node/remote');

const ASYNC = 0, SYNC = 1, WEB = 2; // the modes of jobs
let InternalCryptoKey;

const without = (values, count) => ArrayPrototypeSlice(values, 0, values.length - count);
const last = (values, count) => ArrayPrototypeSlice(values, values.length - count);

// The Web's keys are told what they are for when they are made: [arguments of the job, what to make of its result].
function webKeys(name, values) {
  if (StringPrototypeEndsWith(name, 'KeyPairGenJob')) {
    const { 0: algorithm, 1: forPublic, 2: forPrivate, 3: extractable } = last(values, 4);
    return [without(values, 4), (pair) => ({
      publicKey: new InternalCryptoKey(pair[0], algorithm, forPublic, true),
      privateKey: new InternalCryptoKey(pair[1], algorithm, forPrivate, extractable),
    })];
  }
  if (name !== 'SecretKeyGenJob') return [values, (result) => result];
  const { 0: algorithm, 1: usages, 2: extractable } = last(values, 3);
  return [without(values, 3), (handle) => new InternalCryptoKey(handle, algorithm, usages, extractable)];
}

// A job is done at once; who did not want to wait for it is told later.
function job(name) {
  const Remote = remoteClass('crypto', name, ['run']);
  const { run } = Remote.prototype;
  return { [name]: class extends Remote {
    #mode;
    #finish;

    constructor(mode, ...values) {
      const { 0: plain, 1: finish } = mode === WEB ? webKeys(name, values) : [values];
      super(SYNC, ...plain);
      this.#mode = mode;
      this.#finish = finish;
    }

    run() {
      const result = ReflectApply(run, this, []);
      if (this.#mode === SYNC) return result;
      if (this.#mode === ASYNC) return void later(() => this.ondone(...result));
      const { promise, resolve, reject } = PromiseWithResolvers();
      later(() => {
        if (result[0] === undefined) return resolve(this.#finish(result[1]));
        const { DOMException } = native.realm;
        const options = { name: 'OperationError', cause: result[0] };
        reject(new DOMException('The operation failed for an operation-specific reason', options));
      });
      return promise;
    }
  } }[name];
}

class RandomBytesJob {
  #mode;
  #bytes;
  constructor(mode, buffer, offset, size) {
    this.#mode = mode;
    this.#bytes = new Uint8Array(buffer.buffer ?? buffer, (buffer.byteOffset ?? 0) + offset, size);
  }
  run() {
    native.random(this.#bytes);
    if (this.#mode === SYNC) return [undefined, undefined];
    later(() => this.ondone(undefined, undefined));
    return undefined;
  }
}

// What keys hold, out of sight of those who have them.
const slots = new SafeWeakMap();

class NativeKeyObject {
  constructor(handle) { slots.set(this, [handle.getKeyType(), handle]); }
}

class NativeCryptoKey {
  constructor(handle, algorithm, usages, extractable) {
    slots.set(this, [handle.getKeyType(), extractable, algorithm, usages, handle]);
  }
}

function slotsOf(key) {
  const held = slots.get(key);
  if (held === undefined) throw new (require('internal/errors').codes.ERR_INVALID_THIS)('CryptoKey');
  return [...held];
}

const crypto = {
  kCryptoJobAsync: ASYNC,
  kCryptoJobSync: SYNC,
  kCryptoJobWebCrypto: WEB,
  RandomBytesJob,
  createNativeKeyObjectClass: (make) => make(NativeKeyObject),
  createCryptoKeyClass(make) {
    const classes = make(NativeCryptoKey);
    InternalCryptoKey = classes[1];
    return classes;
  },
  getKeyObjectSlots: slotsOf,
  getCryptoKeySlots: slotsOf,
};
for (const { 0: name } of ask('describe', 'crypto').functions) {
  if (StringPrototypeEndsWith(name, 'Job') && crypto[name] === undefined) crypto[name] = job(name);
}

module.exports = { crypto };
