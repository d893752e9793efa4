// string_decoder: text from pieces of bytes, where a character may be cut in two.
'use strict';

const { Uint8Array } = primordials;
const { Buffer } = require('buffer');
const { normalizeEncoding } = require('internal/util');
const { codes: { ERR_UNKNOWN_ENCODING } } = require('internal/errors');

const GROUP = { __proto__: null, base64: 3, base64url: 3, utf16le: 2 };

class StringDecoder {
  #rest = Buffer.alloc(0);

  constructor(encoding) {
    this.encoding = normalizeEncoding(encoding);
    if (this.encoding === undefined) throw new ERR_UNKNOWN_ENCODING(encoding);
  }

  get lastNeed() { return this.#rest.length === 0 ? 0 : 1; }

  write(data) {
    if (typeof data === 'string') return data;
    const bytes = Buffer.concat([this.#rest, new Uint8Array(data.buffer, data.byteOffset, data.byteLength)]);
    const whole = bytes.length - this.#incomplete(bytes);
    this.#rest = bytes.subarray(whole);
    return bytes.toString(this.encoding, 0, whole);
  }

  end(data) {
    const text = data === undefined ? '' : this.write(data);
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    return rest.length === 0 ? text : text + (this.encoding === 'utf8' ? '\ufffd' : rest.toString(this.encoding));
  }

  // How many bytes at the end are the beginning of a character.
  #incomplete(bytes) {
    const { length } = bytes;
    if (this.encoding !== 'utf8') {
      let left = length % (GROUP[this.encoding] ?? 1);
      if (this.encoding === 'utf16le' && length - left >= 2 && (bytes[length - left - 1] & 0xfc) === 0xd8) left += 2;
      return left;
    }
    for (let back = 1; back <= 3 && back <= length; back++) {
      const byte = bytes[length - back];
      if (byte >= 0xc0) {
        const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
        return needs > back && byte < 0xf8 ? back : 0;
      }
      if (byte < 0x80) return 0;
    }
    return 0;
  }
}

module.exports = { StringDecoder };
