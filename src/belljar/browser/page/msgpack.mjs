// The part of msgpack that belljar's frames use: nil, booleans, numbers, strings, bytes, arrays, maps.
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** Encode a value: Uint8Array is bytes, a Map or plain object is a map, an integer is an integer, BigInt too. */
export function encode(value) {
  const writer = new Writer();
  writer.value(value);
  return writer.take();
}

class Writer {
  #bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  #used = 0;

  take() {
    return this.#bytes.slice(0, this.#used);
  }

  #room(count) {
    const at = this.#used;
    this.#used += count;
    if (this.#used > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(2 * this.#bytes.length, this.#used));
      grown.set(this.#bytes);
      this.#bytes = grown;
      this.#view = new DataView(grown.buffer);
    }
    return at;
  }

  #byte(value) {
    const at = this.#room(1);
    this.#bytes[at] = value;
  }

  // A head of one byte for short lengths, else the code for 8 (0: there is none), 16 or 32 bits and the length.
  #head(count, fixed, fixedMax, code8, code16) {
    if (count <= fixedMax) return this.#byte(fixed | count);
    if (code8 && count < 0x100) {
      const at = this.#room(2);
      this.#view.setUint8(at, code8);
      this.#view.setUint8(at + 1, count);
    } else if (count < 0x10000) {
      const at = this.#room(3);
      this.#view.setUint8(at, code16);
      this.#view.setUint16(at + 1, count);
    } else {
      const at = this.#room(5);
      this.#view.setUint8(at, code16 + 1);
      this.#view.setUint32(at + 1, count);
    }
  }

  #copy(data) {
    const at = this.#room(data.length);
    this.#bytes.set(data, at);
  }

  value(value) {
    if (value === null || value === undefined) this.#byte(0xc0);
    else if (typeof value === "boolean") this.#byte(value ? 0xc3 : 0xc2);
    else if (typeof value === "number" && Number.isSafeInteger(value)) this.#integer(value);
    else if (typeof value === "number") {
      const at = this.#room(9);
      this.#view.setUint8(at, 0xcb);
      this.#view.setFloat64(at + 1, value);
    } else if (typeof value === "bigint") this.#long(value);
    else if (typeof value === "string") {
      const data = encoder.encode(value);
      this.#head(data.length, 0xa0, 31, 0xd9, 0xda);
      this.#copy(data);
    } else if (value instanceof Uint8Array) {
      this.#head(value.length, 0, -1, 0xc4, 0xc5);
      this.#copy(value);
    } else if (Array.isArray(value)) {
      this.#head(value.length, 0x90, 15, 0, 0xdc);
      for (const each of value) this.value(each);
    } else if (typeof value === "object") {
      const entries = value instanceof Map ? [...value] : Object.entries(value);
      this.#head(entries.length, 0x80, 15, 0, 0xde);
      for (const pair of entries) pair.forEach((each) => this.value(each));
    } else throw new TypeError(`a ${typeof value} is no plain data`);
  }

  #integer(value) {
    if (value >= 0 && value < 0x80) this.#byte(value);
    else if (value < 0 && value >= -32) this.#byte(value & 0xff);
    else if (value >= -0x80000000 && value <= 0x7fffffff) {
      const at = this.#room(5);
      this.#view.setUint8(at, 0xd2);
      this.#view.setInt32(at + 1, value);
    } else this.#long(BigInt(value));
  }

  #long(value) {
    const at = this.#room(9);
    if (BigInt.asIntN(64, value) !== value && BigInt.asUintN(64, value) !== value) throw new RangeError(`${value} has over 64 bits`);
    this.#view.setUint8(at, value < 0n ? 0xd3 : 0xcf);
    this.#view.setBigUint64(at + 1, BigInt.asUintN(64, value));
  }
}

/** Decode one value; the rest must be nothing. Maps become Map, since their keys may be bytes (given as strings). */
export function decode(data) {
  const reader = new Reader(data);
  const value = reader.value(0);
  if (reader.at !== data.length) throw new RangeError("more than one value");
  return value;
}

const DEPTH = 100;

class Reader {
  at = 0;

  constructor(data) {
    this.data = data;
    this.view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  }

  #uint(size) {
    const at = this.at;
    this.at += size;
    if (size === 1) return this.view.getUint8(at);
    if (size === 2) return this.view.getUint16(at);
    return this.view.getUint32(at);
  }

  #bytes(count) {
    const at = this.at;
    this.at += count;
    if (this.at > this.data.length) throw new RangeError("a value ends too early");
    return this.data.slice(at, this.at);
  }

  #long(read) {
    const value = this.view[read](this.at);
    this.at += 8;
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  }

  #array(count, depth) {
    const items = [];
    for (let i = 0; i < count; i++) items.push(this.value(depth + 1));
    return items;
  }

  #map(count, depth) {
    const items = new Map();
    for (let i = 0; i < count; i++) {
      const key = this.value(depth + 1);
      items.set(key instanceof Uint8Array ? decoder.decode(key) : key, this.value(depth + 1));
    }
    return items;
  }

  value(depth) {
    if (depth > DEPTH) throw new RangeError("values nested too deep");
    const head = this.#uint(1);
    if (head < 0x80) return head;
    if (head < 0x90) return this.#map(head & 15, depth);
    if (head < 0xa0) return this.#array(head & 15, depth);
    if (head < 0xc0) return decoder.decode(this.#bytes(head & 31));
    if (head >= 0xe0) return head - 0x100;
    switch (head) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xc4: return this.#bytes(this.#uint(1));
      case 0xc5: return this.#bytes(this.#uint(2));
      case 0xc6: return this.#bytes(this.#uint(4));
      case 0xca: this.at += 4; return this.view.getFloat32(this.at - 4);
      case 0xcb: this.at += 8; return this.view.getFloat64(this.at - 8);
      case 0xcc: return this.#uint(1);
      case 0xcd: return this.#uint(2);
      case 0xce: return this.#uint(4);
      case 0xcf: return this.#long("getBigUint64");
      case 0xd0: this.at += 1; return this.view.getInt8(this.at - 1);
      case 0xd1: this.at += 2; return this.view.getInt16(this.at - 2);
      case 0xd2: this.at += 4; return this.view.getInt32(this.at - 4);
      case 0xd3: return this.#long("getBigInt64");
      case 0xd9: return decoder.decode(this.#bytes(this.#uint(1)));
      case 0xda: return decoder.decode(this.#bytes(this.#uint(2)));
      case 0xdb: return decoder.decode(this.#bytes(this.#uint(4)));
      case 0xdc: return this.#array(this.#uint(2), depth);
      case 0xdd: return this.#array(this.#uint(4), depth);
      case 0xde: return this.#map(this.#uint(2), depth);
      case 0xdf: return this.#map(this.#uint(4), depth);
      default: throw new RangeError(`no value begins with ${head}`);
    }
  }
}
