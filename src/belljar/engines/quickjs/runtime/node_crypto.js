// crypto: randomness, and digests of what the engine has; ciphers and keys are not in a sandbox.
'use strict';

const { Error, Uint8Array } = primordials;
const { Buffer } = require('buffer');
const { Transform } = require('stream');

const BLOCK = { __proto__: null, md5: 64, sha1: 64, sha224: 64, sha256: 64, sha384: 128, sha512: 128 };
const normalise = (name) => `${name}`.toLowerCase().replace('-', '');

function digest(name, bytes) {
  return Buffer.from(native.digest(name, new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)));
}

class Hash extends Transform {
  #name;
  #parts = [];
  #done = false;

  constructor(name) {
    super();
    this.#name = normalise(name);
    if (!(this.#name in BLOCK)) throw Object.assign(new Error(`Digest method not supported: ${name}; there are: ${Object.keys(BLOCK).join(', ')}`), { code: 'ERR_OSSL_EVP_UNSUPPORTED' });
  }

  update(data, encoding) {
    if (this.#done) throw Object.assign(new Error('Digest already called'), { code: 'ERR_CRYPTO_HASH_FINALIZED' });
    this.#parts.push(Buffer.from(typeof data === 'string' ? Buffer.from(data, encoding) : new Uint8Array(data.buffer, data.byteOffset, data.byteLength)));
    return this;
  }

  digest(encoding) {
    this.#done = true;
    const made = this._finish(this.#name, Buffer.concat(this.#parts));
    return encoding === undefined || encoding === 'buffer' ? made : made.toString(encoding);
  }

  _finish(name, bytes) { return digest(name, bytes); }
  copy() { const made = new Hash(this.#name); for (const part of this.#parts) made.update(part); return made; }
  _transform(chunk, encoding, callback) { this.update(chunk, encoding); callback(); }
  _flush(callback) { this.push(this.digest()); callback(); }
}

class Hmac extends Hash {
  #key;
  constructor(name, key) {
    super(name);
    const size = BLOCK[normalise(name)];
    const bytes = Buffer.from(key);
    this.#key = Buffer.alloc(size);
    (bytes.length > size ? digest(normalise(name), bytes) : bytes).copy(this.#key);
  }

  _finish(name, bytes) {
    const mix = (value) => Buffer.from(this.#key.map((byte) => byte ^ value));
    return digest(name, Buffer.concat([mix(0x5c), digest(name, Buffer.concat([mix(0x36), bytes]))]));
  }
}

function randomBytes(size, callback) {
  const bytes = Buffer.alloc(size);
  globalThis.crypto.getRandomValues(new Uint8Array(bytes.buffer, bytes.byteOffset, size));
  if (callback === undefined) return bytes;
  setTimeout(callback, 0, null, bytes);
  return undefined;
}

function randomInt(low, high, callback) {
  if (high === undefined || typeof high === 'function') { callback = high; high = low; low = 0; }
  const range = high - low;
  if (!(range > 0 && range <= 2 ** 48)) throw new RangeError('The value of "max" is out of range.');
  const limit = 2 ** 48 - (2 ** 48 % range);
  let value;
  do value = randomBytes(6).readUIntBE(0, 6); while (value >= limit);
  value = low + (value % range);
  if (callback === undefined) return value;
  setTimeout(callback, 0, null, value);
  return undefined;
}

module.exports = {
  Hash, Hmac,
  createHash: (name) => new Hash(name),
  createHmac: (name, key) => new Hmac(name, key),
  hash: (name, data, encoding = 'hex') => new Hash(name).update(data).digest(encoding),
  getHashes: () => Object.keys(BLOCK),
  getCiphers: () => [],
  randomBytes, randomInt,
  randomFillSync(target) { globalThis.crypto.getRandomValues(target); return target; },
  randomUUID: () => globalThis.crypto.randomUUID(),
  getRandomValues: (target) => globalThis.crypto.getRandomValues(target),
  timingSafeEqual(a, b) {
    if (a.byteLength !== b.byteLength) throw new RangeError('Input buffers must have the same byte length');
    let different = 0;
    for (let i = 0; i < a.byteLength; i++) different |= a[i] ^ b[i];
    return different === 0;
  },
  get webcrypto() { return globalThis.crypto; },
  get subtle() { return globalThis.crypto.subtle; },
};
