// wasi_snapshot_preview1 as calls on the sandbox's kernel (belljar/engines/wasi is the same in Python). Errors are WASI's numbers.
//
// Descriptors are the virtual process's own numbers. Number 3 is, for the functions that take paths, the root of the sandbox;
// for the others it is whatever the process has there.
import { AT_FDCWD, CallError, decode } from "./calls.mjs";
import {
  ALL_RIGHTS, ERRNO, FDFLAG, fileType, fromLinux, LINUX_FLAG, OFLAG, READING, RIGHT, rightsFor, SEEKING, TYPE, wasiFlags,
} from "./engine_wasi_numbers.mjs";

const ROOT = 3;
const PATH_MAX = 4096;
const DATA_MAX = 1 << 20; // bytes of one read or write
const REQUEST_MAX = 8 << 20;
const VECTORS_MAX = 1024;
const SUBSCRIPTIONS_MAX = 4096;
const RANDOM_MAX = 64 << 20;
const LOOKUP_FOLLOW = 1;
const CLOCKS = 4;
const LATEST = 2n ** 62n;
const POLL = { in: 1, out: 4, hangup: 16 };
const SLASH = 47;
const NO_MEMORY = { buffer: new ArrayBuffer(0) }; // of a program that calls before it is there
const text = new TextEncoder();

/** Ends a function with a WASI errno. */
class Refused extends Error {
  constructor(errno) {
    super(`WASI errno ${errno}`);
    this.errno = errno;
  }
}

/** Unwinds the program: it has ended. */
export class Ended extends Error {
  constructor(code) {
    super(`ended with ${code}`);
    this.code = code;
  }
}

const i32 = (value) => value >>> 0;
const long = (value) => BigInt.asUintN(64, BigInt(value));
const small = (value) => Number(BigInt.asIntN(64, value)); // of an i64 that is a size or an offset

export class Wasi {
  #client;
  #args;
  #environment;
  #random;
  #now;
  #fds = new Map();
  memory = null; // the program's, once it is there

  /**
   * @param client   makes the calls
   * @param start    what START told: argv, environment, cwd, descriptors, numbers, options
   */
  constructor(client, { argv, environment, cwd, descriptors, numbers, options }) {
    this.#client = client;
    this.#args = argv;
    const isPwd = (entry) => [80, 87, 68, 61].every((byte, i) => entry[i] === byte); // PWD=
    this.#environment = [concat([text.encode("PWD="), cwd]), ...environment.filter((entry) => !isPwd(entry))];
    this.#now = options.replay === undefined ? () => BigInt(Date.now()) * 1_000_000n : () => BigInt(options.replay[0]);
    this.#random = options.replay === undefined ? fillRandom : seeded(options.replay[1]);
    for (let fd = 0; fd * 2 < descriptors.length; fd++) {
      const [mode, flags] = descriptors.slice(2 * fd, 2 * fd + 2);
      const kind = fileType(mode);
      const isTerminal = Boolean((numbers[5] >> fd) & 1);
      if (mode) this.#fds.set(fd, descriptor(kind, rightsFor(kind, flags, isTerminal), ALL_RIGHTS, wasiFlags(flags)));
    }
  }

  /** Every function by its name: it gives an errno, and throws nothing but what ends the program. */
  functions() {
    const guard = (act) => (...given) => {
      try {
        return act(...given) ?? 0;
      } catch (error) {
        if (error instanceof Refused) return error.errno;
        if (error instanceof CallError) return fromLinux(error.errno);
        throw error;
      }
    };
    const made = { ...this.#surroundings(), ...this.#descriptorCalls(), ...this.#pathCalls() };
    return Object.fromEntries(Object.entries(made).map(([name, act]) => [name, guard(act)]));
  }

  // Memory: every access is checked against what there is.

  #bytes(at, length) {
    const { buffer } = this.memory ?? NO_MEMORY;
    if (at + length > buffer.byteLength) throw new Refused(ERRNO.EFAULT);
    return new Uint8Array(buffer, at, length);
  }

  #view(at, length) {
    const bytes = this.#bytes(at, length);
    return new DataView(bytes.buffer, bytes.byteOffset, length);
  }

  #put32(at, value) {
    this.#view(at, 4).setUint32(0, value, true);
  }

  #put64(at, value) {
    this.#view(at, 8).setBigUint64(0, long(value), true);
  }

  // The pieces of memory that an array of iovecs names.
  #vectors(at, count) {
    if (count > VECTORS_MAX) throw new Refused(ERRNO.EFAULT);
    const view = this.#view(at, 8 * count);
    return Array.from({ length: count }, (_, i) => this.#bytes(view.getUint32(8 * i, true), view.getUint32(8 * i + 4, true)));
  }

  #gather(at, count) {
    let room = DATA_MAX;
    return concat(this.#vectors(at, count).map((piece) => {
      const part = piece.subarray(0, room);
      room -= part.length;
      return part;
    }));
  }

  // Read into the pieces what `read` gives for their size.
  #scatter(at, count, result, read) {
    const pieces = this.#vectors(at, count);
    this.#view(result, 4);
    const data = read(Math.min(pieces.reduce((sum, piece) => sum + piece.length, 0), DATA_MAX));
    let done = 0;
    for (const piece of pieces) {
      const part = data.subarray(done, done + piece.length);
      piece.set(part);
      done += part.length;
    }
    this.#put32(result, data.length);
  }

  // Descriptors and paths.

  #call(name, ...values) {
    return this.#client.call(name, ...values);
  }

  #descriptor(fd, right = 0) {
    let found = this.#fds.get(fd);
    if (found === undefined) {
      const [stat] = this.#call("fstat", fd);
      const [flags] = this.#call("getfl", fd);
      const kind = fileType(stat.mode);
      const isTerminal = kind === TYPE.character && this.#call("isatty", fd)[0] !== 0;
      found = descriptor(kind, rightsFor(kind, flags, isTerminal), ALL_RIGHTS, wasiFlags(flags));
      this.#fds.set(fd, found);
    }
    if (right & ~found.rights) throw new Refused(ERRNO.ENOTCAPABLE);
    return found;
  }

  // Another process is going to use the descriptor, too: from now on the kernel keeps its place.
  #share(fd) {
    const found = this.#fds.get(fd);
    if (found === undefined || found.offset === null) return;
    this.#call("seek", fd, found.offset, 0);
    found.offset = null;
  }

  #path(at, length) {
    if (length > PATH_MAX) throw new Refused(ERRNO.ENAMETOOLONG);
    return this.#bytes(at, length).slice();
  }

  // A directory and a path from it, as the kernel takes them. A path may not leave its directory.
  #place(fd, at, length, right) {
    const path = this.#path(at, length);
    if (path[0] === SLASH) throw new Refused(ERRNO.ENOTCAPABLE);
    if (fd === ROOT) return [AT_FDCWD, concat([Uint8Array.of(SLASH), path])];
    if (this.#descriptor(fd, RIGHT[right]).kind !== TYPE.directory) throw new Refused(ERRNO.ENOTDIR);
    let depth = 0;
    for (const part of latin1(path).split("/")) {
      depth += part === ".." ? -1 : part === "" || part === "." ? 0 : 1;
      if (depth < 0) throw new Refused(ERRNO.ENOTCAPABLE);
    }
    if (path.length === 0) throw new Refused(ERRNO.ENOENT);
    return [fd, path];
  }

  #writeStat(stat, result) {
    const view = this.#view(result, 64);
    view.setBigUint64(0, long(stat.dev), true);
    view.setBigUint64(8, long(stat.ino), true);
    view.setBigUint64(16, BigInt(fileType(stat.mode)), true);
    [stat.nlink, Math.max(stat.size, 0), stat.atime, stat.mtime, stat.ctime].forEach((value, i) => view.setBigUint64(24 + 8 * i, long(value), true));
  }

  // Arguments, environment, clocks, entropy, waiting, the end.

  #surroundings() {
    const strings = (list) => (pointers, data) => {
      let at = i32(data);
      list.forEach((each, i) => {
        this.#put32(i32(pointers) + 4 * i, at);
        this.#bytes(at, each.length + 1).set([...each, 0]);
        at += each.length + 1;
      });
    };
    const sizes = (list) => (count, size) => {
      this.#put32(i32(count), list.length);
      this.#put32(i32(size), list.reduce((sum, each) => sum + each.length + 1, 0));
    };
    const refuse = () => ERRNO.ENOTSUP;
    return {
      args_get: strings(this.#args),
      args_sizes_get: sizes(this.#args),
      environ_get: strings(this.#environment),
      environ_sizes_get: sizes(this.#environment),
      clock_res_get: (clock, result) => (i32(clock) >= CLOCKS ? ERRNO.EINVAL : this.#put64(i32(result), 1)),
      clock_time_get: (clock, _precision, result) => (i32(clock) >= CLOCKS ? ERRNO.EINVAL : this.#put64(i32(result), this.#time(clock))),
      random_get: (at, length) => {
        const bytes = this.#bytes(i32(at), i32(length));
        if (bytes.length > RANDOM_MAX) return ERRNO.EINVAL;
        return this.#random(bytes);
      },
      sched_yield: () => 0,
      proc_exit: (code) => { throw new Ended(i32(code)); },
      proc_raise: (signal) => { this.#call("kill", this.#call("ids")[0][0], signal); },
      poll_oneoff: (subscriptions, events, count, result) => this.#poll(i32(subscriptions), i32(events), i32(count), i32(result)),
      sock_accept: refuse, sock_recv: refuse, sock_send: refuse, sock_shutdown: refuse, // there are no sockets
    };
  }

  #time(clock) {
    if (clock === 0) return this.#now();
    return clock === 1 ? BigInt(Math.round(performance.now() * 1e6)) : BigInt(this.#client.cpuNanoseconds);
  }

  #poll(subscriptions, events, count, result) {
    if (count === 0 || count > SUBSCRIPTIONS_MAX) return ERRNO.EINVAL;
    this.#bytes(events, 32 * count);
    this.#view(result, 4);
    const view = this.#view(subscriptions, 48 * count);
    const [clocks, waits, happened] = [[], [], []];
    for (let at = 0; at < 48 * count; at += 48) {
      const user = view.getBigUint64(at, true);
      const tag = view.getUint8(at + 8);
      if (tag === 0) {
        const clock = view.getUint32(at + 16, true);
        let wait = view.getBigUint64(at + 24, true);
        if (clock > 1) happened.push({ user, errno: ERRNO.ENOTSUP, tag });
        else {
          if (view.getUint16(at + 40, true) & 1) wait -= this.#time(clock); // a moment, not a span
          clocks.push({ user, wait: wait < 0n ? 0n : wait > LATEST ? LATEST : wait });
        }
      } else if (tag <= 2) {
        const fd = view.getUint32(at + 16, true);
        try {
          this.#descriptor(fd);
          waits.push({ user, tag, fd });
        } catch (error) {
          if (!(error instanceof CallError || error instanceof Refused)) throw error;
          happened.push({ user, errno: ERRNO.EBADF, tag });
        }
      } else return ERRNO.EINVAL;
    }
    happened.push(...this.#wait(waits, clocks, happened.length > 0));
    happened.forEach(({ user, errno = 0, tag, size = 0, flags = 0 }, i) => {
      const event = this.#view(events + 32 * i, 32);
      event.setBigUint64(0, user, true);
      event.setUint16(8, errno, true);
      event.setUint8(10, tag);
      event.setBigUint64(16, BigInt(size), true);
      event.setUint16(24, flags, true);
    });
    this.#put32(result, happened.length);
    return 0;
  }

  #wait(waits, clocks, isReady) {
    const first = clocks.reduce((least, { wait }) => (least === null || wait < least ? wait : least), null);
    const rung = () => clocks.filter(({ wait }) => wait <= first).map(({ user }) => ({ user, tag: 0 }));
    if (waits.length === 0) {
      if (first === null || isReady) return [];
      try {
        this.#call("sleep", first);
      } catch (error) { // a C library takes any error of a sleep for a bug
        if (!(error instanceof CallError) || fromLinux(error.errno) !== ERRNO.EINTR) throw error;
      }
      return rung();
    }
    const wanted = waits.map(({ tag }) => (tag === 1 ? POLL.in : POLL.out));
    const [found] = this.#call("poll", waits.map(({ fd }) => fd), wanted, isReady ? 0 : first ?? -1);
    const events = waits.flatMap(({ user, tag }, i) => (found[i] ? [{ user, tag, size: tag === 1 ? 1 : 65536, flags: found[i] & POLL.hangup ? 1 : 0 }] : []));
    return events.length === 0 && first !== null && !isReady ? rung() : events;
  }

  // fd_*

  #descriptorCalls() {
    const sync = (fd) => {
      this.#descriptor(i32(fd));
      this.#call("fsync", i32(fd));
    };
    const calls = {
      fd_prestat_get: (fd, result) => {
        if (fd !== ROOT) return ERRNO.EBADF;
        const view = this.#view(i32(result), 8);
        view.setUint32(0, 0, true);
        view.setUint32(4, 1, true);
        return 0;
      },
      fd_prestat_dir_name: (fd, at, length) => {
        if (fd !== ROOT) return ERRNO.EBADF;
        if (i32(length) < 1) return ERRNO.ENAMETOOLONG;
        this.#bytes(i32(at), 1)[0] = SLASH;
        return 0;
      },
      fd_fdstat_get: (fd, result) => {
        let found;
        try {
          found = this.#descriptor(i32(fd));
        } catch (error) {
          if (fd !== ROOT || !(error instanceof CallError)) throw error;
          found = descriptor(TYPE.directory, ALL_RIGHTS, ALL_RIGHTS, 0);
        }
        const view = this.#view(i32(result), 24);
        view.setBigUint64(0, BigInt(found.kind) | (BigInt(found.flags) << 16n), true);
        view.setBigUint64(8, BigInt(found.rights), true);
        view.setBigUint64(16, BigInt(found.inheriting), true);
      },
      fd_fdstat_set_flags: (fd, flags) => {
        const found = this.#descriptor(i32(fd), RIGHT.FD_FDSTAT_SET_FLAGS);
        if (flags & FDFLAG.append) this.#share(i32(fd));
        this.#call("setfl", i32(fd), (flags & FDFLAG.append ? LINUX_FLAG.append : 0) | (flags & FDFLAG.nonblock ? LINUX_FLAG.nonblock : 0));
        found.flags = flags & (FDFLAG.append | FDFLAG.nonblock);
      },
      fd_fdstat_set_rights: (fd, rights, inheriting) => {
        const found = this.#descriptor(i32(fd));
        if (long(rights) & ~BigInt(found.rights) || long(inheriting) & ~BigInt(found.inheriting)) return ERRNO.ENOTCAPABLE;
        [found.rights, found.inheriting] = [Number(rights), Number(inheriting)];
        return 0;
      },
      fd_close: (fd) => {
        this.#fds.delete(i32(fd));
        this.#call("close", i32(fd));
      },
      fd_renumber: (source, target) => {
        this.#descriptor(i32(source));
        this.#descriptor(i32(target));
        this.#call("dup2", i32(source), i32(target), 1);
        this.#call("close", i32(source));
        this.#fds.set(i32(target), this.#fds.get(i32(source)));
        this.#fds.delete(i32(source));
      },
      fd_advise: (fd, _offset, _length, advice) => {
        this.#descriptor(i32(fd), RIGHT.FD_ADVISE);
        return i32(advice) <= 5 ? 0 : ERRNO.EINVAL;
      },
      fd_allocate: (fd, offset, length) => {
        this.#descriptor(i32(fd), RIGHT.FD_ALLOCATE);
        if (offset < 0n || length <= 0n || offset + length > LATEST) return ERRNO.EINVAL;
        if (this.#call("fstat", i32(fd))[0].size < offset + length) this.#call("ftruncate", i32(fd), offset + length);
        return 0;
      },
      fd_sync: sync,
      fd_datasync: sync,
      fd_filestat_get: (fd, result) => {
        this.#descriptor(i32(fd), RIGHT.FD_FILESTAT_GET);
        this.#writeStat(this.#call("fstat", i32(fd))[0], i32(result));
      },
      fd_filestat_set_size: (fd, size) => {
        this.#descriptor(i32(fd), RIGHT.FD_FILESTAT_SET_SIZE);
        this.#call("ftruncate", i32(fd), size);
      },
      fd_filestat_set_times: (fd, atime, mtime, which) => {
        this.#descriptor(i32(fd), RIGHT.FD_FILESTAT_SET_TIMES);
        if (hasBothTimes(which)) return ERRNO.EINVAL;
        this.#call("futimens", i32(fd), atime, mtime, i32(which));
        return 0;
      },
      fd_read: (fd, at, count, result) => {
        const found = this.#descriptor(i32(fd), RIGHT.FD_READ);
        this.#scatter(i32(at), i32(count), i32(result), (size) => {
          const [data] = found.offset === null ? this.#call("read", i32(fd), size) : this.#call("pread", i32(fd), size, found.offset);
          if (found.offset !== null) found.offset += data.length;
          return data;
        });
      },
      fd_pread: (fd, at, count, offset, result) => {
        this.#descriptor(i32(fd), RIGHT.FD_READ);
        this.#scatter(i32(at), i32(count), i32(result), (size) => this.#call("pread", i32(fd), size, offset)[0]);
      },
      fd_write: (fd, at, count, result) => {
        const found = this.#descriptor(i32(fd), RIGHT.FD_WRITE);
        const data = this.#gather(i32(at), i32(count));
        this.#view(i32(result), 4);
        const [written] = found.offset === null ? this.#call("write", i32(fd), data) : this.#call("pwrite", i32(fd), data, found.offset);
        if (found.offset !== null) found.offset += written;
        this.#put32(i32(result), written);
      },
      fd_pwrite: (fd, at, count, offset, result) => {
        this.#descriptor(i32(fd), RIGHT.FD_WRITE);
        const data = this.#gather(i32(at), i32(count));
        this.#view(i32(result), 4);
        this.#put32(i32(result), this.#call("pwrite", i32(fd), data, offset)[0]);
      },
      fd_seek: (fd, offset, whence, result) => {
        const found = this.#descriptor(i32(fd));
        if (!(found.rights & RIGHT.FD_SEEK)) return [TYPE.unknown, TYPE.character].includes(found.kind) ? ERRNO.ESPIPE : ERRNO.ENOTCAPABLE;
        if (i32(whence) > 2) return ERRNO.EINVAL;
        this.#view(i32(result), 8);
        if (found.offset === null) return this.#put64(i32(result), this.#call("seek", i32(fd), offset, i32(whence))[0]);
        const base = whence === 0 ? 0 : whence === 1 ? found.offset : this.#call("fstat", i32(fd))[0].size;
        const place = base + small(offset);
        if (place < 0 || place >= 2 ** 53) return ERRNO.EINVAL;
        found.offset = place;
        return this.#put64(i32(result), place);
      },
      fd_tell: (fd, result) => calls.fd_seek(fd, 0n, 1, result),
      fd_readdir: (fd, buffer, length, cookie, result) => this.#readdir(i32(fd), i32(buffer), i32(length), Math.max(0, small(cookie)), i32(result)),
    };
    return calls;
  }

  #readdir(fd, buffer, length, cookie, result) {
    const found = this.#descriptor(fd, RIGHT.FD_READDIR);
    if (found.kind !== TYPE.directory) return ERRNO.ENOTDIR;
    this.#bytes(buffer, length);
    if (found.listing === null || cookie === 0) {
      const dots = [".", ".."].map((name) => ({ ino: 0, mode: 0o040000, name: text.encode(name) }));
      found.listing = [...dots, ...this.#call("readdir", fd, new Uint8Array())[0]].map(entryBytes);
    }
    let at = 0;
    for (const entry of found.listing.slice(cookie)) {
      const part = entry.subarray(0, length - at);
      this.#bytes(buffer + at, part.length).set(part);
      at += part.length;
      if (at === length) break;
    }
    this.#put32(result, at);
    return 0;
  }

  // path_*

  #pathCalls() {
    const nofollow = (lookup) => Number(!(lookup & LOOKUP_FOLLOW));
    return {
      path_open: (...given) => this.#open(...given),
      path_filestat_get: (fd, lookup, at, length, result) => {
        const place = this.#place(i32(fd), i32(at), i32(length), "PATH_FILESTAT_GET");
        this.#writeStat(this.#call("stat", ...place, nofollow(lookup))[0], i32(result));
      },
      path_filestat_set_times: (fd, lookup, at, length, atime, mtime, which) => {
        if (hasBothTimes(which)) return ERRNO.EINVAL;
        this.#call("utimens", ...this.#place(i32(fd), i32(at), i32(length), "PATH_FILESTAT_SET_TIMES"), atime, mtime, i32(which), nofollow(lookup));
        return 0;
      },
      path_create_directory: (fd, at, length) => { this.#call("mkdir", ...this.#place(i32(fd), i32(at), i32(length), "PATH_CREATE_DIRECTORY"), 0o777); },
      path_remove_directory: (fd, at, length) => { this.#call("rmdir", ...this.#place(i32(fd), i32(at), i32(length), "PATH_REMOVE_DIRECTORY")); },
      path_unlink_file: (fd, at, length) => { this.#call("unlink", ...this.#place(i32(fd), i32(at), i32(length), "PATH_UNLINK_FILE")); },
      path_link: (fd, lookup, old, oldLength, newFd, at, length) => {
        const source = this.#place(i32(fd), i32(old), i32(oldLength), "PATH_LINK_SOURCE");
        this.#call("link", ...source, ...this.#place(i32(newFd), i32(at), i32(length), "PATH_LINK_TARGET"), lookup & LOOKUP_FOLLOW);
      },
      path_rename: (fd, old, oldLength, newFd, at, length) => {
        const source = this.#place(i32(fd), i32(old), i32(oldLength), "PATH_RENAME_SOURCE");
        this.#call("rename", ...source, ...this.#place(i32(newFd), i32(at), i32(length), "PATH_RENAME_TARGET"), 0);
      },
      path_symlink: (target, targetLength, fd, at, length) => {
        const leads = this.#path(i32(target), i32(targetLength));
        this.#call("symlink", leads, ...this.#place(i32(fd), i32(at), i32(length), "PATH_SYMLINK"));
      },
      path_readlink: (fd, at, length, buffer, size, result) => {
        const [leads] = this.#call("readlink", ...this.#place(i32(fd), i32(at), i32(length), "PATH_READLINK"));
        const part = leads.subarray(0, i32(size));
        this.#bytes(i32(buffer), part.length).set(part);
        this.#put32(i32(result), part.length);
      },
    };
  }

  #open(fd, lookup, at, length, oflags, rights, inheriting, fdflags, result) {
    const place = this.#place(i32(fd), i32(at), i32(length), "PATH_OPEN");
    this.#view(i32(result), 4);
    const known = (bits) => Number(long(bits) & BigInt(ALL_RIGHTS));
    const [wanted, passed] = [known(rights), known(inheriting)];
    if (fd !== ROOT && (wanted | passed) & ~this.#descriptor(i32(fd)).inheriting) return ERRNO.ENOTCAPABLE;
    const writes = wanted & (RIGHT.FD_WRITE | RIGHT.FD_ALLOCATE);
    let flags = LINUX_FLAG.cloexec | (lookup & LOOKUP_FOLLOW ? 0 : LINUX_FLAG.nofollow);
    if (oflags & OFLAG.directory) flags |= LINUX_FLAG.directory;
    else if (writes) flags |= wanted & READING ? LINUX_FLAG.rdwr : LINUX_FLAG.wronly;
    for (const name of ["creat", "excl", "trunc"]) if (oflags & OFLAG[name]) flags |= LINUX_FLAG[name];
    for (const name of ["append", "nonblock"]) if (fdflags & FDFLAG[name]) flags |= LINUX_FLAG[name];
    const [opened, stat] = this.#call("open", ...place, flags, 0o666);
    const kind = fileType(stat.mode);
    const isTerminal = kind === TYPE.character && this.#call("isatty", opened)[0] !== 0;
    const found = descriptor(kind, rightsFor(kind, flags, isTerminal) & (wanted | SEEKING), passed, wasiFlags(flags));
    if (kind === TYPE.file && !(flags & LINUX_FLAG.append)) found.offset = 0;
    this.#fds.set(opened, found);
    this.#put32(i32(result), opened);
    return 0;
  }

  /** `belljar.call`: what a program asks of the kernel that WASI has no function for (engines/wasi/host_call.py). */
  hostCall(address, length, answer, room) {
    try {
      if (length < 2 || length > REQUEST_MAX) throw new Refused(ERRNO.EINVAL);
      const request = this.#bytes(i32(address), length).slice();
      const number = request[0] | (request[1] << 8);
      if (!ALLOWED.has(number)) throw new Refused(ERRNO.ENOSYS);
      this.#follow(number, request.subarray(2));
      const { status, body } = this.#client.request(number, request.subarray(2));
      if (status !== 0) throw new CallError(status);
      if (body.length > i32(room)) return i32(room) === 0 ? 0 : -ERRNO.EINVAL;
      this.#bytes(i32(answer), body.length).set(body);
      return body.length;
    } catch (error) {
      if (error instanceof Refused) return -error.errno;
      if (error instanceof CallError) return -fromLinux(error.errno);
      if (error instanceof RangeError) return -ERRNO.EINVAL; // no request
      throw error;
    }
  }

  // Keep right what is remembered of descriptors.
  #follow(number, body) {
    if (number === SPAWN) {
      const sources = decode("sllsQQq", body)[5];
      new Set([0, 1, 2, ...sources]).forEach((fd) => this.#share(fd));
    } else if (number === DUP || number === DUP2) {
      const [source, target] = decode("qqq", body);
      this.#share(source);
      if (number === DUP2) this.#fds.delete(target);
    }
  }
}

const [SPAWN, DUP, DUP2] = [45, 14, 15];
// chmod chown dup dup2 fchmod fchown hostname ids kill mkfifo pipe spawn umask wait
const ALLOWED = new Set([31, 32, DUP, DUP2, 10, 11, 50, 49, 47, 35, 16, SPAWN, 42, 46]);

// `offset`: of a file that only this program has open; null: the kernel keeps it.
const descriptor = (kind, rights, inheriting, flags) => ({ kind, rights, inheriting, flags, offset: null, listing: null });
const hasBothTimes = (flags) => (flags & 3) === 3 || (flags & 12) === 12;

function entryBytes({ ino, mode, name }, index) {
  const made = new Uint8Array(24 + name.length);
  const view = new DataView(made.buffer);
  view.setBigUint64(0, BigInt(index + 1), true);
  view.setBigUint64(8, long(ino), true);
  view.setUint32(16, name.length, true);
  view.setUint8(20, fileType(mode));
  made.set(name, 24);
  return made;
}

function concat(parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const latin1 = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

function fillRandom(bytes) {
  for (let at = 0; at < bytes.length; at += 65536) crypto.getRandomValues(bytes.subarray(at, at + 65536));
}

// The same bytes in every run, where the kernel asks for that (xorshift32).
function seeded(seed) {
  let state = [...seed].reduce((sum, letter) => (Math.imul(sum, 31) + letter.charCodeAt(0)) | 0, 1) || 1;
  return (bytes) => {
    for (let i = 0; i < bytes.length; i++) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      bytes[i] = state;
    }
  };
}
