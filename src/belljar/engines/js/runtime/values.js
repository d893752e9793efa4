// Plain data between the guest and its owner: the same JSON with `$` tags that belljar/abi/values.py reads and writes.
'use strict';

const {
  ArrayBufferIsView, ArrayIsArray, ArrayPrototypePush, BigInt, BigIntPrototypeToString, DateParse, DatePrototypeGetTime,
  DatePrototypeToISOString, JSONParse, JSONStringify, MapPrototypeEntries, NumberIsFinite, ObjectDefineProperty,
  ObjectGetPrototypeOf, ObjectKeys, ObjectPrototype, SetPrototypeValues, StringPrototypeSlice,
  StringPrototypeStartsWith, TypedArrayPrototypeGetSymbolToStringTag, Uint8Array,
} = primordials;
const { decode: toBytes, encode: toText, typeOf, constructorName } = native;

const BASE64 = 2; // as Node numbers its encodings
const DEPTH_MAX = 200;
const EXACT = 2 ** 53;

class NotPlain extends primordials.TypeError {}

function refuse(path, why) {
  throw new NotPlain(`${path} is ${why}, which can't cross: only plain data does`);
}

function put(object, key, value) {
  // Not an assignment: nothing a guest put on a prototype may run.
  ObjectDefineProperty(object, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
}

function tagged(value, path, depth) {
  switch (typeof value) {
    case 'string': case 'boolean': return value;
    case 'undefined': return null;
    case 'number': return NumberIsFinite(value) ? value : { $float: value !== value ? 'nan' : value > 0 ? 'inf' : '-inf' };
    case 'bigint': {
      if (value >= -9007199254740992n && value <= 9007199254740992n) return Number(value);
      const digits = BigIntPrototypeToString(value, 16);
      return { $int: value < 0n ? `-0x${StringPrototypeSlice(digits, 1)}` : `0x${digits}` };
    }
    case 'symbol': return refuse(path, 'a symbol');
    case 'function': return refuse(path, 'a function');
  }
  if (value === null) return null;
  if (depth > DEPTH_MAX) throw new NotPlain(`${path} is nested deeper than ${DEPTH_MAX}, or contains itself`);
  if (TypedArrayPrototypeGetSymbolToStringTag(value) === 'Uint8Array') return bytes(value);
  const kind = typeOf(value);
  switch (kind) {
    case 'Proxy': return refuse(path, 'a Proxy');
    case 'Promise': return refuse(path, 'a Promise (is an `await` missing?)');
    case 'ArrayBuffer': case 'DataView': return bytes(value);
    case 'Date': {
      const time = DatePrototypeGetTime(value);
      if (!(time >= -62135596800000 && time < 253402300800000)) return refuse(path, 'a Date outside the years 1 to 9999');
      return { $datetime: DatePrototypeToISOString(value) };
    }
    case 'Map': return pairs(MapPrototypeEntries(value), path, depth);
    case 'Set': return list(SetPrototypeValues(value), path, depth);
  }
  if (ArrayIsArray(value) || TypedArrayPrototypeGetSymbolToStringTag(value) !== undefined) {
    const made = [];
    for (let i = 0; i < value.length; i++) put(made, i, tagged(value[i], `${path}[${i}]`, depth + 1));
    return made;
  }
  const prototype = ObjectGetPrototypeOf(value);
  if (kind !== undefined && kind !== 'ModuleNamespaceObject' ||
      prototype !== null && prototype !== ObjectPrototype) {
    return refuse(path, `a ${constructorName(value)}`);
  }
  const made = {};
  let odd = false;
  const keys = ObjectKeys(value);
  for (let i = 0; i < keys.length; i++) {
    odd ||= StringPrototypeStartsWith(keys[i], '$');
    put(made, keys[i], tagged(value[keys[i]], `${path}.${keys[i]}`, depth + 1));
  }
  if (!odd) return made;
  const entries = [];
  for (let i = 0; i < keys.length; i++) ArrayPrototypePush(entries, [keys[i], made[keys[i]]]);
  return { $dict: entries };
}

function bytes(value) {
  return { $bytes: toText(ArrayBufferIsView(value) ? value : new Uint8Array(value), BASE64, 0, EXACT) };
}

function list(values, path, depth) {
  const made = [];
  for (let item = values.next(); !item.done; item = values.next()) {
    ArrayPrototypePush(made, tagged(item.value, `${path}[${made.length}]`, depth + 1));
  }
  return made;
}

function pairs(entries, path, depth) {
  const made = [];
  for (let item = entries.next(); !item.done; item = entries.next()) {
    const key = tagged(item.value[0], `a key of ${path}`, depth + 1);
    if (typeof key === 'object' && key !== null) refuse(`a key of ${path}`, 'no text or number');
    ArrayPrototypePush(made, [key, tagged(item.value[1], `${path}[${JSONStringify(key)}]`, depth + 1)]);
  }
  return { $dict: made };
}

function untagged(tree) {
  if (typeof tree !== 'object' || tree === null) return tree;
  if (ArrayIsArray(tree)) {
    for (let i = 0; i < tree.length; i++) put(tree, i, untagged(tree[i]));
    return tree;
  }
  const keys = ObjectKeys(tree);
  if (keys.length === 1 && StringPrototypeStartsWith(keys[0], '$')) {
    const held = tree[keys[0]];
    switch (keys[0]) {
      case '$int': return held[0] === '-' ? -BigInt(StringPrototypeSlice(held, 1)) : BigInt(held);
      case '$float': return held === 'nan' ? NaN : held === 'inf' ? Infinity : -Infinity;
      case '$bytes': return toBytes(held, BASE64);
      case '$datetime': return new primordials.Date(DateParse(held));
      case '$dict': return dict(held);
    }
  }
  for (let i = 0; i < keys.length; i++) put(tree, keys[i], untagged(tree[keys[i]]));
  return tree;
}

// A dict whose keys are all text is an object, any other a Map.
function dict(entries) {
  let text = true;
  for (let i = 0; i < entries.length; i++) text &&= typeof entries[i][0] === 'string';
  const made = text ? {} : new primordials.Map();
  for (let i = 0; i < entries.length; i++) {
    const value = untagged(entries[i][1]);
    if (text) put(made, entries[i][0], value);
    else primordials.MapPrototypeSet(made, untagged(entries[i][0]), value);
  }
  return made;
}

module.exports = {
  NotPlain,
  dumps: (value, name) => JSONStringify(tagged(value, name, 0)),
  loads: (text) => untagged(JSONParse(text)),
  untagged,
};
