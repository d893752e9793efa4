// What guests' realms may ask of Node's own realm in the same (sealed) process: pure functions of Node's C++ side, and
// objects of it that a guest holds by number. Questions and answers are structured clones.
'use strict';

const { internalBinding } = require('internal/test/binding');
const { stripTypeScriptTypes } = require('node:module');

const bindings = { __proto__: null };
const binding = (name) => (bindings[name] ??= internalBinding(name));

// Erasing keeps every position; only syntax that has to be rewritten (enums, namespaces) is.
function strip(code) {
  try {
    return stripTypeScriptTypes(code);
  } catch (error) {
    if (error.code !== 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') return undefined;
    return stripTypeScriptTypes(code, { mode: 'transform' });
  }
}

// A binding's plain values, and the names of its functions.
function describe(name) {
  const values = { __proto__: null }, functions = [];
  let real;
  try {
    real = binding(name);
  } catch {
    return { values: {}, functions };
  }
  for (const key of Object.getOwnPropertyNames(real)) {
    if (typeof real[key] === 'function') {
      const methods = Object.getOwnPropertyNames(real[key].prototype ?? {}).filter((name) => name !== 'constructor');
      functions.push([key, methods.length > 0 ? methods : undefined]);
      continue;
    }
    try {
      values[key] = structuredClone(real[key]);
    } catch { /* it holds what can't cross; ours has its own */ }
  }
  return { values, functions };
}

// Objects that a guest holds, by number.
const objects = new Map();
const homes = new WeakMap(); // the bindings they are of
let last = 0;

function hold(object, home) {
  objects.set(++last, object);
  homes.set(object, home);
  return last;
}

function here(value) {
  if (Array.isArray(value)) return value.map(here);
  return value?.$object === undefined ? value : objects.get(value.$object);
}

const describeError = (error) => ({ type: `${error?.name}`, message: `${error?.message ?? error}`, ...error });

const PLAIN = new Set([Object.prototype, null, Map.prototype, Set.prototype, Date.prototype, ArrayBuffer.prototype]);

const classOf = (value, home) => Object.keys(binding(home)).find((name) => binding(home)[name]?.prototype === Object.getPrototypeOf(value));

function there(value, home) {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => there(item, home));
  if (ArrayBuffer.isView(value)) return value.byteLength === value.buffer.byteLength ? value : new Uint8Array(value);
  if (value instanceof Error) return { $error: describeError(value) };
  if (PLAIN.has(Object.getPrototypeOf(value))) return value;
  return { $object: hold(value, home), $class: `${home}.${classOf(value, home)}` };
}

// What a codec or a parser says instead of throwing.
const complain = (object) => {
  object.onerror = (...error) => { object.failed = error; };
};
function outcome(object, value) {
  const error = object.failed;
  object.failed = undefined;
  return { error, value };
}

const streams = {
  __proto__: null,
  zlibOpen(name, mode) {
    const object = new (binding('zlib')[name])(mode);
    complain(object);
    return hold(object);
  },
  zlibInit(number, values, at) {
    const object = objects.get(number);
    object.state = values[at] = new Uint32Array(2);
    values[at + 1] = () => {};
    return outcome(object, object.init(...values));
  },
  zlibWrite(number, flush, input, room) {
    const object = objects.get(number), output = Buffer.allocUnsafeSlow(room);
    object.writeSync(flush, input ?? null, 0, input?.length ?? 0, output, 0, room);
    const { error } = outcome(object);
    const { state } = object;
    return { error, made: error === undefined ? new Uint8Array(output.subarray(0, room - state[0])) : undefined, state };
  },
  zlibCall(number, method, values) {
    const object = objects.get(number);
    return outcome(object, object[method](...values));
  },
  crc32: (data, value) => binding('zlib').crc32(data, value),
  parserConstants: () => Object.fromEntries(Object.entries(binding('http_parser').HTTPParser).filter(([, value]) => typeof value === 'number')),
  parserOpen(type, options) {
    const { HTTPParser } = binding('http_parser');
    const object = new HTTPParser();
    object.initialize(type, {}, ...options);
    object.events = [];
    for (const kind of [HTTPParser.kOnMessageBegin, HTTPParser.kOnHeaders, HTTPParser.kOnHeadersComplete, HTTPParser.kOnBody, HTTPParser.kOnMessageComplete]) {
      object[kind] = (...values) => {
        object.events.push([kind, values.map((value) => (ArrayBuffer.isView(value) ? new Uint8Array(value) : value))]);
        if (kind !== HTTPParser.kOnHeadersComplete) return undefined;
        const status = values[5];
        return object.skips || (status >= 100 && status < 200 && status !== 101 ? 1 : 0);
      };
    }
    return hold(object);
  },
  parserRun(number, data, skips) {
    const object = objects.get(number);
    object.skips = skips;
    object.events = [];
    const value = data === undefined ? object.finish() : object.execute(Buffer.from(data));
    if (!(value instanceof Error)) return { events: object.events, value };
    const { message, code, reason, bytesParsed } = value;
    return { events: object.events, error: { message, code, reason, bytesParsed } };
  },
};

const functions = {
  __proto__: null,
  ...streams,
  make(name, type, values) {
    const made = name === 'serdes' ? require('node:v8')[`Default${type}`] : binding(name)[type];
    return hold(new made(...here(values)), name);
  },
  invoke(target, method, values) {
    const object = typeof target === 'number' ? objects.get(target) : binding(target);
    return there(object[method](...here(values)), typeof target === 'number' ? homes.get(object) : target);
  },
  drop: (number) => void objects.delete(number),
  amaro(source, options) {
    try {
      return { made: require('internal/deps/amaro/dist/index').transformSync(source, options) };
    } catch (error) {
      return { error: typeof error === 'object' ? { ...error, message: error.message } : error };
    }
  },
  strip,
  describe,
  privateNames: () => Object.getOwnPropertyNames(binding('util').privateSymbols),
  builtinIds: () => binding('builtins').builtinIds,
  processConfig: () => binding('builtins').config,
  // Node's options as they are when none is given, and all that is known of them.
  options() {
    const { getCLIOptionsInfo, getCLIOptionsValues, types, envSettings } = binding('options');
    const { options, aliases } = getCLIOptionsInfo();
    const defaults = { ...getCLIOptionsValues() };
    for (const [name, { type, defaultIsTrue }] of options) {
      if (type !== types.kBoolean) continue;
      defaults[name] = defaultIsTrue;
      defaults[`--no-${name.slice(2)}`] = !defaultIsTrue;
    }
    return { values: { types, envSettings }, defaults, info: { options: new Map(options), aliases: new Map(aliases) } };
  },
  process: () => ({ version: process.version, versions: { ...process.versions }, arch: process.arch, release: { ...process.release } }),
  decoder(method, state, chunk) {
    const held = Buffer.from(state);
    const text = binding('string_decoder')[method](held, ...(chunk === undefined ? [] : [chunk]));
    return [text, new Uint8Array(held)];
  },
  // A function of a binding.
  call: (name, method, ...values) => binding(name)[method](...values),
  digest(name, bytes) {
    try {
      return require('node:crypto').createHash(name).update(bytes).digest();
    } catch {
      return undefined;
    }
  },
  parseUrl(input, base) {
    const url = binding('url');
    const href = url.parse(input, base, false);
    return href === undefined ? undefined : [href, url.urlComponents];
  },
  fileUrl(path, windows, base) {
    const url = binding('url');
    return [url.pathToFileURL(path, windows, ...(base === undefined ? [] : [base])), url.urlComponents];
  },
  updateUrl(href, action, value) {
    const url = binding('url');
    const made = url.update(href, action, value);
    return made === false ? undefined : [made, url.urlComponents];
  },
};

function answer([name, ...values], kind) {
  if (name === 'kind') return [kind];
  try {
    return [functions[name](...values)];
  } catch (error) {
    return [undefined, describeError(error)];
  }
}

function warm() {
  strip('const warm: number = 1; type T = { a: string }; function f<T>(x: T): T { return x }');
  structuredClone(functions.parseUrl('https://a.example/b', undefined));
  functions.digest('sha256', new Uint8Array(1));
}

module.exports = { answer, functions, warm };
