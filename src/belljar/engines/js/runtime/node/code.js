// Node's own library files and the scripts of programs: `builtins` and `contextify`.
'use strict';

const {
  ArrayPrototypeSome, ReflectDefineProperty, ReflectGetOwnPropertyDescriptor, ReflectOwnKeys, SafeMap, SafeSet, StringPrototypeIncludes,

} = primordials;
const ask = require('belljar/ask');
const { isolateSymbols, privateSymbols } = native.realm;
const { compiling } = require('belljar/node/errors');

// Node's library.

const PARAMETERS = ['exports', 'require', 'module', 'process', 'internalBinding', 'primordials'];
const REPLACED = { __proto__: null, 'internal/deps/amaro/dist/index': 'typescript' }; // by files of ours
const CHANGED = { __proto__: null, 'internal/modules/esm/resolve': 'file_server', '_http_agent': 'web', 'https': 'web', 'internal/deps/undici/undici': 'web' };

const ready = new SafeMap(); // compiled ahead

const builtins = {
  builtinIds: ask('builtinIds'),
  builtinCategories: { canBeRequired: [], cannotBeRequired: [] },
  natives: {},
  config: ask('processConfig'),
  hasCachedBuiltins: () => true,
  compileFunction(id) {
    const ours = REPLACED[id];
    if (ours !== undefined) return (_exports, _require, module) => { module.exports = require(`belljar/node/${ours}`); };
    const compiled = ready.get(id) ?? native.compile(id, PARAMETERS);
    if (CHANGED[id] === undefined) return compiled;
    return (exports, load, module, ...rest) => {
      compiled(exports, load, module, ...rest);
      require(`belljar/node/${CHANGED[id]}`)[id](module.exports);
    };
  },
  setInternalLoaders(internalBinding, requireBuiltin) {
    native.realm.internalBinding = internalBinding;
    native.realm.require = requireBuiltin;
  },
};

// Scripts and functions.

const WRAPPER = ['exports', 'require', 'module', '__filename', '__dirname'];
// What V8 says of a script that may be a module.
const MODULE_ERRORS = ['Cannot use import statement outside a module', "Unexpected token 'export'", "Cannot use 'import.meta' outside a module"];
// And of one that may be a module because it awaits, or declares what a wrapper has as parameters.
const RETRY_ERRORS = ["Identifier '__filename' has already been declared", "Identifier '__dirname' has already been declared",
  'await is only valid in async functions and the top level bodies of modules', "Identifier 'module' has already been declared",
  "Identifier 'exports' has already been declared", "Identifier 'require' has already been declared"];

const has = (list, error) => ArrayPrototypeSome(list, (text) => StringPrototypeIncludes(error.message, text));

function compiles(code, name, parameters) {
  try {
    native.compileFunction(code, name, 0, 0, undefined, parameters);
    return undefined;
  } catch (error) {
    return error;
  }
}

// Whether code that is no script for this reason is a module.
function isModule(error, code, name) {
  if (has(MODULE_ERRORS, error)) return true;
  if (!has(RETRY_ERRORS, error)) return false;
  // Inside an async function it may await and redeclare: if that helps, a module is what it is.
  const again = compiles(`(async function() {${code}})();`, name, []);
  return again === undefined || has(MODULE_ERRORS, again);
}

function compileFunctionForCJSLoader(code, filename, _isMain, shouldDetect) {
  const id = isolateSymbols.vm_dynamic_import_default_internal;
  try {
    const { 0: made, 1: map } = native.compileFunction(code, filename, 0, 0, id, WRAPPER);
    return { __proto__: null, cachedDataRejected: false, sourceMapURL: map, sourceURL: undefined, function: made, canParseAsESM: false };
  } catch (error) {
    const canParseAsESM = shouldDetect && isModule(error, code, filename);
    if (!canParseAsESM) return compiling(() => { throw error; });
    return { __proto__: null, cachedDataRejected: false, sourceMapURL: undefined, function: undefined, canParseAsESM };
  }
}

class ContextifyScript {
  #source;

  constructor(code, filename, line, column, _cachedData, _produce, _context, id) {
    const symbol = typeof id === 'symbol' ? id : isolateSymbols.vm_dynamic_import_missing_flag;
    this.#source = [code, filename, line ?? 0, column ?? 0, symbol];
    this.sourceMapURL = compiling(() => native.script(...this.#source, false))[1];
    this[privateSymbols.host_defined_option_symbol] = symbol;
  }

  // A timeout of its own is not kept: the sandbox's limits are.
  runInContext(object) {
    if (object === null) return native.script(...this.#source, true)[0];
    return inContext(object, (number) => native.script(...this.#source, true, number)[0]);
  }

  createCachedData() { return require('buffer').Buffer.alloc(0); }
}

const { contextify_context_private_symbol: contextSymbol } = privateSymbols;

// A further realm. What the object has, its code finds as globals, and the globals it makes, the object has afterwards.
class Face {
  #object;
  #global;
  #own; // what the realm has of itself

  constructor(object) {
    const { 0: number, 1: global } = native.newContext();
    this.number = number;
    this.#object = object;
    this.#global = global;
    this.#own = new SafeSet(ReflectOwnKeys(global));
  }

  before() {
    for (const key of ReflectOwnKeys(this.#object)) {
      const get = () => this.#object[key], set = (value) => { this.#object[key] = value; };
      const held = ReflectGetOwnPropertyDescriptor(this.#global, key);
      if (held === undefined || held.configurable) {
        ReflectDefineProperty(this.#global, key, { __proto__: null, get, set, enumerable: true, configurable: true });
      } else if (held.writable) {
        this.#global[key] = this.#object[key];
      }
    }
  }

  after() {
    for (const key of ReflectOwnKeys(this.#global)) {
      const held = ReflectGetOwnPropertyDescriptor(this.#global, key);
      if (held?.value !== undefined && !this.#own.has(key)) this.#object[key] = held.value;
    }
  }
}

function inContext(object, run) {
  const face = object[contextSymbol];
  face.before();
  try {
    return run(face.number);
  } finally {
    face.after();
  }
}

function makeContext(object, _name, _origin, _strings, _wasm, _queue, id) {
  if (typeof object === 'symbol') object = {}; // vm.constants.DONT_CONTEXTIFY
  object[contextSymbol] = new Face(object);
  object[privateSymbols.host_defined_option_symbol] = id;
  return object;
}

const contextify = {
  ContextifyScript,
  compileFunctionForCJSLoader,
  makeContext,
  containsModuleSyntax(code, filename, _resource, noVariables) {
    const error = compiles(code, filename, noVariables ? [] : WRAPPER);
    return error !== undefined && isModule(error, code, filename);
  },
  compileFunction(code, filename, line, column, _cachedData, _produce, _context, _extensions, parameters, id) {
    const { 0: made, 1: map } = compiling(() => native.compileFunction(code, filename, line, column, id, parameters ?? []));
    made[privateSymbols.host_defined_option_symbol] = id;
    return { __proto__: null, function: made, sourceMapURL: map };
  },
  startSigintWatchdog: () => true,
  stopSigintWatchdog: () => false,
  watchdogHasPendingSigint: () => false,
  constants: { measureMemory: { mode: { SUMMARY: 0, DETAILED: 1 }, execution: { DEFAULT: 0, EAGER: 1 } } },
};

module.exports = { builtins, contextify, precompile(id) { ready.set(id, native.compile(id, PARAMETERS)); } };
