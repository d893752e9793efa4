// Bytes and text: what Node's `buffer`, `TextEncoder`, `TextDecoder` and `Blob` get from their C++ side.
'use strict';

const {
  ArrayBuffer, ArrayPrototypePush, MathMax, MathMin, ReflectApply, RegExpPrototypeExec, RegExpPrototypeSymbolReplace, StringFromCharCode,
  StringPrototypeCharCodeAt, StringPrototypeIndexOf, StringPrototypeLastIndexOf, StringPrototypeSlice, StringPrototypeToWellFormed, TypedArrayPrototypeSet,
  TypedArrayPrototypeSubarray, TypeError, Uint16Array, Uint32Array, Uint8Array,
} = primordials;
const { copy, encode, write } = native;

const ASCII = 0, UTF8 = 1, BASE64 = 2, UCS2 = 3, LATIN1 = 4, HEX = 5, BASE64URL = 7; // as Node numbers them
const END = 2 ** 53;

const view = (value) => (primordials.ArrayBufferIsView(value) ? value : new Uint8Array(value));
const part = (bytes, start, end) => TypedArrayPrototypeSubarray(bytes, start, end);

const slice = (encoding) => (bytes, start, end) => encode(bytes, encoding, start ?? 0, end ?? END);
const writer = (encoding) => (bytes, text, offset, length) => write(bytes, text, encoding, offset ?? 0, length ?? END);

function indexOf(bytes, needle, offset, encoding, forward) {
  const { length } = bytes;
  if (offset < 0) offset += length;
  if (offset < 0) {
    if (!forward) return -1;
    offset = 0;
  }
  if (needle.length === 0) return MathMin(offset, length);
  if (offset > length - needle.length) {
    if (forward) return -1;
    offset = length - needle.length;
  }
  if (offset < 0) return -1;
  return (forward ? searchForward : searchBackward)(bytes, needle, offset, encoding === UCS2 ? 2 : 1);
}

// In steps of a unit of bytes. The engine searches text: a piece of the bytes at a time is read as Latin-1.
const PIECE = 1 << 16;

function searchForward(bytes, needle, offset, unit) {
  const wanted = encode(needle, LATIN1, 0, END);
  const last = bytes.length - needle.length;
  for (let at = offset; at <= last; at += PIECE) {
    const text = encode(bytes, LATIN1, at, MathMin(at + PIECE + needle.length - 1, bytes.length));
    for (let found = -1; (found = StringPrototypeIndexOf(text, wanted, found + 1)) !== -1;) {
      if ((at + found - offset) % unit === 0) return at + found;
    }
  }
  return -1;
}

function searchBackward(bytes, needle, offset, unit) {
  const wanted = encode(needle, LATIN1, 0, END);
  for (let end = offset; end >= 0; end -= PIECE) {
    const at = MathMax(end - PIECE + 1, 0);
    const text = encode(bytes, LATIN1, at, end + needle.length);
    for (let found = text.length; (found = StringPrototypeLastIndexOf(text, wanted, found)) !== -1; found--) {
      if ((offset - at - found) % unit === 0) return at + found;
      if (found === 0) break;
    }
  }
  return -1;
}

// What is no UTF-8 reads as replacement characters, which are other bytes.
const isUtf8 = (value) => native.compare(native.decode(encode(view(value), UTF8, 0, END), UTF8), view(value)) === 0;

function swap(size) {
  return (bytes) => {
    for (let at = 0; at + size <= bytes.length; at += size) {
      for (let i = 0; i < size >> 1; i++) {
        const held = bytes[at + i];
        bytes[at + i] = bytes[at + size - 1 - i];
        bytes[at + size - 1 - i] = held;
      }
    }
    return bytes;
  };
}

const notBase64 = /[^A-Za-z0-9+/]/;
const whitespace = /[\t\n\f\r ]/g;

const buffer = {
  kMaxLength: 2 ** 53 - 1,
  kStringMaxLength: 2 ** 29 - 24,
  byteLengthUtf8: native.byteLength,
  compare: native.compare,
  compareOffset: (source, target, targetStart, sourceStart, targetEnd, sourceEnd) =>
    native.compare(part(source, sourceStart, sourceEnd), part(target, targetStart, targetEnd)),
  copy,
  copyArrayBuffer: (to, toStart, from, fromStart, count) => copy(from, to, toStart, fromStart, count),
  createUnsafeArrayBuffer: (size) => new ArrayBuffer(size),
  setDetachKey() {},
  setBufferPrototype() {},
  fill(bytes, value, start, end, encoding) {
    const filling = typeof value === 'string' ? native.decode(value, require('internal/util').encodingsMap[encoding ?? 'utf8'] ?? UTF8) : view(value);
    if (start > end || end > bytes.length) return -2;
    if (filling.length === 0) return -1;
    for (let at = start; at < end; at += filling.length) copy(filling, bytes, at, 0, MathMin(filling.length, end - at));
  },
  isAscii: (value) => isUtf8(value) && encode(view(value), UTF8, 0, END).length === value.byteLength,
  isUtf8,
  indexOfString: (bytes, text, offset, encoding, forward) => indexOf(bytes, native.decode(text, encoding), offset, encoding, forward),
  indexOfBuffer: indexOf,
  indexOfNumber: (bytes, number, offset, forward) => indexOf(bytes, new Uint8Array([number]), offset, LATIN1, forward),
  swap16: swap(2),
  swap32: swap(4),
  swap64: swap(8),
  btoa(text) {
    for (let i = 0; i < text.length; i++) if (StringPrototypeCharCodeAt(text, i) > 255) return -1;
    return encode(native.decode(text, LATIN1), BASE64, 0, END);
  },
  atob(text) {
    text = RegExpPrototypeSymbolReplace(whitespace, text, '');
    if (text.length % 4 === 0) text = RegExpPrototypeSymbolReplace(/==?$/, text, '');
    if (RegExpPrototypeExec(notBase64, text) !== null) return -2;
    if (text.length % 4 === 1) return -1;
    return encode(native.decode(text, BASE64), LATIN1, 0, END);
  },
};
for (const { 0: name, 1: encoding } of [
  ['ascii', ASCII], ['utf8', UTF8], ['base64', BASE64], ['ucs2', UCS2], ['latin1', LATIN1], ['hex', HEX], ['base64url', BASE64URL],
]) {
  buffer[`${name}Slice`] = slice(encoding);
  buffer[`${name}Write`] = buffer[`${name}WriteStatic`] = writer(encoding);
}

// Node's coders do not take this one as bytes.
buffer.ucs2Slice = (bytes, start = 0, end = bytes.length) => {
  const units = new Uint16Array(MathMax(0, MathMin(end, bytes.length) - start) >> 1);
  copy(bytes, units, 0, start, units.byteLength);
  let text = '';
  for (let at = 0; at < units.length; at += 4096) text += ReflectApply(StringFromCharCode, undefined, TypedArrayPrototypeSubarray(units, at, at + 4096));
  return text;
};

const encodeIntoResults = new Uint32Array(2);
const encoding = {
  encodeIntoResults,
  encodeInto(text, bytes) {
    const count = write(bytes, text, UTF8, 0, END);
    encodeIntoResults[0] = encode(bytes, UTF8, 0, count).length;
    encodeIntoResults[1] = count;
  },
  encodeUtf8String: (text) => native.decode(StringPrototypeToWellFormed(text), UTF8),
  decodeUTF8(input, ignoreBom, fatal) {
    const bytes = view(input);
    if (fatal && !isUtf8(bytes)) {
      const error = new TypeError('The encoded data was not valid for encoding utf-8');
      error.code = 'ERR_ENCODING_INVALID_ENCODED_DATA';
      throw error;
    }
    const text = encode(bytes, UTF8, 0, END);
    return !ignoreBom && StringPrototypeCharCodeAt(text, 0) === 0xfeff ? StringPrototypeSlice(text, 1) : text;
  },
  toASCII: (text) => text,
  toUnicode: (text) => text,
};

function join(pieces) {
  let size = 0;
  for (let i = 0; i < pieces.length; i++) size += pieces[i].byteLength;
  const whole = new Uint8Array(size);
  size = 0;
  for (let i = 0; i < pieces.length; i++) {
    TypedArrayPrototypeSet(whole, new Uint8Array(pieces[i].buffer ?? pieces[i], pieces[i].byteOffset ?? 0, pieces[i].byteLength), size);
    size += pieces[i].byteLength;
  }
  return whole;
}

// What holds a Blob's bytes.
class BlobHandle {
  #bytes;
  constructor(bytes) { this.#bytes = bytes; }
  get bytes() { return this.#bytes; }
  slice(start, end) { return new BlobHandle(part(this.#bytes, start, end)); }
  getReader() {
    let bytes = this.#bytes;
    return {
      setWakeup() {},
      pull(callback) {
        if (bytes === undefined || bytes.length === 0) return callback(0);
        const { buffer: whole, byteOffset, byteLength } = bytes;
        bytes = undefined;
        callback(1, primordials.ArrayBufferPrototypeSlice(whole, byteOffset, byteOffset + byteLength));
      },
    };
  }
}

const blob = {
  createBlob(sources) {
    const pieces = [];
    for (let i = 0; i < sources.length; i++) {
      ArrayPrototypePush(pieces, sources[i] instanceof BlobHandle ? sources[i].bytes : sources[i]);
    }
    return new BlobHandle(join(pieces));
  },
  concat: (pieces) => join(pieces).buffer,
  getDataObject() {},
  storeDataObject() {},
  revokeObjectURL() {},
  createBlobFromFilePath() {},
};

module.exports = { buffer, encoding_binding: encoding, blob };
