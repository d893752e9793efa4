// `import { serve } from 'belljar:fs'`: a module of ours for programs that serve files to their sandbox.
'use strict';

const { encodeURIComponent } = globalThis;

const SOURCE = String.raw`
// serve(name, tree): serve a tree of files under a name in /mnt/srv, by 9P2000.L, until the program ends.
//
// A tree is an object. Its values are files: strings or bytes, or functions that give them anew each time (or promises of
// them); file({ read, write }), if it can be written; or directories: objects, or directory(function).
import { openSync, read, unlinkSync, writeSync } from 'node:fs';

const VERSION = '9P2000.L', MESSAGE = 64 << 10, HEADER = 7, TRUNCATE = 0o1000;
const ERRNO = { EPERM: 1, ENOENT: 2, EIO: 5, EBADF: 9, EAGAIN: 11, EACCES: 13, EBUSY: 16, EEXIST: 17, ENOTDIR: 20,
  EISDIR: 21, EINVAL: 22, EFBIG: 27, ENOSPC: 28, EROFS: 30, ENOSYS: 38, ENOTEMPTY: 39, ETIMEDOUT: 110 };

class File { constructor(given) { Object.assign(this, { read: () => '', mode: given.write ? 0o644 : 0o444 }, given); } }
class Directory { constructor(entries) { this.entries = entries; } }
export const file = (given) => new File(given);
export const directory = (entries) => new Directory(entries);

const isBytes = (value) => typeof value === 'string' || value instanceof Uint8Array;
const isDirectory = (value) => value instanceof Directory ||
  (typeof value === 'object' && value !== null && !isBytes(value) && !(value instanceof File));
// An error of the program's own functions, without the lines of this module, whose name is all of its text.
const tell = (error) => String(error?.stack ?? error).split('\n').filter((line) => !line.includes('data:text/')).join('\n');
const fail = (code) => { throw Object.assign(new Error(code), { code }); };

class Node {
  constructor(number, value, parent) { Object.assign(this, { number, value, parent, children: new Map(), data: null, written: false }); }
  get isDirectory() { return isDirectory(this.value); }
  get mode() { return this.isDirectory ? 0o040555 : 0o100000 | (this.value instanceof File ? this.value.mode : 0o444); }
  async entries() { return Object.entries(this.value instanceof Directory ? await this.value.entries() : this.value); }
  async contents() {
    const made = this.value instanceof File ? this.value.read : this.value;
    return Buffer.from(await (typeof made === 'function' ? made.call(this.value) : made));
  }
}

class Writer {
  constructor() { this.parts = []; }
  number(size, value) {
    const part = Buffer.alloc(size);
    if (size === 8) part.writeBigUInt64LE(BigInt(value)); else part.writeUIntLE(value, 0, size);
    this.parts.push(part);
    return this;
  }
  text(value) { const raw = Buffer.from(value); this.number(2, raw.length).parts.push(raw); return this; }
  data(value) { this.number(4, value.length).parts.push(value); return this; }
  qid(node) { return this.number(1, node.isDirectory ? 0x80 : 0).number(4, 0).number(8, node.number); }
}

export class Server {
  #count = 1; #fids = new Map(); #began = Math.floor(Date.now() / 1000); #root;
  constructor(tree) { this.#root = new Node(1, tree, null); }

  async answer(request) {
    let kind = request[4];
    const reply = new Writer();
    try {
      const operation = this[OPERATIONS[kind]] ?? fail('EROFS');
      await operation.call(this, request.subarray(HEADER), reply);
      kind += 1;
    } catch (error) {
      if (ERRNO[error?.code] === undefined) console.error(tell(error));
      reply.parts = [];
      reply.number(4, ERRNO[error?.code] ?? ERRNO.EIO);
      kind = 7;
    }
    const body = Buffer.concat(reply.parts);
    const head = Buffer.alloc(HEADER);
    head.writeUInt32LE(HEADER + body.length, 0);
    head[4] = kind;
    head.writeUInt16LE(request.readUInt16LE(5), 5);
    return Buffer.concat([head, body]);
  }

  #node(body) { return this.#fids.get(body.readUInt32LE(0)) ?? fail('EBADF'); }
  #child(node, name, value) {
    let child = node.children.get(name);
    if (child === undefined || child.isDirectory !== isDirectory(value)) {
      child = new Node(++this.#count, value, node);
      node.children.set(name, child);
    }
    child.value = value;
    return child;
  }
  #writable(node) { return node.value instanceof File && node.value.write ? node : fail('EACCES'); }

  version(body, reply) { this.#fids.clear(); reply.number(4, Math.min(body.readUInt32LE(0), MESSAGE)).text(VERSION); }
  attach(body, reply) { this.#fids.set(body.readUInt32LE(0), this.#root); reply.qid(this.#root); }
  nothing() {}
  statfs(body, reply) { reply.number(4, 0x01021997).number(4, 4096); for (let n = 0; n < 6; n++) reply.number(8, 0); reply.number(4, 255); }

  async walk(body, reply) {
    const count = body.readUInt16LE(8);
    let node = this.#node(body), at = 10;
    const found = [];
    for (let n = 0; n < count; n++) {
      const length = body.readUInt16LE(at);
      const name = body.toString('utf8', at + 2, at + 2 + length);
      at += 2 + length;
      if (!node.isDirectory) fail('ENOTDIR');
      if (name === '..') node = node.parent ?? node;
      else {
        const entry = (await node.entries()).find(([key]) => key === name) ?? fail('ENOENT');
        node = this.#child(node, name, entry[1]);
      }
      found.push(node);
    }
    if (count === 0) node = Object.assign(new Node(node.number, node.value, node.parent), { children: node.children });
    this.#fids.set(body.readUInt32LE(4), node);
    reply.number(2, found.length);
    for (const each of found) reply.qid(each);
  }

  async getattr(body, reply) {
    const node = this.#node(body);
    const size = node.isDirectory ? 0 : (node.data ?? await node.contents()).length;
    reply.number(8, 0x7ff).qid(node).number(4, node.mode).number(4, process.getuid()).number(4, process.getgid());
    for (const value of [node.isDirectory ? 2 : 1, 0, size, 4096, Math.ceil(size / 512)]) reply.number(8, value);
    for (let n = 0; n < 3; n++) reply.number(8, this.#began).number(8, 0);
    for (let n = 0; n < 4; n++) reply.number(8, 0);
  }

  async setattr(body) {
    const node = this.#node(body);
    if (!(body.readUInt32LE(4) & 8)) return;
    const size = Number(body.readBigUInt64LE(20));
    const data = Buffer.alloc(size);
    (node.data ?? await this.#writable(node).contents()).copy(data);
    if (node.data === null) await this.#writable(node).value.write(data);
    else Object.assign(node, { data, written: true });
  }

  async open(body, reply) {
    const node = this.#node(body), flags = body.readUInt32LE(4), truncates = (flags & 3) !== 0 && (flags & TRUNCATE) !== 0;
    if (node.isDirectory) node.data = await node.entries();
    else {
      if (flags & 3) this.#writable(node);
      Object.assign(node, { data: truncates ? Buffer.alloc(0) : await node.contents(), written: truncates });
    }
    reply.qid(node).number(4, 0);
  }

  readdir(body, reply) {
    const node = this.#node(body);
    let at = Number(body.readBigUInt64LE(4)), room = body.readUInt32LE(12);
    const listed = new Writer();
    for (const [name, value] of node.data.slice(at)) {
      room -= 24 + Buffer.byteLength(name);
      if (room < 0) break;
      const child = this.#child(node, name, value);
      listed.qid(child).number(8, ++at).number(1, child.mode >> 12).text(name);
    }
    reply.data(Buffer.concat(listed.parts));
  }

  read(body, reply) {
    const node = this.#node(body), offset = Number(body.readBigUInt64LE(4));
    reply.data(node.data.subarray(offset, offset + body.readUInt32LE(12)));
  }

  write(body, reply) {
    const node = this.#node(body), offset = Number(body.readBigUInt64LE(4)), data = body.subarray(16, 16 + body.readUInt32LE(12));
    const grown = Buffer.alloc(Math.max(node.data.length, offset + data.length));
    node.data.copy(grown);
    data.copy(grown, offset);
    Object.assign(node, { data: grown, written: true });
    reply.number(4, data.length);
  }

  async clunk(body) {
    const node = this.#node(body);
    this.#fids.delete(body.readUInt32LE(0));
    if (node.written) { node.written = false; await node.value.write(node.data); }
  }
}

const OPERATIONS = { 8: 'statfs', 12: 'open', 24: 'getattr', 26: 'setattr', 40: 'readdir', 50: 'nothing', 100: 'version',
  104: 'attach', 108: 'nothing', 110: 'walk', 116: 'read', 118: 'write', 120: 'clunk' };

export async function serve(name, tree) {
  const path = name.includes('/') ? name : '/mnt/srv/' + name;
  try { unlinkSync(path); } catch (error) { if (error.code !== 'ENOENT') throw error; }
  const fd = openSync(path, 'wx+', 0o644);
  writeSync(fd, '9p');
  const server = new Server(tree), buffer = Buffer.alloc(MESSAGE);
  for (let held = Buffer.alloc(0); ;) {
    const count = await new Promise((done, failed) => read(fd, buffer, 0, MESSAGE, null, (error, n) => (error ? failed(error) : done(n))));
    if (count === 0) return;
    held = Buffer.concat([held, buffer.subarray(0, count)]);
    while (held.length >= 4 && held.length >= held.readUInt32LE(0)) {
      const size = held.readUInt32LE(0);
      let answer = await server.answer(held.subarray(0, size));
      held = held.subarray(size);
      while (answer.length > 0) answer = answer.subarray(writeSync(fd, answer));
    }
  }
}
`;

let url;

module.exports = {
  'internal/modules/esm/resolve'(exports) {
    const { defaultResolve } = exports;
    exports.defaultResolve = (specifier, context) => {
      if (specifier !== 'belljar:fs') return defaultResolve(specifier, context);
      url ??= `data:text/javascript,${encodeURIComponent(SOURCE)}`;
      return { __proto__: null, url, format: 'module' };
    };
  },
};
