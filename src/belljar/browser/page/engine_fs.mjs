// The sandbox's files as an Emscripten file system: each operation is a call to the kernel, and nothing is remembered.
import { AT_FDCWD, CallError } from "./calls.mjs";

const text = new TextEncoder();
const decoder = new TextDecoder();
const OWN = "lib"; // the interpreter's own library: of the root directory, the one that is not the sandbox's
const SEEK = { current: 1, end: 2 };
const [O_WRONLY, O_CREAT, O_EXCL, O_TRUNC, O_APPEND] = [1, 0o100, 0o200, 0o1000, 0o2000];
const PIECE = 1 << 20; // bytes of one read or write

// Linux's error numbers to Emscripten's, which are WASI's.
const ERRNO = {
  1: 63, 2: 44, 3: 71, 4: 27, 5: 29, 6: 60, 7: 1, 8: 45, 9: 8, 10: 12, 11: 6, 12: 48, 13: 2, 14: 21, 16: 10, 17: 20, 18: 75,
  19: 43, 20: 54, 21: 31, 22: 28, 23: 41, 24: 33, 25: 59, 26: 74, 27: 22, 28: 51, 29: 70, 30: 69, 31: 34, 32: 64, 33: 18,
  34: 68, 35: 16, 36: 37, 37: 46, 38: 52, 39: 55, 40: 32, 71: 65, 75: 61, 84: 25, 88: 57, 90: 35, 95: 138, 97: 5, 98: 3,
  101: 40, 103: 13, 104: 15, 106: 30, 107: 53, 110: 73, 111: 14, 113: 23, 114: 7, 115: 26, 116: 72, 122: 19,
};

/** Have the file system of an Emscripten module be the sandbox's, but for /lib. */
export function installFiles(FS, client) {
  const attempt = (name, ...values) => {
    try {
      return client.call(name, ...values);
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      throw new FS.ErrnoError(ERRNO[error.errno] ?? 29);
    }
  };
  const join = (parent, name) => {
    const parts = [name];
    for (let node = parent; node !== FS.root; node = node.parent) parts.unshift(node.name);
    return text.encode(`/${parts.join("/")}`);
  };
  const path = (node) => (node === FS.root ? text.encode("/") : join(node.parent, node.name));
  const time = (nanoseconds) => new Date(nanoseconds / 1e6);
  const nanoseconds = (date) => BigInt(Math.round(Number(date) * 1e6));

  function attributes(stat) {
    const { mode, ino, dev, nlink, uid, gid, size, rdev, blocks } = stat;
    return { mode, ino, dev, nlink, uid, gid, size, rdev, blocks, blksize: 4096, atime: time(stat.atime), mtime: time(stat.mtime), ctime: time(stat.ctime) };
  }

  // Not by createNode, which remembers names: another process may remove the file.
  function make(parent, name, mode) {
    const node = new FS.FSNode(parent, name, mode, 0);
    node.node_ops = nodes;
    node.stream_ops = streams;
    return node;
  }

  const nodes = {
    getattr: (node) => attributes(attempt("stat", AT_FDCWD, path(node), 1)[0]),
    setattr(node, given) {
      if (given.mode !== undefined) attempt("chmod", AT_FDCWD, path(node), given.mode & 0o7777, 0);
      if (given.size !== undefined) attempt("truncate", AT_FDCWD, path(node), given.size);
      if (given.atime !== undefined || given.mtime !== undefined) {
        const which = (given.atime === undefined ? 0 : 1) | (given.mtime === undefined ? 0 : 4);
        attempt("utimens", AT_FDCWD, path(node), nanoseconds(given.atime ?? 0), nanoseconds(given.mtime ?? 0), which, 0);
      }
    },
    lookup: (parent, name) => make(parent, name, attempt("stat", AT_FDCWD, join(parent, name), 1)[0].mode),
    mknod(parent, name, mode) {
      if (FS.isDir(mode)) attempt("mkdir", AT_FDCWD, join(parent, name), mode & 0o7777);
      else attempt("close", attempt("open", AT_FDCWD, join(parent, name), O_CREAT | O_EXCL | O_WRONLY, mode & 0o7777)[0]);
      return make(parent, name, mode);
    },
    rename(node, parent, name) {
      attempt("rename", AT_FDCWD, path(node), AT_FDCWD, join(parent, name), 0);
      node.parent = parent;
      node.name = name;
    },
    unlink: (parent, name) => attempt("unlink", AT_FDCWD, join(parent, name)),
    rmdir: (parent, name) => attempt("rmdir", AT_FDCWD, join(parent, name)),
    readdir: (node) => attempt("readdir", AT_FDCWD, path(node))[0].map((entry) => decoder.decode(entry.name)),
    symlink(parent, name, target) {
      attempt("symlink", text.encode(target), AT_FDCWD, join(parent, name));
      return make(parent, name, 0o120777);
    },
    readlink: (node) => decoder.decode(attempt("readlink", AT_FDCWD, path(node))[0]),
  };

  const streams = {
    open(stream) {
      // By now it exists, and is empty if it was to be.
      let [fd] = attempt("open", AT_FDCWD, path(stream.node), stream.flags & ~(O_CREAT | O_EXCL | O_TRUNC), 0o666);
      FS.streams[stream.fd] = null;
      if (FS.streams[fd]) { // one of the library's files has that number
        const [other] = attempt("dup", fd, FS.streams.length, 1);
        attempt("close", fd);
        fd = other;
      }
      stream.fd = fd;
      FS.streams[fd] = stream;
    },
    close: (stream) => attempt("close", stream.fd),
    read(stream, buffer, offset, length, position) {
      const piece = Math.min(length, PIECE);
      const [data] = stream.seekable ? attempt("pread", stream.fd, piece, position) : attempt("read", stream.fd, piece);
      buffer.set(data, offset);
      return data.length;
    },
    write(stream, buffer, offset, length, position) {
      const data = new Uint8Array(buffer.buffer, buffer.byteOffset + offset, Math.min(length, PIECE)).slice();
      const appends = stream.flags & O_APPEND;
      const [count] = stream.seekable && !appends ? attempt("pwrite", stream.fd, data, position) : attempt("write", stream.fd, data);
      return count;
    },
    llseek(stream, offset, whence) {
      if (whence === SEEK.current) return stream.position + offset;
      if (whence === SEEK.end) return attempt("fstat", stream.fd)[0].size + offset;
      return offset;
    },
  };

  // A descriptor that the kernel gave this program, before or by another call than open: a pipe, a terminal, a copy.
  function adopt(fd) {
    const [stat] = attempt("fstat", fd);
    const node = make(FS.root, `descriptor ${fd}`, stat.mode);
    node.node_ops = { ...nodes, getattr: () => attributes(attempt("fstat", fd)[0]) };
    return FS.createStream({ node, path: `/dev/fd/${fd}`, flags: 2, seekable: FS.isFile(stat.mode), position: 0, stream_ops: streams, ungotten: [], error: false }, fd);
  }

  for (const name of ["tmp", "home", "dev", "proc"]) {
    const found = FS.analyzePath(`/${name}`);
    if (found.exists) FS.hashRemoveNode(found.object);
  }
  const library = FS.root.node_ops;
  FS.root.node_ops = { ...nodes, lookup: (parent, name) => (name === OWN ? library.lookup(parent, name) : nodes.lookup(parent, name)) };
  FS.ignorePermissions = true;
  FS.streams.splice(0, 3, null, null, null);
  const known = FS.getStream;
  FS.getStream = (fd) => known(fd) ?? (fd >= 0 && fd < 65536 ? existing(fd) : null);
  function existing(fd) {
    try {
      return adopt(fd);
    } catch (error) {
      if (error instanceof FS.ErrnoError) return null;
      throw error;
    }
  }
}
