// System calls on the sandbox's kernel: the client of belljar/engines/wire/calls.py, which has the wire format.
'use strict';

const { ArrayPrototypePush, ArrayPrototypeShift, BigInt, DataView, Error, JSONParse, Number, SafeMap, Uint8Array } = primordials;
const { decode, encode } = native;
const table = require('belljar/call_table');

const BACKGROUND = 1;
const START = 1, SIGNAL = 2;
const UTF8 = 1;
const END = 2 ** 53;

class SysError extends Error {
  constructor(call, errno) {
    super(`${call}: errno ${errno}`);
    this.errno = errno;
    this.call = call;
  }
}

const bytesOf = (value) => (typeof value === 'string' ? decode(value, UTF8) : value);

// Text is sent as UTF-8, bytes as they are; numbers may be BigInts.
class Writer {
  #bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  #at = 12;

  #room(count) {
    if (this.#at + count <= this.#bytes.length) return;
    const wider = new Uint8Array(2 * (this.#at + count));
    native.copy(this.#bytes, wider, 0, 0, this.#at);
    this.#bytes = wider;
    this.#view = new DataView(wider.buffer);
  }

  u32(value) {
    this.#room(4);
    this.#view.setUint32(this.#at, value, true);
    this.#at += 4;
  }

  q(value) {
    this.#room(8);
    this.#view.setBigInt64(this.#at, BigInt(value), true);
    this.#at += 8;
  }

  s(value) {
    const bytes = bytesOf(value);
    this.u32(bytes.length);
    this.#room(bytes.length);
    native.copy(bytes, this.#bytes, this.#at, 0, bytes.length);
    this.#at += bytes.length;
  }

  l(values) {
    this.u32(values.length);
    for (let i = 0; i < values.length; i++) this.s(values[i]);
  }

  Q(values) {
    this.u32(values.length);
    for (let i = 0; i < values.length; i++) this.q(values[i]);
  }

  request(id, number, flags) {
    const view = this.#view;
    view.setUint32(0, this.#at - 4, true);
    view.setUint32(4, id, true);
    view.setUint16(8, number, true);
    view.setUint16(10, flags, true);
    return new Uint8Array(this.#bytes.buffer, 0, this.#at);
  }
}

// Numbers are Numbers, except a stat's three times in nanoseconds, which are BigInts. Strings are bytes.
class Reader {
  #bytes;
  #view;
  #at;

  constructor(bytes, at) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = at;
  }

  u32() { return this.#view.getUint32((this.#at += 4) - 4, true); }
  i32() { return this.#view.getInt32((this.#at += 4) - 4, true); }
  big() { return this.#view.getBigInt64((this.#at += 8) - 8, true); }
  q() { return Number(this.big()); }

  s() {
    const size = this.u32();
    return new Uint8Array(this.#bytes.buffer, this.#bytes.byteOffset + (this.#at += size) - size, size);
  }

  #many(read) {
    const made = [];
    for (let left = this.u32(); left > 0; left--) ArrayPrototypePush(made, read());
    return made;
  }

  l() { return this.#many(() => this.s()); }
  Q() { return this.#many(() => this.q()); }
  D() { return this.#many(() => ({ ino: this.q(), mode: this.q(), name: this.s() })); }
  T() { return this.#many(() => ({ stat: this.S(), name: this.s() })); }

  S() {
    return {
      mode: this.q(), ino: this.q(), dev: this.q(), nlink: this.q(), uid: this.q(), gid: this.q(), size: this.q(),
      atime: this.big(), mtime: this.big(), ctime: this.big(), rdev: this.q(), blocks: this.q(),
    };
  }

  all(signature) {
    const values = [];
    for (let i = 0; i < signature.length; i++) ArrayPrototypePush(values, this[signature[i]]());
    return values;
  }
}

const waiting = new SafeMap(); // background calls
const done = []; // background calls with their answers: whoever asked is told by `wait`, never in the midst of another call
const signals = []; // numbers of signals that were asked for and came
let ids = 0;
let started = false; // a template has no kernel

function request(id, name, values, flags) {
  const { 0: number, 1: takes } = table[name];
  const writer = new Writer();
  for (let i = 0; i < takes.length; i++) writer[takes[i]](values[i]);
  return writer.request(id, number, flags);
}

function send(name, values, flags) {
  if (!started) throw new Error(`${name}: there is no kernel yet`);
  native.sendBytes(request(++ids, name, values, flags));
  return ids;
}

// The next answer or event, whoever it is for.
function receive() {
  const reader = new Reader(native.receiveBody(), 0);
  const id = reader.u32(), errno = reader.i32();
  if (id === 0) {
    if (errno === SIGNAL) ArrayPrototypePush(signals, reader.q());
    return { id, errno, reader };
  }
  const background = waiting.get(id);
  if (background !== undefined) {
    waiting.delete(id);
    ArrayPrototypePush(done, { background, errno, reader });
  }
  return { id, errno, reader };
}

module.exports = {
  SysError,
  signals,
  // What to run: { argv, env, cwd } as text, the kind's own options, and the numbers of protocol.py's `Start`.
  start() {
    started = true;
    const { errno, reader } = receive();
    if (errno !== START) throw new Error('the first frame is not START');
    const { 0: argv, 1: env, 2: cwd, 3: options, 4: numbers } = reader.all('llssQ');
    const text = (bytes) => encode(bytes, UTF8, 0, END);
    return { argv: argv.map(text), env: env.map(text), cwd: text(cwd), options: JSONParse(text(options)), numbers };
  },
  // One call, done before this returns; gives what it gives (an array if that is more than one thing).
  call(name, ...values) {
    const id = send(name, values, 0);
    for (;;) {
      const answer = receive();
      if (answer.id !== id) continue;
      if (answer.errno !== 0) throw new SysError(name, answer.errno);
      const given = answer.reader.all(table[name][2]);
      return given.length > 1 ? given : given[0];
    }
  },
  // One call that may take its time: callback(error, ...values) once it is done.
  background(name, values, callback) {
    waiting.set(send(name, values, BACKGROUND), { name, callback });
  },
  // What the kernel is told if a limit ends this process.
  setLimits(cpuNanoseconds, memoryBytes) {
    const CPU = 1, MEMORY = 3; // as guest.h numbers them
    for (const why of [0, CPU, MEMORY]) {
      const limit = why === CPU ? 'cpu_seconds' : 'memory_bytes';
      native.setFinalMessage(why, request(1, 'exceeded', [limit, why === CPU ? cpuNanoseconds : native.cpuTime()], 0));
    }
    native.limits(cpuNanoseconds / 1e6, 0, memoryBytes / 2 ** 20);
  },
  // A call that is never answered: `exit`, `exceeded`.
  tell(name, ...values) { send(name, values, 0); },
  get pending() { return waiting.size + done.length; },
  // Waits until something came that a callback was told of, or so many milliseconds.
  wait(milliseconds) {
    if (done.length === 0) {
      if (!native.readable(milliseconds === Infinity ? -1 : milliseconds)) return false;
      receive();
    }
    if (done.length > 0) {
      const { background, errno, reader } = ArrayPrototypeShift(done);
      if (errno !== 0) background.callback(new SysError(background.name, errno));
      else background.callback(null, ...reader.all(table[background.name][2]));
    }
    return true;
  },
};
