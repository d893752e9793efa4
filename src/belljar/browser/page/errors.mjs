/** Whatever a sandbox could not do. What a command did is in its result, and never raised. */
export class SandboxError extends Error {
  name = "SandboxError";
}

/** The sandbox was closed, by whoever uses it. */
export class SandboxClosed extends SandboxError {
  name = "SandboxClosed";
}

/** The sandbox's worker ended by itself or was ended because it did not answer: make a new one. */
export class SandboxDied extends SandboxError {
  name = "SandboxDied";
}

/** A file operation that failed: `errno` is Linux's number, `code` its name. */
export class FileError extends SandboxError {
  name = "FileError";

  constructor(errno, message, path) {
    super(path ? `${message}: ${path}` : message);
    this.errno = errno;
    this.code = CODES[errno] ?? `E${errno}`;
    this.path = path;
  }
}

/** What a page can't do; the message names what can. */
export class NotInABrowser extends SandboxError {
  name = "NotInABrowser";
}

const CODES = {
  1: "EPERM", 2: "ENOENT", 5: "EIO", 9: "EBADF", 13: "EACCES", 16: "EBUSY", 17: "EEXIST", 18: "EXDEV", 20: "ENOTDIR",
  21: "EISDIR", 22: "EINVAL", 26: "ETXTBSY", 27: "EFBIG", 28: "ENOSPC", 30: "EROFS", 36: "ENAMETOOLONG",
  38: "ENOSYS", 39: "ENOTEMPTY", 40: "ELOOP", 122: "EDQUOT",
};
