// System errors as Node's C++ side makes them: ENOENT: no such file or directory, open 'x'.
'use strict';

const { Error, SafeMap } = primordials;

const table = `1 EPERM operation not permitted|2 ENOENT no such file or directory|3 ESRCH no such process|4 EINTR interrupted system call
5 EIO i/o error|6 ENXIO no such device or address|7 E2BIG argument list too long|8 ENOEXEC exec format error|9 EBADF bad file descriptor
10 ECHILD no child processes|11 EAGAIN resource temporarily unavailable|12 ENOMEM not enough memory|13 EACCES permission denied
16 EBUSY resource busy or locked|17 EEXIST file already exists|18 EXDEV cross-device link not permitted|20 ENOTDIR not a directory
21 EISDIR illegal operation on a directory|22 EINVAL invalid argument|23 ENFILE file table overflow|24 EMFILE too many open files
25 ENOTTY inappropriate ioctl for device|26 ETXTBSY text file is busy|27 EFBIG file too large|28 ENOSPC no space left on device
29 ESPIPE invalid seek|30 EROFS read-only file system|31 EMLINK too many links|32 EPIPE broken pipe|36 ENAMETOOLONG name too long
38 ENOSYS function not implemented|39 ENOTEMPTY directory not empty|40 ELOOP too many symbolic links encountered
95 ENOTSUP operation not supported on socket|110 ETIMEDOUT connection timed out|111 ECONNREFUSED connection refused`;

const names = { __proto__: null }, messages = { __proto__: null }, numbers = { __proto__: null };
for (const entry of table.split(/[|\n]/)) {
  const [, number, name, message] = /^(\d+) (\w+) (.*)$/.exec(entry);
  names[number] = name;
  messages[number] = message;
  numbers[name] = Number(number);
}

// The error of a call that failed: `error` is a SysError of kernel.js.
function failure(error, syscall, path, dest) {
  const { errno } = error;
  if (errno === undefined) return error;
  const code = names[errno] ?? `E${errno}`;
  let message = `${code}: ${messages[errno] ?? 'unknown error'}, ${syscall}`;
  if (path !== undefined) message += ` '${path}'`;
  if (dest !== undefined) message += ` -> '${dest}'`;
  const made = require('belljar/node/errors').deeply(() => new Error(message));
  made.errno = -errno;
  made.code = code;
  made.syscall = syscall;
  if (path !== undefined) made.path = `${path}`;
  if (dest !== undefined) made.dest = `${dest}`;
  return made;
}

const map = new SafeMap();
for (const number in names) map.set(-number, [names[number], messages[number]]);

module.exports = { failure, map, names, numbers };
