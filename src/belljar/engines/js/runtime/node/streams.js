// Pipes and terminals: the streams under net.Socket, tty and the standard streams, over descriptors of the kernel.
'use strict';

const { ArrayBufferPrototypeSlice, ArrayPrototypePush, Int32Array, MathMin } = primordials;
const kernel = require('belljar/kernel');
const { Handle } = require('belljar/node/handle');
const { Request, later } = require('belljar/node/loop');

const LATIN1 = 4, UTF8 = 1, ASCII = 0, UCS2 = 3;
const READ_BYTES = 0, OFFSET = 1, WRITTEN = 2, ASYNC = 3; // of streamBaseState
const EOF = -4095, PIECE = 64 << 10, WRITE = 1 << 20;
const S_IFMT = 0o170000, S_IFREG = 0o100000, S_IFDIR = 0o040000, S_IFIFO = 0o010000, S_IFCHR = 0o020000, S_IFSOCK = 0o140000;
const TTY_KIND = 1, FILE_KIND = 3, PIPE_KIND = 4, UNKNOWN_KIND = 5, INVALID_KIND = 6; // as Node numbers them

const state = new Int32Array(5);

class ShutdownWrap {}
class WriteWrap {}

const isatty = (fd) => {
  try {
    return kernel.call('isatty', fd) === 1;
  } catch {
    return false;
  }
};

function guess(fd) {
  let mode;
  try {
    mode = kernel.call('fstat', fd).mode & S_IFMT;
  } catch {
    return INVALID_KIND;
  }
  switch (mode) {
    case S_IFREG: case S_IFDIR: return FILE_KIND;
    case S_IFIFO: case S_IFSOCK: return PIPE_KIND;
    case S_IFCHR: return isatty(fd) ? TTY_KIND : FILE_KIND;
    default: return UNKNOWN_KIND;
  }
}

class Stream extends Handle {
  #reader = -1;
  #writer = -1;
  #reading = false;
  #request;
  #kept; // what came while nobody wanted it
  #ended = false;
  #closes = true;

  isStreamBase = true;
  bytesRead = 0;
  bytesWritten = 0;
  onread = undefined;

  // Two descriptors of one thing may be the same.
  attach(reader, writer, closes = true) {
    this.#reader = reader;
    this.#writer = writer;
    this.#closes = closes;
  }

  get fd() { return this.#reader >= 0 ? this.#reader : this.#writer; }
  get writeQueueSize() { return 0; }

  readStart() {
    if (this.#reader < 0) return 0; // a pipe that we only write to
    this.#reading = true;
    this.busy = true;
    if (this.#kept !== undefined) {
      const kept = this.#kept;
      this.#kept = undefined;
      later(() => this.#deliver(...kept));
    } else {
      this.#ask();
    }
    return 0;
  }

  readStop() {
    this.#reading = false;
    this.busy = false;
    return 0;
  }

  #ask() {
    if (this.#request !== undefined || this.#ended || this.closed) return;
    this.#request = new Request('read', [this.#reader, PIECE], (error, data) => {
      this.#request = undefined;
      if (this.closed) return;
      const kept = [error === null ? data.length === 0 ? EOF : data.length : -error.errno, data];
      if (kept[0] < 0) this.#ended = true;
      if (this.#reading) this.#deliver(...kept);
      else this.#kept = kept;
    });
    this.#request.count(false); // it is the handle that counts
  }

  #deliver(count, data) {
    if (!this.#reading) {
      this.#kept = [count, data];
      return;
    }
    state[READ_BYTES] = count;
    state[OFFSET] = 0;
    if (count < 0) {
      this.busy = false;
      this.onread(undefined);
      return;
    }
    this.bytesRead += count;
    this.onread(ArrayBufferPrototypeSlice(data.buffer, data.byteOffset, data.byteOffset + data.byteLength));
    if (this.#reading) this.#ask();
  }

  useUserBuffer() {}

  shutdown(request) {
    later(() => {
      const writer = this.#writer;
      if (writer >= 0 && writer !== this.#reader && this.#closes) {
        this.#writer = -1;
        kernel.call('close', writer);
      }
      request.oncomplete(0);
    });
    return 0;
  }

  #write(request, bytes) {
    let done = 0;
    state[ASYNC] = 0;
    state[WRITTEN] = bytes.length;
    this.bytesWritten += bytes.length;
    if (this.synchronous) {
      while (done < bytes.length) {
        try {
          done += kernel.call('write', this.#writer, bytes.subarray(done, done + WRITE));
        } catch (error) {
          return -error.errno;
        }
      }
      return 0;
    }
    state[ASYNC] = 1;
    const step = () => new Request('write', [this.#writer, bytes.subarray(done, MathMin(done + WRITE, bytes.length))], (error, count) => {
      if (error !== null) return request.oncomplete(this.closed ? -125 : -error.errno, this, undefined);
      done += count;
      if (done < bytes.length) step();
      else request.oncomplete(0, this, undefined);
    });
    step();
    return 0;
  }

  writeBuffer(request, bytes) { return this.#write(request, new primordials.Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)); }
  writeUtf8String(request, text) { return this.#write(request, native.decode(text, UTF8)); }
  writeAsciiString(request, text) { return this.#write(request, native.decode(text, ASCII)); }
  writeLatin1String(request, text) { return this.#write(request, native.decode(text, LATIN1)); }
  writeUcs2String(request, text) { return this.#write(request, native.decode(text, UCS2)); }
  writev(request, chunks, buffers) {
    const { Buffer } = require('buffer');
    const parts = [];
    if (buffers) for (let i = 0; i < chunks.length; i++) ArrayPrototypePush(parts, chunks[i]);
    else for (let i = 0; i < chunks.length; i += 2) ArrayPrototypePush(parts, typeof chunks[i] === 'string' ? Buffer.from(chunks[i], chunks[i + 1]) : chunks[i]);
    return this.writeBuffer(request, Buffer.concat(parts));
  }

  setBlocking(blocks) { this.synchronous = blocks; return 0; }

  _close() {
    const fds = this.#reader === this.#writer ? [this.#reader] : [this.#reader, this.#writer];
    this.#reader = this.#writer = -1;
    if (!this.#closes) return;
    for (const fd of fds) if (fd >= 0) this._release(fd);
  }

  _release(fd) { kernel.call('close', fd); }
}

class Pipe extends Stream {
  constructor(type) { super(); this.type = type; }
  // One of the standard streams, or a descriptor that the program was given.
  open(fd) {
    this.attach(fd, fd, fd > 2);
    this.synchronous = fd > 0 && fd <= 2;
    return 0;
  }
  bind() { return -95; }
  listen() { return -95; }
  connect(_request, _path) { return -95; }
  fchmod() { return -95; }
}

class TTY extends Stream {
  #fd;
  constructor(fd, context) {
    super();
    this.#fd = fd;
    if (!isatty(fd)) {
      context.errno = -25; context.code = 'ENOTTY'; context.message = 'inappropriate ioctl for device'; context.syscall = 'uv_tty_init';
      return;
    }
    this.attach(fd, fd, false);
    this.synchronous = true;
  }
  getWindowSize(size) {
    const { 0: rows, 1: columns } = kernel.call('winsize', this.#fd);
    size[0] = columns;
    size[1] = rows;
    return 0;
  }
  setRawMode(raw) {
    try {
      kernel.call('raw', this.#fd, raw ? 1 : 0);
      return 0;
    } catch (error) {
      return -error.errno;
    }
  }
}

module.exports = {
  guess, Stream, state,
  stream_wrap: {
    ShutdownWrap, WriteWrap, LibuvStreamWrap: Stream, streamBaseState: state,
    kReadBytesOrError: READ_BYTES, kArrayBufferOffset: OFFSET, kBytesWritten: WRITTEN, kLastWriteWasAsync: ASYNC,
  },
  pipe_wrap: { Pipe, PipeConnectWrap: class PipeConnectWrap {} },
  tty_wrap: { TTY, isTTY: isatty },
};
