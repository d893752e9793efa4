// Functions and classes of Node's C++ side that only compute: they are run in Node's own realm of this process
// (answer.cjs), on copies of what they are given. Objects there are known here by number.
'use strict';

const {
  ArrayBufferIsView, ArrayBufferPrototypeSlice, ArrayIsArray, ArrayPrototypeMap, ObjectDefineProperty, SafeFinalizationRegistry,
  SafeMap, SafeWeakMap, Uint8Array,
} = primordials;
const ask = require('belljar/ask');

const numbers = new SafeWeakMap(); // of objects there
const classes = new SafeMap(); // by "binding.name"
const gone = new SafeFinalizationRegistry((number) => ask('drop', number));

// Without the rest of the buffer that a view is of.
const own = (view) => new Uint8Array(ArrayBufferPrototypeSlice(view.buffer, view.byteOffset, view.byteOffset + view.byteLength));

function there(value) {
  if (typeof value !== 'object' || value === null) return typeof value === 'function' ? undefined : value;
  if (ArrayBufferIsView(value)) return value.byteLength === value.buffer.byteLength ? value : own(value);
  const number = numbers.get(value);
  if (number !== undefined) return { $object: number };
  return ArrayIsArray(value) ? ArrayPrototypeMap(value, there) : value;
}

function hold(object, number) {
  numbers.set(object, number);
  gone.register(object, number);
  return object;
}

function here(value) {
  if (typeof value !== 'object' || value === null) return value;
  if (ArrayBufferIsView(value)) {
    const { Buffer } = require('buffer');
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
  if (ArrayIsArray(value)) return ArrayPrototypeMap(value, here);
  if (value.$error !== undefined) return ask.rebuild(value.$error);
  if (value.$object === undefined) return value;
  const made = primordials.ObjectCreate(classes.get(value.$class)?.prototype ?? null);
  return hold(made, value.$object);
}

const remoteFunction = (binding, name) => ({ [name]: (...values) => here(ask('invoke', binding, name, there(values))) })[name];

function remoteClass(binding, name, methods) {
  const { [name]: made } = { [name]: class {
    constructor(...values) { hold(this, ask('make', binding, name, there(values))); }
  } };
  for (const method of methods) {
    ObjectDefineProperty(made.prototype, method, {
      __proto__: null, writable: true, configurable: true,
      value(...values) { return here(ask('invoke', numbers.get(this), method, there(values))); },
    });
  }
  classes.set(`${binding}.${name}`, made);
  return made;
}

module.exports = { here, hold, numbers, own, there, remoteClass, remoteFunction };
