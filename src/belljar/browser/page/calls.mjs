// An engine's system calls (belljar/engines/wire/calls.py): each is a request to the kernel's worker, waited for in place.
//
// Answers come through shared memory, because a worker that computes or waits can take no messages: a ring of bytes after
// two counters, of what was written and what was read, and a word that says whether the engine waits (engines.mjs counts
// the time that it does not).

export const RING_BYTES = 17 << 20; // the longest answer, with room for signals
const HEADER = 16;
const ANSWER = 12;

const CALLS = {
  open: [1, "qsqq", "qS"], close: [2, "q", ""], read: [3, "qq", "s"], write: [4, "qs", "q"], pread: [5, "qqq", "s"],
  pwrite: [6, "qsq", "q"], seek: [7, "qqq", "q"], fstat: [8, "q", "S"], ftruncate: [9, "qq", ""], futimens: [12, "qqqq", ""],
  fsync: [13, "q", ""], dup: [14, "qqq", "q"], dup2: [15, "qqq", ""], getfl: [17, "q", "qq"], setfl: [18, "qq", ""],
  stat: [20, "qsq", "S"], readlink: [22, "qs", "s"], readdir: [23, "qs", "D"], mkdir: [25, "qsq", ""], rmdir: [26, "qs", ""],
  unlink: [27, "qs", ""], rename: [28, "qsqsq", ""], link: [29, "qsqsq", ""], symlink: [30, "sqs", ""], chmod: [31, "qsqq", ""],
  utimens: [33, "qsqqqq", ""], truncate: [34, "qsq", ""], sleep: [43, "q", ""], poll: [44, "QQq", "Q"], kill: [47, "qq", ""],
  ids: [49, "", "Q"], exit: [51, "qqq", ""], exceeded: [52, "sq", ""], finish: [53, "qsqqq", "q"], isatty: [60, "q", "q"],
};
export const AT_FDCWD = -100;
export const START = 1;
export const SIGNAL = 2;
const NO_ANSWER = 2;
const WAITS = 2; // the word that says whether an engine waits

/** A ring for one engine. */
export const makeRing = () => new SharedArrayBuffer(HEADER + RING_BYTES);

/** Whether the engine of a ring waits for its kernel. */
export const isWaiting = (ring) => Atomics.load(new Int32Array(ring, 0, 4), WAITS) === 1;

/** The kernel's end of a ring: puts frames in. */
export class RingWriter {
  #words;
  #bytes;

  constructor(shared) {
    this.#words = new Int32Array(shared, 0, 2);
    this.#bytes = new Uint8Array(shared, HEADER);
  }

  put(data) {
    const size = this.#bytes.length;
    const written = Atomics.load(this.#words, 0);
    const at = ((written % size) + size) % size;
    const first = Math.min(data.length, size - at);
    this.#bytes.set(data.subarray(0, first), at);
    this.#bytes.set(data.subarray(first), 0);
    Atomics.store(this.#words, 0, (written + data.length) % size);
    Atomics.notify(this.#words, 0);
  }
}

class RingReader {
  #words;
  #bytes;
  waitedMs = 0; // in all

  constructor(shared) {
    this.#words = new Int32Array(shared, 0, 4);
    this.#bytes = new Uint8Array(shared, HEADER);
  }

  /** Whether something is there, at once or after so many milliseconds. */
  readable(milliseconds) {
    const written = Atomics.load(this.#words, 0);
    if (written !== this.#words[1]) return true;
    this.#wait(written, milliseconds);
    return Atomics.load(this.#words, 0) !== this.#words[1];
  }

  #wait(written, milliseconds = Infinity) {
    const began = performance.now();
    Atomics.store(this.#words, WAITS, 1);
    Atomics.wait(this.#words, 0, written, milliseconds);
    Atomics.store(this.#words, WAITS, 0);
    this.waitedMs += performance.now() - began;
  }

  // Exactly so many bytes; waits for them.
  take(count) {
    const size = this.#bytes.length;
    const data = new Uint8Array(count);
    for (let done = 0; done < count;) {
      const written = Atomics.load(this.#words, 0);
      const read = this.#words[1];
      const there = (written - read + size) % size;
      if (there === 0) {
        this.#wait(written);
        continue;
      }
      const some = Math.min(there, count - done, size - read);
      data.set(this.#bytes.subarray(read, read + some), done);
      this.#words[1] = (read + some) % size;
      done += some;
    }
    return data;
  }
}

/** A call that the kernel refused: `errno` is Linux's. */
export class CallError extends Error {
  constructor(errno) {
    super(`errno ${errno}`);
    this.errno = errno;
  }
}

/** A request as bytes. */
export function requestFrame(id, number, body, flags = 0) {
  const framed = new Uint8Array(12 + body.length);
  const view = new DataView(framed.buffer);
  view.setUint32(0, 8 + body.length, true);
  view.setUint32(4, id, true);
  view.setUint16(8, number, true);
  view.setUint16(10, flags, true);
  framed.set(body, 12);
  return framed;
}

/** What tells the kernel that a limit has ended an engine: it is not answered. */
export function exceededFrame(limit, cpuNanoseconds) {
  const [number, takes] = CALLS.exceeded;
  return requestFrame(1, number, encode(takes, [new TextEncoder().encode(limit), cpuNanoseconds]), NO_ANSWER);
}

export class Client {
  #post;
  #ring;
  #next = 1;
  #began = performance.now();
  onSignal = () => {};

  constructor(post, shared) {
    this.#post = post;
    this.#ring = new RingReader(shared);
  }

  /** Processor time since the program's start, as near as can be told: all of it but the waiting. */
  get cpuNanoseconds() {
    return Math.max(0, Math.round((performance.now() - this.#began - this.#ring.waitedMs) * 1e6));
  }

  /** Milliseconds in all that it has waited for its kernel. */
  get waitedMs() {
    return this.#ring.waitedMs;
  }

  // For an engine that frames its calls itself.

  send(data) {
    this.#post(data);
  }

  readable(milliseconds) {
    return this.#ring.readable(milliseconds);
  }

  /** The next answer or event, without its length. */
  receive() {
    return this.#ring.take(new DataView(this.#ring.take(4).buffer).getUint32(0, true));
  }

  #frame() {
    const head = this.#ring.take(ANSWER);
    const view = new DataView(head.buffer);
    return { id: view.getUint32(4, true), status: view.getInt32(8, true), body: this.#ring.take(view.getUint32(0, true) - 8) };
  }

  /** START: what to run. */
  start() {
    const { id, status, body } = this.#frame();
    if (id !== 0 || status !== START) throw new Error("an engine starts with START");
    const [argv, environment, cwd, options, numbers, descriptors] = decode("llssQQ", body);
    return { argv, environment, cwd, options: JSON.parse(new TextDecoder().decode(options)), numbers, descriptors };
  }

  /** The answer to a request: its status, and the results as bytes. */
  request(number, body, flags = 0) {
    const id = this.#next++;
    this.#post(requestFrame(id, number, body, flags));
    if (flags & NO_ANSWER) return null;
    for (;;) {
      const answer = this.#frame();
      if (answer.id === id) return answer;
      if (answer.id === 0 && answer.status === SIGNAL) this.onSignal(Number(decode("q", answer.body)[0]));
    }
  }

  /** Make a call by name. Throws CallError. */
  call(name, ...values) {
    const [number, takes, gives] = CALLS[name];
    const { status, body } = this.request(number, encode(takes, values));
    if (status !== 0) throw new CallError(status);
    return decode(gives, body);
  }

  /** A call that nobody waits for: the last one. */
  post(name, ...values) {
    const [number, takes] = CALLS[name];
    this.request(number, encode(takes, values), NO_ANSWER);
  }
}

/** Values by the letters of a signature: q i64, s bytes, Q list of i64. */
export function encode(signature, values) {
  const sizes = { q: () => 8, s: (value) => 4 + value.length, Q: (value) => 4 + 8 * value.length };
  const letters = [...signature];
  const data = new Uint8Array(letters.reduce((sum, letter, i) => sum + sizes[letter](values[i]), 0));
  const view = new DataView(data.buffer);
  let at = 0;
  const long = (value) => {
    view.setBigInt64(at, BigInt(value), true);
    at += 8;
  };
  const length = (value) => {
    view.setUint32(at, value, true);
    at += 4;
  };
  letters.forEach((letter, i) => {
    const value = values[i];
    if (letter === "q") long(value);
    else {
      length(value.length);
      if (letter === "Q") value.forEach(long);
      else {
        data.set(value, at);
        at += value.length;
      }
    }
  });
  return data;
}

const STAT = ["mode", "ino", "dev", "nlink", "uid", "gid", "size", "atime", "mtime", "ctime", "rdev", "blocks"];

export function decode(signature, data) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let at = 0;
  const long = () => {
    at += 8;
    return Number(view.getBigInt64(at - 8, true));
  };
  const length = () => {
    at += 4;
    return view.getUint32(at - 4, true);
  };
  const string = () => {
    const count = length();
    at += count;
    return data.slice(at - count, at);
  };
  const list = (read) => Array.from({ length: length() }, read);
  const readers = {
    q: long,
    s: string,
    l: () => list(string),
    Q: () => list(long),
    S: () => Object.fromEntries(STAT.map((name) => [name, long()])),
    D: () => list(() => ({ ino: long(), mode: long(), name: string() })),
  };
  return [...signature].map((letter) => readers[letter]());
}
