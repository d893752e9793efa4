// Structured clones of values, with ArrayBuffers moved instead of copied where that is asked for.
'use strict';

const { ArrayBufferPrototypeTransfer, ArrayPrototypePush } = primordials;

// Moved buffers are copied like the rest, then taken from whoever gave them away.
function clone(value, transfer) {
  const { DOMException } = internalBinding('messaging');
  const moved = [];
  for (const item of transfer) {
    if (native.typeOf(item) !== 'ArrayBuffer' || item.detached) throw new DOMException('Found invalid value in transferList', 'DataCloneError');
    ArrayPrototypePush(moved, item);
  }
  let bytes;
  try {
    bytes = native.pack(value);
  } catch (error) {
    throw native.typeOf(error) === 'NativeError' ? new DOMException(error.message, 'DataCloneError') : error;
  }
  for (const item of moved) ArrayBufferPrototypeTransfer(item);
  return native.unpack(bytes);
}

module.exports = { clone };
