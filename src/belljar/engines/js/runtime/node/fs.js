// What Node's fs library gets from its C++ side: each operation as calls on the sandbox's kernel.
// An operation is done before its function returns; with a request object or kUsePromises the result is told later.
'use strict';

const {
  ArrayIsArray, ArrayPrototypePush, BigInt, BigInt64Array, Float64Array, MathFloor, MathMin, Number, Promise, Symbol, Uint8Array,
} = primordials;
const kernel = require('belljar/kernel');
const { failure } = require('belljar/node/failure');
const { later, Request } = require('belljar/node/loop');
const { Buffer } = require('buffer');

const AT_FDCWD = -100;
const PIECE = 1 << 20;
const O_RDONLY = 0, O_CREAT = 0o100, O_EXCL = 0o200, O_TRUNC = 0o1000, O_WRONLY = 1;
const S_IFMT = 0o170000, S_IFDIR = 0o040000;
const DIRENT = { __proto__: null, 0o100000: 1, 0o040000: 2, 0o120000: 3, 0o010000: 4, 0o140000: 5, 0o020000: 6, 0o060000: 7 };
const BOTH = 5; // atime and mtime
const ENOENT = 2;
const MAIN_ENDINGS = 7; // how many ways there are for a package's `main` to mean a file

const kUsePromises = Symbol('fs_use_promises_symbol');
const statValues = new Float64Array(36);
const bigintStatValues = new BigInt64Array(36);

class FSReqCallback {
  constructor(bigint) { this.bigint = bigint; this.oncomplete = null; this.context = undefined; }
}

class FileHandle {
  constructor(fd) { this.fd = fd; }
  getAsyncId() { return 0; }
  close() { return operations.close(this.fd, kUsePromises); }
  releaseFD() { const { fd } = this; this.fd = -1; return fd; }
  onread() {}
}

const text = (bytes, encoding = 'utf8') => {
  const made = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return encoding === 'buffer' ? Buffer.from(made) : made.toString(encoding ?? 'utf8');
};
const random = (size) => {
  const bytes = new Uint8Array(size);
  native.random(bytes);
  const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
  let name = '';
  for (const byte of bytes) name += letters[byte % 62];
  return name;
};

function fill(stat, bigint) {
  const second = 10n ** 9n;
  const values = [stat.dev, stat.mode, stat.nlink, stat.uid, stat.gid, stat.rdev, 4096, stat.ino, stat.size, stat.blocks];
  for (const time of [stat.atime, stat.mtime, stat.ctime, stat.ctime]) ArrayPrototypePush(values, time / second, time % second);
  const made = bigint ? new BigInt64Array(18) : new Float64Array(18);
  for (let i = 0; i < 18; i++) made[i] = bigint ? BigInt(values[i]) : Number(values[i]);
  return made;
}

const NANO = 1e9;
const nano = (seconds) => BigInt(MathFloor(seconds)) * 1000000000n + BigInt(Math.round((seconds - MathFloor(seconds)) * NANO));

function writeAll(fd, bytes, position) {
  let done = 0;
  do {
    const piece = bytes.subarray(done, done + PIECE);
    const at = position === null || position === undefined || position < 0;
    done += at ? kernel.call('write', fd, piece) : kernel.call('pwrite', fd, piece, BigInt(position) + BigInt(done));
  } while (done < bytes.length);
  return done;
}

function readInto(fd, buffer, offset, length, position) {
  const size = MathMin(length, PIECE);
  const here = position === null || position === undefined || position < 0;
  const data = here ? kernel.call('read', fd, size) : kernel.call('pread', fd, size, position);
  native.copy(data, bytesOf(buffer), offset, 0, data.length);
  return data.length;
}

const bytesOf = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
const lstat = (path) => kernel.call('stat', AT_FDCWD, path, 1);

function remove(path, recursive) {
  const stat = lstat(path);
  if ((stat.mode & S_IFMT) !== S_IFDIR) return kernel.call('unlink', AT_FDCWD, path);
  if (recursive) {
    const above = typeof path === 'string' ? Buffer.from(path) : path;
    for (const { name } of kernel.call('readdir', AT_FDCWD, path)) remove(Buffer.concat([above, Buffer.from('/'), name]), true);
  }
  kernel.call('rmdir', AT_FDCWD, path);
}

function makeAll(path, mode) {
  const parts = `${path}`.split('/');
  let first, at = '';
  for (let i = 0; i < parts.length; i++) {
    at += (i > 0 ? '/' : '') + parts[i];
    if (parts[i] === '' || parts[i] === '.') continue;
    try {
      kernel.call('mkdir', AT_FDCWD, at, mode);
      first ??= require('path').resolve(at);
    } catch (error) {
      if (error.errno !== 17 || i === parts.length - 1 && (kernel.call('stat', AT_FDCWD, at, 0).mode & S_IFMT) !== S_IFDIR) throw error;
    }
  }
  return first;
}

function realpath(path) {
  const { resolve } = require('path');
  let left = resolve(`${path}`).split('/').filter((part) => part !== '');
  let at = '', links = 0;
  while (left.length > 0) {
    const next = `${at}/${left[0]}`;
    left = left.slice(1);
    if ((lstat(next).mode & S_IFMT) !== 0o120000) {
      at = next;
      continue;
    }
    if (++links > 40) throw new kernel.SysError('realpath', 40);
    const target = text(kernel.call('readlink', AT_FDCWD, next));
    left = resolve(at === '' ? '/' : at, target).split('/').filter((part) => part !== '').concat(left);
    at = '';
  }
  return at === '' ? '/' : at;
}

// By Node's names: what is given, without the request object.
const simple = {
  __proto__: null,
  access: (path, mode) => kernel.call('access', AT_FDCWD, path, mode),
  chmod: (path, mode) => kernel.call('chmod', AT_FDCWD, path, mode, 0),
  chown: (path, uid, gid) => kernel.call('chown', AT_FDCWD, path, uid, gid, 0),
  close: (fd) => kernel.call('close', fd),
  copyFile(from, to, mode) {
    const source = kernel.call('open', AT_FDCWD, from, O_RDONLY, 0);
    try {
      const flags = O_WRONLY | O_CREAT | (mode & 1 ? O_EXCL : O_TRUNC);
      const { 0: target } = kernel.call('open', AT_FDCWD, to, flags, source[1].mode & 0o777);
      try {
        for (let data; (data = kernel.call('read', source[0], PIECE)).length > 0;) writeAll(target, data);
      } finally {
        kernel.call('close', target);
      }
    } finally {
      kernel.call('close', source[0]);
    }
  },
  fchmod: (fd, mode) => kernel.call('fchmod', fd, mode),
  fchown: (fd, uid, gid) => kernel.call('fchown', fd, uid, gid),
  fdatasync: (fd) => kernel.call('fsync', fd),
  fstat: (fd, bigint) => fill(kernel.call('fstat', fd), bigint),
  fsync: (fd) => kernel.call('fsync', fd),
  ftruncate: (fd, size = 0) => kernel.call('ftruncate', fd, size),
  futimes: (fd, atime, mtime) => kernel.call('futimens', fd, nano(atime), nano(mtime), BOTH),
  lchown: (path, uid, gid) => kernel.call('chown', AT_FDCWD, path, uid, gid, 1),
  link: (from, to) => kernel.call('link', AT_FDCWD, from, AT_FDCWD, to, 0),
  lstat: (path, bigint) => fill(lstat(path), bigint),
  lutimes: (path, atime, mtime) => kernel.call('utimens', AT_FDCWD, path, nano(atime), nano(mtime), BOTH, 1),
  mkdir: (path, mode, recursive) => (recursive ? makeAll(path, mode) : kernel.call('mkdir', AT_FDCWD, path, mode)),
  mkdtemp(prefix, encoding) {
    for (;;) {
      const path = `${prefix}${random(6)}`;
      try {
        kernel.call('mkdir', AT_FDCWD, path, 0o700);
        return encoding === 'buffer' ? Buffer.from(path) : path;
      } catch (error) {
        if (error.errno !== 17) throw error;
      }
    }
  },
  open: (path, flags, mode) => kernel.call('open', AT_FDCWD, path, flags & ~0o2000000, mode ?? 0o666)[0],
  openFileHandle: (path, flags, mode) => new FileHandle(simple.open(path, flags, mode)),
  read: (fd, buffer, offset, length, position) => readInto(fd, buffer, offset, length, typeof position === 'bigint' ? Number(position) : position),
  readBuffers(fd, buffers, position) {
    let count = 0;
    for (const buffer of buffers) {
      const got = readInto(fd, buffer, 0, buffer.byteLength, position === null || position === undefined || position < 0 ? -1 : position + count);
      count += got;
      if (got < buffer.byteLength) break;
    }
    return count;
  },
  readdir(path, encoding, withTypes) {
    const names = [], types = [];
    for (const { name, mode } of kernel.call('readdir', AT_FDCWD, path)) {
      ArrayPrototypePush(names, text(name, encoding));
      ArrayPrototypePush(types, DIRENT[mode & S_IFMT] ?? 0);
    }
    const order = names.map((_, index) => index).sort((a, b) => (names[a] < names[b] ? -1 : 1));
    const sorted = order.map((index) => names[index]);
    return withTypes ? [sorted, order.map((index) => types[index])] : sorted;
  },
  readlink: (path, encoding) => text(kernel.call('readlink', AT_FDCWD, path), encoding),
  realpath: (path, encoding) => (encoding === 'buffer' ? Buffer.from(realpath(path)) : realpath(path)),
  rename: (from, to) => kernel.call('rename', AT_FDCWD, from, AT_FDCWD, to, 0),
  rmdir: (path) => kernel.call('rmdir', AT_FDCWD, path),
  stat: (path, bigint) => fill(kernel.call('stat', AT_FDCWD, path, 0), bigint),
  statfs(path, bigint) {
    const { 0: size, 1: blocks, 2: free, 3: files, 4: filesFree } = kernel.call('statfs', AT_FDCWD, path);
    const values = [0, size, blocks, free, free, files, filesFree];
    return bigint ? new BigInt64Array(values.map(BigInt)) : new Float64Array(values);
  },
  symlink: (target, path) => kernel.call('symlink', target, AT_FDCWD, path),
  unlink: (path) => kernel.call('unlink', AT_FDCWD, path),
  utimes: (path, atime, mtime) => kernel.call('utimens', AT_FDCWD, path, nano(atime), nano(mtime), BOTH, 0),
  writeBuffer: (fd, buffer, offset, length, position) => writeAll(fd, bytesOf(buffer).subarray(offset, offset + length), position),
  writeBuffers(fd, buffers, position) {
    let count = 0;
    for (const buffer of buffers) count += writeAll(fd, bytesOf(buffer), typeof position === 'number' ? position + count : null);
    return count;
  },
  writeString: (fd, string, position, encoding) => writeAll(fd, Buffer.from(string, encoding), position),
};
const TWO = { __proto__: null, copyFile: true, link: true, rename: true, symlink: true };
const BY_FD = { __proto__: null };
for (const name of ['close', 'fchmod', 'fchown', 'fdatasync', 'fstat', 'fsync', 'ftruncate', 'futimes', 'read', 'readBuffers', 'writeBuffer', 'writeBuffers', 'writeString']) BY_FD[name] = true;
const SYSCALL = { __proto__: null, copyFile: 'copyfile', readdir: 'scandir', openFileHandle: 'open', readBuffers: 'read', writeBuffer: 'write', writeBuffers: 'write', writeString: 'write', utimes: 'utime', futimes: 'futime', lutimes: 'lutime' };

function explain(name, error, values) {
  const paths = BY_FD[name] ? [] : TWO[name] ? [values[0], values[1]] : [values[0]];
  return failure(error, SYSCALL[name] ?? name, ...paths);
}

function waits(request) {
  return request === kUsePromises || request instanceof FSReqCallback;
}

function make(name) {
  const run = simple[name];
  return (...values) => {
    const at = values.findIndex(waits);
    if (at === -1) {
      try {
        return run(...values);
      } catch (error) {
        const lenient = name === 'fstat' ? values[3] === true : (name === 'stat' || name === 'lstat') && values[3] === false;
        if (lenient && (name === 'fstat' || error.errno === 2 || error.errno === 20)) return undefined;
        throw explain(name, error, values);
      }
    }
    const request = values[at];
    const given = values.slice(0, at);
    const perform = (done) => {
      if (name === 'read' && !(given[4] >= 0)) {
        // It may wait for whoever is at the other end: everything else goes on meanwhile.
        new Request('read', [given[0], MathMin(given[3], PIECE)], (error, data) => {
          if (error !== null) return done(explain(name, error, given));
          native.copy(data, bytesOf(given[1]), given[2], 0, data.length);
          done(null, data.length);
        });
        return;
      }
      later(() => {
        let result;
        try {
          result = run(...given);
        } catch (error) {
          return done(explain(name, error, given));
        }
        done(null, result);
      });
    };
    if (request === kUsePromises) {
      return new Promise((resolve, reject) => perform((error, result) => (error === null ? resolve(result) : reject(error))));
    }
    perform((error, result) => (error === null ? request.oncomplete(null, result) : request.oncomplete(error)));
    return undefined;
  };
}

const operations = { __proto__: null };
for (const name in simple) operations[name] = make(name);

const guard = (name, path, run) => {
  try {
    return run();
  } catch (error) {
    throw failure(error, name, path);
  }
};

const fs = {
  ...operations,
  FSReqCallback, FileHandle, kUsePromises, statValues, bigintStatValues,
  kFsStatsFieldsNumber: 18,
  existsSync(path) {
    try {
      kernel.call('access', AT_FDCWD, path, 0);
      return true;
    } catch {
      return false;
    }
  },
  internalModuleStat(receiver, path = receiver) {
    try {
      return (kernel.call('stat', AT_FDCWD, path, 0).mode & S_IFMT) === S_IFDIR ? 1 : 0;
    } catch {
      return -1;
    }
  },
  // Which of a package's possible main files there is: the main, with extensions, as a directory; then the index.
  legacyMainResolve(directory, main, base) {
    const endings = ['', '.js', '.json', '.node', '/index.js', '/index.json', '/index.node', 'index.js', 'index.json', 'index.node'];
    const { resolve } = require('path');
    for (let i = typeof main === 'string' ? 0 : MAIN_ENDINGS; i < endings.length; i++) {
      if (fs.internalModuleStat(resolve(directory, (i < MAIN_ENDINGS ? main : '') + endings[i])) === 0) return i;
    }
    const { ERR_MODULE_NOT_FOUND } = require('internal/errors').codes;
    const from = base === undefined ? undefined : require('internal/url').fileURLToPath(base);
    throw new ERR_MODULE_NOT_FOUND(resolve(directory), from, 'package');
  },
  getFormatOfExtensionlessFile(path) {
    const isWasm = text(kernel.call('read_file', AT_FDCWD, path).subarray(0, 4), 'latin1') === '\0asm';
    return isWasm ? internalBinding('constants').internal.EXTENSIONLESS_FORMAT_WASM : internalBinding('constants').internal.EXTENSIONLESS_FORMAT_JAVASCRIPT;
  },
  cpSyncOverrideFile(from, to, mode) {
    guard('cp', from, () => { remove(to, false); simple.copyFile(from, to, mode); });
  },
  readFileUtf8(path, flags) {
    if (typeof path !== 'number') {
      if (flags === O_RDONLY) {
        try {
          return text(kernel.call('read_file', AT_FDCWD, path));
        } catch (error) {
          if (error.errno !== 27) throw failure(error, error.errno === 21 ? 'read' : 'open', error.errno === 21 ? undefined : path);
        }
      }
    }
    const fd = typeof path === 'number' ? path : operations.open(path, flags, 0o666);
    return guard('read', undefined, () => {
      try {
        const parts = [];
        for (let data; (data = kernel.call('read', fd, PIECE)).length > 0;) ArrayPrototypePush(parts, data);
        return Buffer.concat(parts).toString('utf8');
      } finally {
        if (fd !== path) kernel.call('close', fd);
      }
    });
  },
  writeFileUtf8(path, data, flags, mode) {
    const bytes = Buffer.from(data, 'utf8');
    if (typeof path !== 'number' && bytes.length <= PIECE) {
      return void guard('open', path, () => kernel.call('write_file', AT_FDCWD, path, flags, mode, bytes));
    }
    const fd = typeof path === 'number' ? path : operations.open(path, flags, mode);
    guard('write', undefined, () => {
      try {
        writeAll(fd, bytes);
      } finally {
        if (fd !== path) kernel.call('close', fd);
      }
    });
  },
  rmSync(path, _retries, recursive) {
    try {
      remove(path, recursive);
    } catch (error) {
      if (error.errno !== ENOENT) throw failure(error, 'rm', path);
    }
  },
  cpSyncCheckPaths() {},
  cpSyncCopyDir(from, to, force, _dereference, errorOnExist) {
    const copy = (source, target) => {
      makeAll(target, 0o777);
      for (const { name, mode } of kernel.call('readdir', AT_FDCWD, source)) {
        const here = `${source}/${text(name)}`, there = `${target}/${text(name)}`;
        if ((mode & S_IFMT) === S_IFDIR) {
          copy(here, there);
        } else if ((mode & S_IFMT) === 0o120000) {
          kernel.call('symlink', require('path').resolve(source, text(kernel.call('readlink', AT_FDCWD, here))), AT_FDCWD, there);
        } else if (force || !fs.existsSync(there)) {
          simple.copyFile(here, there, 0);
        } else if (errorOnExist) {
          throw new kernel.SysError('cp', 17);
        }
      }
    };
    guard('cp', from, () => copy(from, to));
  },
  StatWatcher: class StatWatcher {},
};

module.exports = { fs, kUsePromises };
