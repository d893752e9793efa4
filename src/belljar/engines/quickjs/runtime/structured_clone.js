// Structured clones of values, with ArrayBuffers moved where that is asked for.
'use strict';

const { ArrayPrototypePush } = primordials;

function clone(value, transfer) {
  const { DOMException } = internalBinding('messaging');
  const moved = [];
  for (const item of transfer) {
    if (native.typeOf(item) !== 'ArrayBuffer') throw new DOMException('Found invalid value in transferList', 'DataCloneError');
    ArrayPrototypePush(moved, item);
  }
  try {
    return native.clone(value, moved);
  } catch (error) {
    throw native.typeOf(error) === 'NativeError' ? new DOMException(error.message, 'DataCloneError') : error;
  }
}

module.exports = { clone };
