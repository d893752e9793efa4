// Directories that are read bit by bit.
'use strict';

const { ArrayPrototypePush, ArrayPrototypeSplice, MathMin } = primordials;
const { fs, kUsePromises } = require('belljar/node/fs');
const { later } = require('belljar/node/loop');

// [name, type, name, type, ...], as many entries at a time as were asked for.
class DirHandle {
  #left = [];

  constructor(path, encoding) {
    const { 0: names, 1: types } = fs.readdir(path, encoding, true);
    for (let i = 0; i < names.length; i++) ArrayPrototypePush(this.#left, names[i], types[i]);
  }

  read(_encoding, count, request) {
    const taken = ArrayPrototypeSplice(this.#left, 0, MathMin(2 * count, this.#left.length));
    const result = taken.length === 0 ? null : taken;
    if (request === undefined) return result;
    later(() => request.oncomplete(null, result));
    return undefined;
  }

  close(request) {
    if (request !== undefined) later(() => request.oncomplete(null));
  }
}

const scandirAsOpendir = (error) => {
  error.syscall = 'opendir';
  error.message = error.message.replace(', scandir', ', opendir');
  return error;
};

function opendirSync(path, encoding = 'utf8') {
  try {
    return new DirHandle(path, encoding);
  } catch (error) {
    throw scandirAsOpendir(error);
  }
}

module.exports = {
  fs_dir: {
    DirHandle,
    opendirSync,
    opendir(path, encoding, request) {
      if (request === undefined || request === kUsePromises) return opendirSync(path, encoding);
      later(() => {
        let made;
        try {
          made = opendirSync(path, encoding);
        } catch (error) {
          return request.oncomplete(error);
        }
        return request.oncomplete(null, made);
      });
      return undefined;
    },
  },
};
