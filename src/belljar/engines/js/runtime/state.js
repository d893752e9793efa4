// A session's variables as text, written and read only in here: data by structure, functions and classes by source.
//
// Everything that has an identity is a node with a number; what variables share, they still share afterwards. A
// variable that can't be written costs only itself.
'use strict';

const {
  ArrayBufferPrototypeGetByteLength, ArrayIsArray, ArrayPrototypePush, BigInt, BigIntPrototypeToString, Date,
  DatePrototypeGetTime, Error, FunctionPrototypeToString, JSONParse, JSONStringify, Map, MapPrototypeForEach,
  MapPrototypeSet, NumberIsFinite, Object, ObjectCreate, ObjectDefineProperty, ObjectGetOwnPropertyDescriptor,
  ObjectGetPrototypeOf, ObjectIs, ObjectIsExtensible, ObjectPreventExtensions, ObjectPrototype, ObjectSetPrototypeOf,
  ReflectOwnKeys, RegExp, RegExpPrototypeGetFlags, RegExpPrototypeGetSource, SafeMap, SafeSet, Set, SetPrototypeAdd,
  SetPrototypeForEach, String, StringPrototypeEndsWith, StringPrototypeSlice, StringPrototypeStartsWith, Symbol,
  SymbolFor, SymbolKeyFor, SymbolPrototypeGetDescription, TypeError, TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetByteOffset, TypedArrayPrototypeGetLength, TypedArrayPrototypeGetSymbolToStringTag, Uint8Array,
  globalThis,
} = primordials;
const sources = require('belljar/sources');
const { script } = require('belljar/code');
const { decode: toBytes, encode: toText, typeOf, constructorName } = native;

const UTF8 = 1, BASE64 = 2, ALL = 2 ** 53; // as Node numbers its encodings
const REASON_MAX = 200;
const FILE = 'restored.js';
const WRITABLE = 1, ENUMERABLE = 2, CONFIGURABLE = 4;
const OF_FUNCTIONS = new SafeSet(['length', 'name', 'prototype', 'arguments', 'caller']);
const BOXED = new SafeSet(['NumberObject', 'BooleanObject', 'StringObject', 'BigIntObject']);
const GLOBAL_SELF = new SafeSet(['globalThis', 'global', 'self']);
const own = new SafeSet(ReflectOwnKeys(globalThis)); // what was there before any program
const hostFunctions = new SafeMap(); // by name

class Refused extends TypeError {}

function refuse(why) {
  throw new Refused(why);
}

// What JavaScript itself brings, by the path it is found at.
function findIntrinsics() {
  const paths = new SafeMap();
  const walk = (value, path) => {
    if ((typeof value !== 'object' || value === null) && typeof value !== 'function' || paths.has(value)) return;
    paths.set(value, path);
    if (path.length === 4) return;
    const keys = ReflectOwnKeys(value);
    for (let i = 0; i < keys.length; i++) {
      if (typeof keys[i] !== 'string') continue;
      const slot = ObjectGetOwnPropertyDescriptor(value, keys[i]);
      if ('value' in slot) walk(slot.value, [...path, keys[i]]);
    }
  };
  own.forEach((name) => {
    if (typeof name !== 'string' || GLOBAL_SELF.has(name)) return;
    const slot = ObjectGetOwnPropertyDescriptor(globalThis, name);
    if (slot !== undefined && 'value' in slot) walk(slot.value, [name]);
  });
  return paths;
}

class Writer {
  nodes = [];
  objects = [];
  numbers = new SafeMap();
  intrinsics = undefined;
  wellKnown = new SafeMap();

  constructor() {
    for (const name of ReflectOwnKeys(Symbol)) {
      if (typeof Symbol[name] === 'symbol') this.wellKnown.set(Symbol[name], name);
    }
  }

  // Forget what a variable that can't be written has left.
  rollBack(count) {
    while (this.objects.length > count) this.numbers.delete(this.objects.pop());
    this.nodes.length = count;
  }

  value(value) {
    switch (typeof value) {
      case 'string': case 'boolean': return value;
      case 'undefined': return ['undefined'];
      case 'number': return NumberIsFinite(value) && !ObjectIs(value, -0) ? value : ['number', ObjectIs(value, -0) ? '-0' : String(value)];
      case 'bigint': return ['bigint', BigIntPrototypeToString(value, 10)];
      case 'symbol': return this.symbol(value);
    }
    if (value === null) return null;
    const number = this.numbers.get(value);
    if (number !== undefined) return ['node', number];
    if (value === globalThis) return ['path', []];
    this.intrinsics ??= findIntrinsics();
    const path = this.intrinsics.get(value);
    if (path !== undefined) return ['path', path];
    return typeof value === 'function' ? this.function(value) : this.object(value);
  }

  add(object, node) {
    const number = this.nodes.length;
    ArrayPrototypePush(this.nodes, node);
    ArrayPrototypePush(this.objects, object);
    this.numbers.set(object, number);
    return ['node', number];
  }

  symbol(value) {
    if (this.wellKnown.has(value)) return ['well-known', this.wellKnown.get(value)];
    const key = SymbolKeyFor(value);
    if (key !== undefined) return ['symbol', key];
    const number = this.numbers.get(value);
    return number !== undefined ? ['node', number] : this.add(value, { kind: 'symbol', description: SymbolPrototypeGetDescription(value) });
  }

  // Own properties, but those named in `without` and those that are parts of a class.
  properties(object, without) {
    const made = [];
    const keys = ReflectOwnKeys(object);
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i];
      if (without?.has(key)) continue;
      const slot = ObjectGetOwnPropertyDescriptor(object, key);
      const flags = (slot.writable ? WRITABLE : 0) | (slot.enumerable ? ENUMERABLE : 0) | (slot.configurable ? CONFIGURABLE : 0);
      const name = this.value(key);
      if ('value' in slot) ArrayPrototypePush(made, flags === 7 ? [name, this.value(slot.value)] : [name, this.value(slot.value), flags]);
      else ArrayPrototypePush(made, [name, this.value(slot.get), flags, this.value(slot.set)]);
    }
    return made;
  }

  object(object) {
    const kind = typeOf(object);
    switch (kind) {
      case 'Proxy': case 'Promise': case 'WeakMap': case 'WeakSet': case 'MapIterator': case 'SetIterator':
      case 'SharedArrayBuffer': case 'GeneratorObject': case 'ModuleNamespaceObject': case 'External': case 'SymbolObject':
        return refuse(`a ${kind} can't be saved`);
    }
    const node = { kind: 'object' };
    const reference = this.add(object, node);
    const view = TypedArrayPrototypeGetSymbolToStringTag(object);
    let without;
    if (view !== undefined) {
      node.kind = 'view';
      node.type = view;
      node.buffer = this.value(TypedArrayPrototypeGetBuffer(object));
      node.offset = TypedArrayPrototypeGetByteOffset(object);
      node.length = TypedArrayPrototypeGetLength(object);
      without = { has: (key) => typeof key === 'string' && `${key >>> 0}` === key };
    } else if (ArrayIsArray(object)) {
      node.kind = 'array';
    } else if (kind === 'Date') {
      node.kind = 'date';
      node.time = this.value(DatePrototypeGetTime(object));
    } else if (kind === 'RegExp') {
      node.kind = 'regexp';
      node.source = RegExpPrototypeGetSource(object);
      node.flags = RegExpPrototypeGetFlags(object);
    } else if (kind === 'Map') {
      node.kind = 'map';
      node.entries = [];
      MapPrototypeForEach(object, (value, key) => ArrayPrototypePush(node.entries, [this.value(key), this.value(value)]));
    } else if (kind === 'Set') {
      node.kind = 'set';
      node.entries = [];
      SetPrototypeForEach(object, (value) => ArrayPrototypePush(node.entries, this.value(value)));
    } else if (kind === 'ArrayBuffer') {
      node.kind = 'buffer';
      node.data = toText(new Uint8Array(object), BASE64, 0, ALL);
    } else if (kind === 'DataView') {
      refuse("a DataView can't be saved");
    } else if (BOXED.has(kind)) {
      node.kind = 'boxed';
      node.value = this.value(object.valueOf());
      if (kind === 'StringObject') without = { has: (key) => typeof key === 'string' };
    } else if (kind === 'NativeError') {
      node.kind = 'error';
      node.stack = this.value(object.stack);
      without = new SafeSet(['stack']);
    } else if (kind === 'ArgumentsObject') {
      refuse("an arguments object can't be saved");
    }
    this.prototype(object, node);
    node.properties = this.properties(object, without);
    if (!ObjectIsExtensible(object)) node.closed = true;
    return reference;
  }

  // Its prototype, if it is not what its kind has anyway. Refuses what has hidden parts: a URL, an object with #fields.
  prototype(object, node) {
    const prototype = ObjectGetPrototypeOf(object);
    node.prototype = this.ofClass(prototype);
    const isPlain = node.kind === 'object';
    for (let at = prototype; at !== null; at = ObjectGetPrototypeOf(at)) {
      const path = this.intrinsics.get(at);
      if (path === undefined) {
        const { constructor } = this.constructorOf(at);
        if (constructor !== undefined && sources.find(FunctionPrototypeToString(constructor))?.isPrivate) {
          refuse(`a ${constructorName(object)} has #private fields, which can't be seen from outside`);
        }
      } else if (isPlain && at !== ObjectPrototype) {
        refuse(`a ${constructorName(object)} can't be saved`);
      }
    }
  }

  constructorOf(prototype) {
    const slot = ObjectGetOwnPropertyDescriptor(prototype, 'constructor');
    const made = slot?.value;
    return { constructor: typeof made === 'function' && made.prototype === prototype ? made : undefined };
  }

  // A prototype that comes with its function is written as that.
  ofClass(prototype) {
    if (prototype === null || this.intrinsics.has(prototype) || this.numbers.has(prototype)) return this.value(prototype);
    const { constructor } = this.constructorOf(prototype);
    if (constructor !== undefined) this.value(constructor); // brings the prototype along
    return this.value(prototype);
  }

  function(fn) {
    if (typeOf(fn) === 'Proxy') refuse("a Proxy can't be saved");
    const host = this.hostName(fn);
    if (host !== undefined) return ['host', host];
    const source = FunctionPrototypeToString(fn);
    if (StringPrototypeEndsWith(source, '{ [native code] }')) refuse("a function of the engine, or a bound one, can't be saved");
    const info = sources.find(source);
    if (info === undefined && !/^(async )?function\*? anonymous\(/.test(source)) refuse('a function whose source is not known');
    if (info?.captures.size > 0) refuse(`a function that uses what is around it: ${[...info.captures]}`);
    const node = { kind: 'function', source, needs: [...info?.needs ?? []] };
    const reference = this.add(fn, node);
    const name = ObjectGetOwnPropertyDescriptor(fn, 'name')?.value;
    if (typeof name === 'string') node.name = name;
    const without = new SafeSet(OF_FUNCTIONS);
    if (info?.isClass) this.parts(fn, reference, 'static', info, without);
    const prototype = ObjectGetOwnPropertyDescriptor(fn, 'prototype')?.value;
    if (typeof prototype === 'object' && prototype !== null && !this.numbers.has(prototype)) {
      const hidden = new SafeSet(['constructor']);
      const inner = { kind: 'prototype', of: reference, properties: [] };
      this.add(prototype, inner);
      if (info?.isClass) this.parts(prototype, reference, 'prototype', info, hidden);
      else if (this.constructorOf(prototype).constructor === fn) inner.prototype = this.ofClass(ObjectGetPrototypeOf(prototype));
      inner.properties = this.properties(prototype, hidden);
    }
    node.properties = this.properties(fn, without);
    return reference;
  }

  hostName(fn) {
    let found;
    hostFunctions.forEach((known, name) => { if (known === fn) found = name; });
    return found;
  }

  // The methods that a class brings with its source.
  parts(object, reference, on, info, without) {
    for (const key of ReflectOwnKeys(object)) {
      const slot = ObjectGetOwnPropertyDescriptor(object, key);
      for (const place of ['value', 'get', 'set']) {
        const part = slot[place];
        if (typeof part !== 'function' || part === this.objects[reference[1]] || !info.members.has(FunctionPrototypeToString(part))) continue;
        without.add(key);
        if (!this.numbers.has(part)) this.add(part, { kind: 'part', of: reference, on, key: this.value(key), place });
      }
    }
  }
}

class Reader {
  constructor({ nodes, variables }) {
    this.nodes = nodes;
    this.variables = new SafeMap(variables);
    this.made = [];
    this.under = new SafeSet();
    this.wanted = new SafeSet();
  }

  // Bind a variable, and first what its class needs to exist.
  bind(name) {
    if (!this.variables.has(name) || this.wanted.has(name)) return;
    this.wanted.add(name);
    const value = this.value(this.variables.get(name));
    ObjectDefineProperty(globalThis, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
  }

  value(written) {
    if (!ArrayIsArray(written)) return written;
    const { 0: tag, 1: held } = written;
    switch (tag) {
      case 'undefined': return undefined;
      case 'number': return +held;
      case 'bigint': return BigInt(held);
      case 'symbol': return SymbolFor(held);
      case 'well-known': return Symbol[held];
      case 'node': return this.node(held);
      case 'path': return this.find(held);
      case 'host': return hostFunctions.get(held) ?? refuse(`${held}() is not a function of the host any more`);
    }
    throw new Error('text that this version did not write');
  }

  find(path) {
    let found = globalThis;
    for (let i = 0; i < path.length; i++) found = found?.[path[i]];
    return found ?? refuse(`there is no ${path.join('.')} here`);
  }

  node(number) {
    if (number in this.made) return this.made[number];
    if (this.under.has(number)) refuse('it is needed to make itself');
    this.under.add(number);
    const node = this.nodes[number];
    const object = this.made[number] = this.create(node);
    if (typeof object === 'symbol' || node.kind === 'part') return object;
    this.fill(object, node);
    return object;
  }

  create(node) {
    switch (node.kind) {
      case 'object': return {};
      case 'array': return [];
      case 'symbol': return Symbol(node.description);
      case 'date': return new Date(this.value(node.time));
      case 'regexp': return new RegExp(node.source, node.flags);
      case 'map': return new Map();
      case 'set': return new Set();
      case 'boxed': return Object(this.value(node.value));
      case 'error': return new Error();
      case 'buffer': {
        const bytes = toBytes(node.data, BASE64);
        const { buffer, byteOffset, byteLength } = bytes;
        return byteOffset === 0 && ArrayBufferPrototypeGetByteLength(buffer) === byteLength ? buffer : buffer.slice(byteOffset, byteOffset + byteLength);
      }
      case 'view': return new primordials[node.type](this.value(node.buffer), node.offset, node.length);
      case 'function': return this.function(node);
      case 'prototype': return this.value(node.of).prototype;
      case 'part': {
        const owner = this.value(node.of);
        const slot = ObjectGetOwnPropertyDescriptor(node.on === 'static' ? owner : owner.prototype, this.value(node.key));
        return slot[node.place];
      }
    }
    throw new Error('text that this version did not write');
  }

  function({ source, needs, name }) {
    for (let i = 0; i < needs.length; i++) this.bind(needs[i]);
    let fn;
    const expression = `(${source}\n)`;
    try {
      fn = script(expression, FILE, undefined);
      sources.remember(expression);
    } catch (error) {
      if (!(error instanceof primordials.SyntaxError)) throw error;
      const method = `({${source}\n})`;
      const holder = script(method, FILE, undefined);
      sources.remember(method);
      const slot = ObjectGetOwnPropertyDescriptor(holder, ReflectOwnKeys(holder)[0]);
      fn = slot.value ?? slot.get ?? slot.set;
    }
    if (name !== undefined) ObjectDefineProperty(fn, 'name', { __proto__: null, value: name, configurable: true });
    return fn;
  }

  fill(object, node) {
    if (node.kind === 'map') for (const { 0: key, 1: value } of node.entries) MapPrototypeSet(object, this.value(key), this.value(value));
    if (node.kind === 'set') for (const value of node.entries) SetPrototypeAdd(object, this.value(value));
    if ('stack' in node) ObjectDefineProperty(object, 'stack', { __proto__: null, value: this.value(node.stack), writable: true, configurable: true });
    if ('prototype' in node) {
      const prototype = this.value(node.prototype);
      if (ObjectGetPrototypeOf(object) !== prototype) ObjectSetPrototypeOf(object, prototype);
    }
    for (const { 0: key, 1: value, 2: flags = 7, 3: setter } of node.properties) {
      const slot = { __proto__: null, enumerable: (flags & ENUMERABLE) > 0, configurable: (flags & CONFIGURABLE) > 0 };
      if (setter !== undefined) {
        slot.get = this.value(value);
        slot.set = this.value(setter);
      } else {
        slot.value = this.value(value);
        slot.writable = (flags & WRITABLE) > 0;
      }
      ObjectDefineProperty(object, this.value(key), slot);
    }
    if (node.closed) ObjectPreventExtensions(object);
  }
}

function reason(error) {
  try {
    if (error instanceof Refused) return StringPrototypeSlice(error.message, 0, REASON_MAX);
    if (error instanceof primordials.RangeError) return 'nested too deeply';
    return StringPrototypeSlice(`${error.name}: ${error.message}`, 0, REASON_MAX);
  } catch {
    return 'it throws what can not be described';
  }
}

module.exports = {
  remember: sources.remember,
  know(name, fn) {
    hostFunctions.set(name, fn);
  },
  // The variables as bytes, and why others are not among them.
  save({ max_bytes: most, leave_out: without }) {
    const skipped = new SafeSet(without);
    const writer = new Writer();
    const variables = [], left_out = { __proto__: null };
    let room = most;
    for (const name of ReflectOwnKeys(globalThis)) {
      if (typeof name !== 'string' || own.has(name) || skipped.has(name)) continue;
      const mark = writer.nodes.length;
      try {
        const slot = ObjectGetOwnPropertyDescriptor(globalThis, name);
        if (!('value' in slot)) refuse('a getter or setter');
        if (hostFunctions.get(name) === slot.value && slot.value !== undefined) continue;
        const written = writer.value(slot.value);
        const size = JSONStringify([name, written, writer.nodes.slice(mark)]).length;
        if (size > room) refuse(`too large: ${size} bytes, and there is room for ${room} more of ${most}`);
        room -= size;
        ArrayPrototypePush(variables, [name, written]);
      } catch (error) {
        writer.rollBack(mark);
        left_out[name] = reason(error);
      }
    }
    return { __proto__: null, data: toBytes(JSONStringify({ variables, nodes: writer.nodes }), UTF8), left_out, begins_with: '' };
  },
  load({ data }) {
    const reader = new Reader(JSONParse(toText(data, UTF8, 0, ALL)));
    const lost = { __proto__: null };
    reader.variables.forEach((_, name) => {
      try {
        reader.bind(name);
      } catch (error) {
        lost[name] = reason(error);
      }
    });
    return { __proto__: null, lost };
  },
};
