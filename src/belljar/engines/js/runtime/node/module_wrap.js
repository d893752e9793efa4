// ES modules: the class that Node's loader links and evaluates, over the engine's numbered modules.
'use strict';

const {
  ArrayPrototypeMap, JSONStringify, ObjectFreeze, PromisePrototypeThen, Symbol,
} = primordials;
const { isolateSymbols, privateSymbols } = native.realm;
const { compiling, explained, stalled } = require('belljar/node/errors');
const { hooks } = require('belljar/node/hooks');

const UNINSTANTIATED = 0, INSTANTIATING = 1, INSTANTIATED = 2, EVALUATING = 3, EVALUATED = 4, ERRORED = 5;
const SOURCE_PHASE = 1, EVALUATION_PHASE = 2;
const PENDING = 0, REJECTED = 2; // of promises

const wraps = []; // by number

function attributesOf(flat) {
  const made = { __proto__: null };
  for (let i = 0; i < flat.length; i += 2) made[flat[i]] = flat[i + 1];
  return made;
}

class ModuleWrap {
  #number;
  #requests = [];
  #linked = [];
  #steps;

  // (url, context, source, lineOffset, columnOffset[, idSymbol | cachedData]) or (url, context, exportNames, evaluate)
  constructor(url, _context, source, line, column, id) {
    this.url = url;
    if (typeof source === 'string') {
      const symbol = typeof id === 'symbol' ? id : Symbol(url);
      const { 0: number, 1: requests, 2: map, 3: awaits } = compiling(() => native.compileModule(source, url, line, column, symbol));
      this.#number = number;
      this.#requests = ObjectFreeze(ArrayPrototypeMap(requests, ({ 0: specifier, 1: phase, 2: flat }) =>
        ObjectFreeze({ __proto__: null, specifier, attributes: ObjectFreeze(attributesOf(flat)), phase: phase + SOURCE_PHASE })));
      this[privateSymbols.host_defined_option_symbol] = symbol;
      this.sourceMapURL = map;
      this.sourceURL = undefined;
      this.hasTopLevelAwait = awaits;
    } else {
      this.#number = native.makeSynthetic(url, source);
      this.#steps = line;
      this.hasTopLevelAwait = false;
    }
    wraps[this.#number] = this;
  }

  // The number of the module that a request in another means.
  static resolve(number, specifier, flat) {
    const wrap = wraps[number];
    const wanted = JSONStringify(attributesOf(flat));
    for (let i = 0; i < wrap.#requests.length; i++) {
      const request = wrap.#requests[i];
      if (request.specifier === specifier && JSONStringify(request.attributes) === wanted && wrap.#linked[i] !== undefined) return wrap.#linked[i].#number;
    }
    throw new (require('internal/errors').codes.ERR_VM_MODULE_LINK_FAILURE)(`request for '${specifier}' is not yet fulfilled`, undefined);
  }

  static evaluateSteps(number) { wraps[number].#steps?.call(wraps[number]); }
  getModuleRequests() { return this.#requests; }
  link(modules) { this.#linked = modules; }
  instantiate() { explained(() => native.instantiate(this.#number)); }
  evaluate() { return native.evaluate(this.#number); }
  setExport(name, value) { native.setExport(this.#number, name, value); }
  getNamespace() { return native.namespace(this.#number); }
  getStatus() { return native.status(this.#number); }
  getError() { return native.error(this.#number); }
  stalled() { return stalled(this.#number); }
  get hasAsyncGraph() { return native.isGraphAsync(this.#number); }
  createCachedData() { return require('buffer').Buffer.alloc(0); }
  setModuleSourceObject(object) { this.sourceObject = object; }
  getModuleSourceObject() { return this.sourceObject; }

  // For require(): all of it now, or an error.
  evaluateSync(filename, parentFilename) {
    if (native.isGraphAsync(this.#number)) throw asyncModule(filename, parentFilename);
    const promise = native.evaluate(this.#number);
    const { 0: state, 1: result } = native.promiseDetails(promise);
    if (state === REJECTED) {
      PromisePrototypeThen(promise, undefined, () => {}); // it is thrown instead
      throw result;
    }
    if (state === PENDING) throw asyncModule(filename, parentFilename);
    return this.getNamespace();
  }
}

function asyncModule(filename, parentFilename) {
  const { ERR_REQUIRE_ASYNC_MODULE } = require('internal/errors').codes;
  return new ERR_REQUIRE_ASYNC_MODULE(filename, parentFilename);
}

let importDynamically, initializeMeta;
hooks.evaluate = ModuleWrap.evaluateSteps;
hooks.resolve = ModuleWrap.resolve;
hooks.import = (id, specifier, flat, name) =>
  importDynamically(id ?? isolateSymbols.vm_dynamic_import_default_internal, specifier, EVALUATION_PHASE, attributesOf(flat), name);
hooks.importMeta = (number, meta) => {
  const wrap = wraps[number];
  initializeMeta(wrap[privateSymbols.host_defined_option_symbol], meta, wrap);
};

// What require() gives of a module with a default export: the same, marked as Babel does.
function createRequiredModuleFacade(wrap) {
  const source = "export * from 'original'; export { default } from 'original'; export const __esModule = true;";
  const facade = new ModuleWrap('node:internal/require_module_default_facade', undefined, source, 0, 0);
  facade.link(ArrayPrototypeMap(facade.getModuleRequests(), () => wrap));
  facade.instantiate();
  facade.evaluate();
  return facade.getNamespace();
}

module.exports = {
  module_wrap: {
    ModuleWrap,
    createRequiredModuleFacade,
    setImportModuleDynamicallyCallback(callback) { importDynamically = callback; },
    setInitializeImportMetaObjectCallback(callback) { initializeMeta = callback; },
    throwIfPromiseRejected(promise) {
      const { 0: state, 1: result } = native.promiseDetails(promise);
      if (state === REJECTED) throw result;
    },
    kUninstantiated: UNINSTANTIATED, kInstantiating: INSTANTIATING, kInstantiated: INSTANTIATED, kEvaluating: EVALUATING,
    kEvaluated: EVALUATED, kErrored: ERRORED, kSourcePhase: SOURCE_PHASE, kEvaluationPhase: EVALUATION_PHASE,
  },
};
