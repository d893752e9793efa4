// The numbers of wasi_snapshot_preview1 (belljar/engines/wasi/numbers.py): errnos, rights, file types, flags.

const names = (text) => Object.fromEntries(text.split(" ").map((name, number) => [name, number]));

/** Errnos by name, in the order of their numbers. */
export const ERRNO = names(
  "SUCCESS E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EAFNOSUPPORT EAGAIN EALREADY EBADF EBADMSG EBUSY ECANCELED ECHILD " +
  "ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK EDESTADDRREQ EDOM EDQUOT EEXIST EFAULT EFBIG EHOSTUNREACH EIDRM " +
  "EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR ELOOP EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENETDOWN " +
  "ENETRESET ENETUNREACH ENFILE ENOBUFS ENODEV ENOENT ENOEXEC ENOLCK ENOLINK ENOMEM ENOMSG ENOPROTOOPT ENOSPC ENOSYS " +
  "ENOTCONN ENOTDIR ENOTEMPTY ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENXIO EOVERFLOW EOWNERDEAD EPERM EPIPE EPROTO " +
  "EPROTONOSUPPORT EPROTOTYPE ERANGE EROFS ESPIPE ESRCH ESTALE ETIMEDOUT ETXTBSY EXDEV ENOTCAPABLE",
);

const LINUX = {
  1: "EPERM", 2: "ENOENT", 3: "ESRCH", 4: "EINTR", 5: "EIO", 6: "ENXIO", 7: "E2BIG", 8: "ENOEXEC", 9: "EBADF", 10: "ECHILD",
  11: "EAGAIN", 12: "ENOMEM", 13: "EACCES", 14: "EFAULT", 16: "EBUSY", 17: "EEXIST", 18: "EXDEV", 19: "ENODEV", 20: "ENOTDIR",
  21: "EISDIR", 22: "EINVAL", 23: "ENFILE", 24: "EMFILE", 25: "ENOTTY", 26: "ETXTBSY", 27: "EFBIG", 28: "ENOSPC", 29: "ESPIPE",
  30: "EROFS", 31: "EMLINK", 32: "EPIPE", 33: "EDOM", 34: "ERANGE", 35: "EDEADLK", 36: "ENAMETOOLONG", 37: "ENOLCK",
  38: "ENOSYS", 39: "ENOTEMPTY", 40: "ELOOP", 42: "ENOMSG", 43: "EIDRM", 61: "ENODATA", 67: "ENOLINK", 71: "EPROTO",
  72: "EMULTIHOP", 74: "EBADMSG", 75: "EOVERFLOW", 84: "EILSEQ", 88: "ENOTSOCK", 89: "EDESTADDRREQ", 90: "EMSGSIZE",
  91: "EPROTOTYPE", 92: "ENOPROTOOPT", 93: "EPROTONOSUPPORT", 95: "ENOTSUP", 97: "EAFNOSUPPORT", 98: "EADDRINUSE",
  99: "EADDRNOTAVAIL", 100: "ENETDOWN", 101: "ENETUNREACH", 102: "ENETRESET", 103: "ECONNABORTED", 104: "ECONNRESET",
  105: "ENOBUFS", 106: "EISCONN", 107: "ENOTCONN", 110: "ETIMEDOUT", 111: "ECONNREFUSED", 113: "EHOSTUNREACH", 114: "EALREADY",
  115: "EINPROGRESS", 116: "ESTALE", 122: "EDQUOT", 125: "ECANCELED", 130: "EOWNERDEAD", 131: "ENOTRECOVERABLE",
};

/** WASI's number for one of Linux's. */
export const fromLinux = (errno) => ERRNO[LINUX[errno]] ?? ERRNO.EIO;

export const TYPE = { unknown: 0, block: 1, character: 2, directory: 3, file: 4, socket: 6, symlink: 7 };
const TYPES = { 0o060000: TYPE.block, 0o020000: TYPE.character, 0o040000: TYPE.directory, 0o100000: TYPE.file, 0o140000: TYPE.socket, 0o120000: TYPE.symlink };

/** WASI's word for a kind of file. It has none for a pipe. */
export const fileType = (mode) => TYPES[mode & 0o170000] ?? TYPE.unknown;

const RIGHTS = (
  "FD_DATASYNC FD_READ FD_SEEK FD_FDSTAT_SET_FLAGS FD_SYNC FD_TELL FD_WRITE FD_ADVISE FD_ALLOCATE " +
  "PATH_CREATE_DIRECTORY PATH_CREATE_FILE PATH_LINK_SOURCE PATH_LINK_TARGET PATH_OPEN FD_READDIR PATH_READLINK " +
  "PATH_RENAME_SOURCE PATH_RENAME_TARGET PATH_FILESTAT_GET PATH_FILESTAT_SET_SIZE PATH_FILESTAT_SET_TIMES " +
  "FD_FILESTAT_GET FD_FILESTAT_SET_SIZE FD_FILESTAT_SET_TIMES PATH_SYMLINK PATH_REMOVE_DIRECTORY PATH_UNLINK_FILE " +
  "POLL_FD_READWRITE SOCK_SHUTDOWN SOCK_ACCEPT"
).split(" ");
/** Rights by name, as bits: thirty of them, so a Number will do. */
export const RIGHT = Object.fromEntries(RIGHTS.map((name, bit) => [name, 2 ** bit]));
export const ALL_RIGHTS = 2 ** RIGHTS.length - 1;
export const SEEKING = RIGHT.FD_SEEK | RIGHT.FD_TELL;
export const READING = RIGHT.FD_READ | RIGHT.FD_READDIR;
export const WRITING = RIGHT.FD_WRITE | RIGHT.FD_ALLOCATE | RIGHT.FD_DATASYNC | RIGHT.FD_FILESTAT_SET_SIZE;

export const FDFLAG = { append: 1, nonblock: 4 };
export const OFLAG = { creat: 1, directory: 2, excl: 4, trunc: 8 };
export const LINUX_FLAG = { wronly: 1, rdwr: 2, creat: 0o100, excl: 0o200, trunc: 0o1000, append: 0o2000, nonblock: 0o4000, directory: 0o200000, nofollow: 0o400000, cloexec: 0o2000000 };

/** Everything that makes sense for a descriptor of a kind, opened with Linux's flags. */
export function rightsFor(kind, flags, isTerminal = false) {
  if (kind === TYPE.directory) return ALL_RIGHTS & ~(SEEKING | RIGHT.FD_READ | WRITING);
  let rights = ALL_RIGHTS;
  if ((flags & 3) === 0) rights &= ~WRITING;
  else if ((flags & 3) === LINUX_FLAG.wronly) rights &= ~READING;
  // A C library takes a character device that can't seek for a terminal.
  if (kind !== TYPE.file && (kind !== TYPE.character || isTerminal)) rights &= ~SEEKING;
  return rights;
}

export const wasiFlags = (flags) => (flags & LINUX_FLAG.append ? FDFLAG.append : 0) | (flags & LINUX_FLAG.nonblock ? FDFLAG.nonblock : 0);
