// Looking into values: what Node's library gets from its C++ side as `types` and `util`.
'use strict';

const {
  ArrayPrototypeFilter, FunctionPrototypeToString, ObjectDefineProperty, ObjectPrototypePropertyIsEnumerable,
  ReflectConstruct, ReflectOwnKeys, SafeWeakRef, StringPrototypeEndsWith, StringPrototypeIncludes,
  StringPrototypeToWellFormed,
} = primordials;
const { typeOf } = native;

const KINDS = ['Proxy', 'Date', 'RegExp', 'Promise', 'MapIterator', 'SetIterator', 'Map', 'Set', 'WeakMap', 'WeakSet',
  'ArrayBuffer', 'SharedArrayBuffer', 'DataView', 'NumberObject', 'BooleanObject', 'StringObject', 'SymbolObject',
  'BigIntObject', 'NativeError', 'AsyncFunction', 'GeneratorObject', 'ModuleNamespaceObject', 'ArgumentsObject', 'External'];
const NOT_BOXED = { __proto__: null, GeneratorObject: true, ModuleNamespaceObject: true, ArgumentsObject: true };

const types = {};
for (const kind of KINDS) types[`is${kind}`] = (value) => typeOf(value) === kind;
types.isGeneratorFunction = (value) => {
  const kind = typeOf(value);
  return kind === 'GeneratorFunction' ||
    (kind === 'AsyncFunction' && StringPrototypeIncludes(FunctionPrototypeToString(value), '*'));
};
types.isAnyArrayBuffer = (value) => types.isArrayBuffer(value) || types.isSharedArrayBuffer(value);
types.isBoxedPrimitive = (value) => {
  const kind = typeOf(value);
  return kind !== undefined && StringPrototypeEndsWith(kind, 'Object') && NOT_BOXED[kind] === undefined &&
    types[`is${kind}`] !== undefined;
};
types.isEventTarget = () => false;

const ONLY_ENUMERABLE = 2, SKIP_SYMBOLS = 16;
const isIndex = (key) => typeof key === 'string' && `${key >>> 0}` === key && key >>> 0 !== 2 ** 32 - 1;

// The part of `util` that is the same in every realm of ours.
const util = (require, privateSymbols) => ({
  constants: {
    kPending: 0, kFulfilled: 1, kRejected: 2, kExiting: 0, kExitCode: 1, kHasExitCode: 2,
    ALL_PROPERTIES: 0, ONLY_WRITABLE: 1, ONLY_ENUMERABLE, ONLY_CONFIGURABLE: 4, SKIP_STRINGS: 8, SKIP_SYMBOLS,
    kDisallowCloneAndTransfer: 0, kTransferable: 1, kCloneable: 2,
  },
  privateSymbols,
  shouldAbortOnUncaughtToggle: [0],
  getOwnNonIndexProperties: (value, filter) => ArrayPrototypeFilter(ReflectOwnKeys(value), (key) => !isIndex(key) &&
    !(filter & SKIP_SYMBOLS && typeof key === 'symbol') &&
    (!(filter & ONLY_ENUMERABLE) || ObjectPrototypePropertyIsEnumerable(value, key))),
  getPromiseDetails: native.promiseDetails,
  getProxyDetails(value, both = true) {
    const details = native.proxyDetails(value);
    return details === undefined || both ? details : details[0];
  },
  previewEntries(value, both) {
    const found = native.previewEntries(value, true);
    return both ? found : found?.[0];
  },
  getConstructorName: native.constructorName,
  getExternalValue: () => 0n,
  getCallerLocation() {},
  getCallSites: () => [],
  constructSharedArrayBuffer: (size) => new SharedArrayBuffer(size),
  guessHandleType: () => 4,
  isInsideNodeModules: () => false,
  sleep() {},
  toUSVString: (text) => StringPrototypeToWellFormed(`${text}`),
  isConstructor(value) {
    try {
      ReflectConstruct(Object, [], value);
      return true;
    } catch {
      return false;
    }
  },
  defineLazyProperties(target, id, keys, enumerable = true) {
    for (const key of keys) {
      const put = (value) => ObjectDefineProperty(target, key,
        { __proto__: null, value, writable: true, enumerable, configurable: true });
      const get = { [key]() { const value = require(id)[key]; put(value); return value; } }[key];
      ObjectDefineProperty(target, key, { __proto__: null, enumerable, configurable: true, get, set: put });
    }
  },
  WeakReference: class WeakReference {
    #ref;
    #held;
    #count = 0;
    constructor(value) { this.#ref = new SafeWeakRef(value); }
    get() { return this.#ref.deref(); }
    incRef() { if (++this.#count === 1) this.#held = this.#ref.deref(); return this.#count; }
    decRef() { if (--this.#count === 0) this.#held = undefined; return this.#count; }
  },
  parseEnv: () => ({}),
  arrayBufferViewHasBuffer: () => true,
});

module.exports = { types, util };
