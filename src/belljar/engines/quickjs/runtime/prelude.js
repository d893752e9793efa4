// Makes QuickJS look, to our JavaScript, like the engine that was written for: gives `native`, which engines/js/addon has
// for V8. Runs before anything else; what it needs of the language it takes hold of here, for guests may change all of it.
(function prelude(host) {
  'use strict';

  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
  const { isExtensible } = Object;
  const sourceText = (0, eval); // an indirect eval: global, and sloppy unless the code says otherwise
  const charCodeAt = uncurry(String.prototype.charCodeAt);
  const fromCharCode = String.fromCharCode;
  const indexOfText = uncurry(String.prototype.indexOf);
  const repeat = uncurry(String.prototype.repeat);
  const slice = uncurry(String.prototype.slice);
  const toWellFormed = uncurry(String.prototype.toWellFormed);
  const exec = uncurry(RegExp.prototype.exec);
  const then = uncurry(Promise.prototype.then);
  // Neither assignments nor loops over arrays: a guest may have put something of its own behind those.
  const push = (array, value) => defineProperty(array, array.length, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
  const { min } = Math;
  const view = Object.getPrototypeOf(Uint8Array.prototype);
  const getter = (of, name) => uncurry(getOwnPropertyDescriptor(of, name).get);
  const bufferOf = getter(view, 'buffer'), offsetOf = getter(view, 'byteOffset'), lengthOf = getter(view, 'byteLength');
  const dataBuffer = getter(DataView.prototype, 'buffer'), dataOffset = getter(DataView.prototype, 'byteOffset');
  const dataLength = getter(DataView.prototype, 'byteLength');
  const tagOf = getter(view, Symbol.toStringTag);
  const setBytes = uncurry(view.set), part = uncurry(view.subarray);
  const { isView } = ArrayBuffer;

  const fail = (error) => { throw error; };

  // Positions. The engine calls all that it evaluates "<input>", or "eval_script": so each piece of code begins at a line of its own, and
  // from its line we know whose it is.

  const pieces = []; // { first, last, name, column }
  const FIRST_LINE = 1000, LINES_MAX = 1 << 20; // the first are this file's
  let nextLine = FIRST_LINE;

  function place(code, name, column) {
    let lines = 1;
    for (let at = indexOfText(code, '\n'); at >= 0; at = indexOfText(code, '\n', at + 1)) lines++;
    if (nextLine + lines > LINES_MAX) nextLine = FIRST_LINE; // what had these lines before loses its name
    const first = nextLine;
    push(pieces, { first, last: first + lines - 1, name, column });
    nextLine += lines;
    return repeat('\n', first - 1) + code;
  }

  function position(file, line, column) {
    if (file === 'eval_script' && line < FIRST_LINE) return { file: 'node:belljar/prelude', line, column };
    if (file !== '<input>' && file !== 'eval_script') {
      const at = indexOfText(file, '#');
      return { file: at < 0 ? file : slice(file, 0, at), line, column };
    }
    for (let i = pieces.length - 1; i >= 0; i--) {
      const piece = pieces[i];
      if (line < piece.first || line > piece.last) continue;
      return { file: piece.name, line: line - piece.first + 1, column: line === piece.first ? column - piece.column : column };
    }
    return { file: '<anonymous>', line, column };
  }

  let callSite;
  Error.prepareStackTrace = (_error, sites) => { callSite = getPrototypeOf(sites[0]); };
  new Error().stack; // eslint-disable-line
  const site = {};
  for (const name of ['getFunctionName', 'getFileName', 'getLineNumber', 'getColumnNumber', 'isNative']) site[name] = uncurry(callSite[name]);

  class CallSite {
    #function; #at; #native;
    constructor(from) {
      this.#function = site.getFunctionName(from);
      this.#native = site.isNative(from);
      this.#at = position(`${site.getFileName(from)}`, site.getLineNumber(from), site.getColumnNumber(from));
    }
    getFunctionName() { return this.#function === '<eval>' || this.#function === '<anonymous>' ? null : this.#function || null; }
    getMethodName() { return null; }
    getTypeName() { return null; }
    getThis() { return undefined; }
    getFunction() { return undefined; }
    getEvalOrigin() { return undefined; }
    getPromiseIndex() { return null; }
    getFileName() { return this.#native ? null : this.#at.file; }
    getScriptNameOrSourceURL() { return this.getFileName(); }
    getLineNumber() { return this.#native ? null : this.#at.line; }
    getColumnNumber() { return this.#native ? null : this.#at.column; }
    isNative() { return this.#native; }
    isToplevel() { return true; }
    isEval() { return false; }
    isConstructor() { return false; }
    isAsync() { return false; }
    isPromiseAll() { return false; }
    toString() {
      const where = this.#native ? '<anonymous>' : `${this.#at.file}:${this.#at.line}:${this.#at.column}`;
      const name = this.getFunctionName();
      return name === null ? where : `${name} (${where})`;
    }
  }
  const describeSite = uncurry(CallSite.prototype.toString);

  const MEMORY = 3; // as engines/js/addon/guest.h numbers the reasons to stop
  const internalError = InternalError.prototype, syntaxError = SyntaxError.prototype;
  let prepare; // what a guest made of Error.prepareStackTrace
  let preparing = false;
  function trace(error, sites) {
    // A guest may catch it, and yet its memory is used up.
    if (getOwnPropertyDescriptor(error, 'message')?.value === 'out of memory' && getPrototypeOf(error) === internalError) host.stop(MEMORY);
    const made = [];
    for (let i = 0; i < sites.length; i++) push(made, new CallSite(sites[i]));
    if (typeof prepare === 'function' && !preparing) {
      preparing = true;
      try {
        return prepare(error, made);
      } finally {
        preparing = false;
      }
    }
    let text;
    try {
      text = heading(error);
    } catch {
      text = 'Error';
    }
    for (let i = 0; i < made.length; i++) text += `\n    at ${describeSite(made[i])}`;
    return text;
  }
  function heading(error) {
    const name = error.name === undefined ? 'Error' : `${error.name}`;
    const message = error.message === undefined ? '' : `${error.message}`;
    return message === '' ? name : name === '' ? message : `${name}: ${message}`;
  }
  Error.prepareStackTrace = trace;
  defineProperty(Error, 'prepareStackTrace', {
    __proto__: null, configurable: true, enumerable: false,
    get: () => prepare,
    set(value) { prepare = value; },
  });

  // Code.

  const STRICT = /^(?:\s|\/\/[^\n]*|\/\*[^]*?\*\/)*(?:'use strict'|"use strict")/;
  const LEXICAL = /\b(?:let|const|class)\b/, LEXICAL_FIRST = /^(?:let|const|class)\b/m;
  const LONG = 16 << 10;
  const COMPILED = '__belljar_compiled';
  // Of our JavaScript, once it is there: makes `let` at the top `var`; says what is wrong with some code.
  let loosen = (code) => code, explain = () => undefined;

  function explained(error, code, kind, name) {
    const found = typeOf(error) === 'NativeError' && getPrototypeOf(error) === syntaxError ? explain(code, kind) : undefined;
    if (found !== undefined) {
      const put = (key, value) => defineProperty(error, key, { __proto__: null, value, writable: true, configurable: true, enumerable: false });
      put('message', found.said);
      put('stack', `SyntaxError: ${found.said}\n    at ${name}:${found.line}:${found.column}`);
    }
    return error;
  }

  // Its first statement tells that it compiled: what is thrown before that is a syntax error, what is thrown later is not.
  function script(code, name, compiled) {
    if (compiled === undefined) return sourceText(place(code, name, 0));
    // What an eval declares with these ends with it, and later runs are to see it. Long code is not parsed for that: it runs
    // as a script of the engine's, which keeps them, and knows strict code only.
    const keeps = exec(LEXICAL, code) !== null, strict = keeps && code.length > LONG && exec(LEXICAL_FIRST, code) !== null;
    const text = keeps && code.length <= LONG ? loosen(code) : code;
    const before = `${exec(STRICT, text) === null ? '' : "'use strict';"}${COMPILED}();`;
    let ran = false;
    defineProperty(globalThis, COMPILED, {
      __proto__: null, configurable: true, enumerable: false,
      value() { delete globalThis[COMPILED]; ran = true; compiled(); },
    });
    try {
      return (strict ? host.script : sourceText)(place(before + text, name, before.length));
    } catch (error) {
      throw ran ? error : explained(error, code, 'script', name);
    } finally {
      delete globalThis[COMPILED];
    }
  }

  function compile(id, parameters) {
    const code = host.source(id);
    if (code === undefined) return undefined;
    let before = '(function (';
    for (let i = 0; i < parameters.length; i++) before += (i > 0 ? ', ' : '') + parameters[i];
    before += ') {';
    return sourceText(place(`${before}${code}\n})`, `node:${id}`, before.length));
  }

  const importModule = sourceText('(name) => import(name)');
  const REFUSED = /^Error resolving module '([^]*)' from '/;
  let modules = 0;

  // [namespace, promise]. The first is empty until the second is fulfilled.
  function module(code, name, compiled) {
    const id = `${name}#${++modules}`; // each has a name of its own: the engine keeps modules by their names
    try {
      host.module(toWellFormed(code), id);
    } catch (error) {
      const refused = exec(REFUSED, `${error?.message}`);
      if (refused === null) throw explained(error, code, 'module', name);
      compiled?.();
      throw new TypeError(`can't import '${refused[1]}': put libraries into the prefix, and use what it defines`);
    }
    compiled?.();
    const namespace = { __proto__: null };
    const promise = then(importModule(id), (found) => {
      const keys = ownKeys(found);
      for (let i = 0; i < keys.length; i++) {
        const key = keys[i];
        if (typeof key === 'string') defineProperty(namespace, key, { __proto__: null, enumerable: true, get: () => found[key] });
      }
    });
    return [namespace, promise];
  }

  // Bytes and text.

  const UTF8 = 1, UCS2 = 3;
  const SHORT = 64;
  const bytesOf = (value) => {
    if (!isView(value)) return new Uint8Array(value);
    if (tagOf(value) === 'Uint8Array') return value;
    return tagOf(value) === undefined ? new Uint8Array(dataBuffer(value), dataOffset(value), dataLength(value))
      : new Uint8Array(bufferOf(value), offsetOf(value), lengthOf(value));
  };

  function encode(value, encoding, start, end) {
    let bytes = bytesOf(value);
    const size = lengthOf(bytes);
    end = min(end, size);
    start = min(start, end);
    if (start > 0 || end < size) bytes = part(bytes, start, end);
    const length = end - start;
    if (encoding === UCS2) {
      let text = '';
      for (let i = 0; i + 1 < length; i += 2) text += fromCharCode(bytes[i] | bytes[i + 1] << 8);
      return text;
    }
    if (encoding === UTF8 && length <= SHORT) {
      let text = '', i = 0;
      for (; i < length && bytes[i] < 128; i++) text += fromCharCode(bytes[i]);
      if (i === length) return text;
    }
    return host.encode(bytes, encoding);
  }

  function decode(text, encoding) {
    text = `${text}`;
    const { length } = text;
    if (encoding === UCS2) {
      const bytes = new Uint8Array(2 * length);
      for (let i = 0; i < length; i++) {
        const code = charCodeAt(text, i);
        bytes[2 * i] = code;
        bytes[2 * i + 1] = code >> 8;
      }
      return bytes;
    }
    if (encoding === UTF8 && length <= SHORT) {
      const bytes = new Uint8Array(length);
      let i = 0;
      for (; i < length; i++) {
        const code = charCodeAt(text, i);
        if (code > 127) break;
        bytes[i] = code;
      }
      if (i === length) return bytes;
    }
    return host.decode(toWellFormed(text), encoding);
  }

  function write(to, text, encoding, offset, length) {
    const bytes = bytesOf(to), size = lengthOf(bytes);
    offset = min(offset, size);
    const room = min(length, size - offset);
    let made = decode(text, encoding);
    if (made.length > room) {
      let end = room;
      if (encoding === UTF8) while (end > 0 && (made[end] & 0xc0) === 0x80) end--; // no half characters
      if (encoding === UCS2) end &= ~1;
      made = part(made, 0, end);
    }
    setBytes(bytes, made, offset);
    return made.length;
  }

  function copy(from, to, toStart, fromStart, count) {
    const source = bytesOf(from), target = bytesOf(to);
    if (fromStart > lengthOf(source) || toStart > lengthOf(target)) return undefined;
    count = min(count, lengthOf(source) - fromStart, lengthOf(target) - toStart);
    if (count > 0) setBytes(target, part(source, fromStart, fromStart + count), toStart);
    return count;
  }

  function compare(a, b) {
    a = bytesOf(a);
    b = bytesOf(b);
    const length = min(lengthOf(a), lengthOf(b));
    for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
    return lengthOf(a) === lengthOf(b) ? 0 : lengthOf(a) < lengthOf(b) ? -1 : 1;
  }

  function random(value) {
    const bytes = bytesOf(value);
    const made = host.random(lengthOf(bytes));
    if (lengthOf(bytes) > 0) setBytes(bytes, made, 0);
  }

  // URLs: nine numbers into `components`, and the href; nothing for what is no URL.
  function url(components, given) {
    if (given === undefined) return undefined;
    const numbers = new Uint32Array(9);
    setBytes(bytesOf(numbers), part(given, 0, 36), 0);
    setBytes(components, numbers, 0);
    return host.encode(part(given, 36), UTF8);
  }
  const wellFormed = (value) => toWellFormed(`${value}`);

  for (const name of ['missing', 'locale']) sourceText(place(host.source(`belljar/${name}`), `node:belljar/${name}`, 0))(uncurry);

  // Looking into values. There is no asking the engine: what has a prototype is believed to be what that says, once a
  // function that only takes such a thing has taken it.

  const proxies = new WeakMap();
  const proxyGet = uncurry(proxies.get), proxySet = uncurry(proxies.set);
  const PlainProxy = Proxy;
  function GuestProxy(target, handler) {
    if (new.target === undefined) throw new TypeError("Constructor Proxy requires 'new'");
    const made = new PlainProxy(target, handler);
    proxySet(proxies, made, [target, handler]);
    return made;
  }
  GuestProxy.prototype = undefined;
  defineProperty(GuestProxy, 'name', { __proto__: null, value: 'Proxy', configurable: true });
  const { revocable } = Proxy;
  defineProperty(GuestProxy, 'revocable', {
    __proto__: null, writable: true, configurable: true,
    value: (target, handler) => {
      const made = revocable(target, handler);
      proxySet(proxies, made.proxy, [target, handler]);
      return made;
    },
  });
  defineProperty(globalThis, 'Proxy', { __proto__: null, value: GuestProxy, writable: true, configurable: true });

  const prototypes = new Map();
  const kindAt = uncurry(prototypes.get);
  const holds = (check) => (value) => {
    try {
      check(value);
      return true;
    } catch {
      return false;
    }
  };
  const yes = () => true;
  const iterator = (of) => getPrototypeOf(of[Symbol.iterator]());
  const accepted = {
    Map: [Map.prototype, holds(getter(Map.prototype, 'size'))],
    Set: [Set.prototype, holds(getter(Set.prototype, 'size'))],
    Date: [Date.prototype, holds(uncurry(Date.prototype.getTime))],
    RegExp: [RegExp.prototype, holds(getter(RegExp.prototype, 'source'))],
    Promise: [Promise.prototype, (value) => host.promise(value) !== undefined],
    WeakMap: [WeakMap.prototype, holds((value) => uncurry(WeakMap.prototype.has)(value, {}))],
    WeakSet: [WeakSet.prototype, holds((value) => uncurry(WeakSet.prototype.has)(value, {}))],
    ArrayBuffer: [ArrayBuffer.prototype, holds(getter(ArrayBuffer.prototype, 'byteLength'))],
    SharedArrayBuffer: [SharedArrayBuffer.prototype, holds(getter(SharedArrayBuffer.prototype, 'byteLength'))],
    DataView: [DataView.prototype, holds(dataBuffer)],
    NumberObject: [Number.prototype, holds(uncurry(Number.prototype.valueOf))],
    BooleanObject: [Boolean.prototype, holds(uncurry(Boolean.prototype.valueOf))],
    StringObject: [String.prototype, holds(uncurry(String.prototype.valueOf))],
    SymbolObject: [Symbol.prototype, holds(uncurry(Symbol.prototype.valueOf))],
    BigIntObject: [BigInt.prototype, holds(uncurry(BigInt.prototype.valueOf))],
    NativeError: [Error.prototype, typeof Error.isError === 'function' ? Error.isError : yes],
    MapIterator: [iterator(new Map()), yes],
    SetIterator: [iterator(new Set()), yes],
    AsyncFunction: [getPrototypeOf(async () => {}), yes],
    GeneratorFunction: [getPrototypeOf(function* () {}), yes],
    GeneratorObject: [getPrototypeOf(function* () {}).prototype, yes],
  };
  const mapSet = uncurry(prototypes.set);
  for (const name of ownKeys(accepted)) mapSet(prototypes, accepted[name][0], { name, holds: accepted[name][1] });
  // V8 has async generators for async functions, and their objects for generators' objects.
  const asyncGenerator = getPrototypeOf(async function* () {});
  mapSet(prototypes, asyncGenerator, { name: 'AsyncFunction', holds: yes });
  mapSet(prototypes, asyncGenerator.prototype, { name: 'GeneratorObject', holds: yes });

  const objectToString = uncurry(Object.prototype.toString);
  const hasOwn = Object.hasOwn;
  const { prototype: objectPrototype } = Object;

  function typeOf(value) {
    if (value === null || typeof value !== 'object' && typeof value !== 'function') return undefined;
    if (proxyGet(proxies, value) !== undefined) return 'Proxy';
    let prototype = getPrototypeOf(value);
    if (prototype === objectPrototype) {
      return hasOwn(value, 'callee') && objectToString(value) === '[object Arguments]' ? 'ArgumentsObject' : undefined;
    }
    if (prototype === null) {
      return !isExtensible(value) && getOwnPropertyDescriptor(value, Symbol.toStringTag)?.value === 'Module' ? 'ModuleNamespaceObject' : undefined;
    }
    for (; prototype !== null && proxyGet(proxies, prototype) === undefined; prototype = getPrototypeOf(prototype)) {
      const kind = kindAt(prototypes, prototype);
      if (kind !== undefined) return kind.holds(value) ? kind.name : undefined;
    }
    return undefined;
  }

  const INDEX = /^(?:0|[1-9]\d{0,9})$/;
  function ownNonIndex(object, filter) {
    const made = [], keys = ownKeys(object);
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i];
      if (typeof key === 'string' && exec(INDEX, key) !== null && +key < 4294967295) continue;
      if (filter === 2 && getOwnPropertyDescriptor(object, key)?.enumerable !== true) continue;
      push(made, key);
    }
    return made;
  }

  function constructorName(object) {
    for (let at = object; at !== null && proxyGet(proxies, at) === undefined; at = getPrototypeOf(at)) {
      const made = getOwnPropertyDescriptor(at, 'constructor')?.value;
      const name = typeof made === 'function' ? getOwnPropertyDescriptor(made, 'name')?.value : undefined;
      if (typeof name === 'string' && name !== '') return name;
    }
    return 'Object';
  }

  const mapEntries = uncurry(Map.prototype.entries), setValues = uncurry(Set.prototype.values);
  const nextOf = (of) => uncurry(getPrototypeOf(of).next);
  const mapNext = nextOf(new Map().entries()), setNext = nextOf(new Set().values());
  // Not of iterators: to look at one is to use it up.
  function previewEntries(value, wantsPairs) {
    const kind = typeOf(value), made = [];
    if (kind === 'Map') {
      const entries = mapEntries(value);
      for (let item = mapNext(entries); !item.done; item = mapNext(entries)) {
        push(made, item.value[0]);
        push(made, item.value[1]);
      }
    } else if (kind === 'Set') {
      const values = setValues(value);
      for (let item = setNext(values); !item.done; item = setNext(values)) push(made, item.value);
    }
    return wantsPairs === undefined ? made : [made, kind === 'Map'];
  }

  const promiseDetails = (value) => {
    const state = host.promise(value);
    return state === undefined ? undefined : [state, state === 0 ? undefined : host.promiseResult(value)];
  };

  let hooks = { __proto__: null };
  // Called by the process around us: what happened, and what comes with it.
  const dispatch = (name, value, fresh) => {
    const hook = hooks[name];
    if (hook === undefined) return -1;
    const made = name === 'rejection' ? hook(value, host.promiseResult(value), fresh) : hook(value);
    return typeof made === 'number' ? made : -1;
  };

  const native = {
    __proto__: null,
    version: host.source('belljar/version'), // of the Node whose library this is
    hooks(made) { hooks = made; },
    setParsers(made) { ({ loosen, explain } = made); },
    send: (text) => host.send(wellFormed(text)),
    print: (stream, text) => host.print(stream, wellFormed(text)),
    limits: host.limits,
    stop: host.stop,
    allowWasm: () => fail(new Error('WebAssembly is not there on QuickJS')),
    setFinalMessage: (why, bytes) => host.setFinalMessage(why, bytesOf(bytes)),
    sendBytes: (bytes) => host.sendBytes(bytesOf(bytes)),
    receiveBody: host.receiveBody,
    readable: host.readable,
    exit: host.exit,
    now: host.now,
    cpuTime: host.cpuTime,
    random,
    digest: (name, bytes) => host.digest(name, bytesOf(bytes)),
    compile,
    isFunctionBody(code) {
      try {
        sourceText(`(function () {${code}\n})`);
        return true;
      } catch {
        return false;
      }
    },
    module,
    script,
    strip: (code) => host.strip(wellFormed(code)),
    encode, decode, write, copy, compare,
    indexOf: (bytes, needle, offset, forward, unit) => host.indexOf(bytesOf(bytes), bytesOf(needle), offset, forward ? 1 : 0, unit),
    byteLength: (text) => decode(text, UTF8).length,
    parseUrl: (components, input, base) => url(components, base === undefined ? host.parseUrl(wellFormed(input)) : host.parseUrlWithBase(wellFormed(input), wellFormed(base))),
    updateUrl: (components, href, action, value) => url(components, host.updateUrl(wellFormed(href), action, wellFormed(value))),
    typeOf, previewEntries, ownNonIndex, constructorName, promiseDetails,
    proxyDetails: (value) => (value === null || typeof value !== 'object' && typeof value !== 'function' ? undefined : proxyGet(proxies, value)),
  };
  native.clone = sourceText(place(host.source('belljar/clone'), 'node:belljar/clone', 0))(typeOf);
  return { native, dispatch };
})
