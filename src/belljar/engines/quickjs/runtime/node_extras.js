// Small modules of Node's that stand on the engine's own: timers/promises, async_hooks, vm.
'use strict';

const { Promise, PromisePrototypeThen } = primordials;
const timers = require('belljar/timers');

const aborted = (signal) => signal?.reason ?? new DOMException('The operation was aborted', 'AbortError');

function after(start, stop, delay, value, { signal } = {}) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(aborted(signal));
    const timer = start(() => resolve(value), delay);
    signal?.addEventListener('abort', () => { stop(timer); reject(aborted(signal)); }, { once: true });
  });
}

const { setTimeout, setImmediate, clearTimeout } = timers.node;
const timersPromises = {
  setTimeout: (delay, value, options) => after(setTimeout, clearTimeout, delay, value, options),
  setImmediate: (value, options) => after(setImmediate, clearTimeout, 0, value, options),
  async* setInterval(delay, value, options) { for (;;) yield await timersPromises.setTimeout(delay, value, options); },
  scheduler: { wait: (delay, options) => timersPromises.setTimeout(delay, undefined, options), yield: () => timersPromises.setImmediate() },
};
const { promisify } = require('internal/util');
setTimeout[promisify.custom] = timersPromises.setTimeout;
setImmediate[promisify.custom] = timersPromises.setImmediate;

// The store of the code that runs now: what V8 carries across an await is not told to us, so only what runs before the
// first one, and callbacks bound by hand, see it.
class AsyncLocalStorage {
  #store;
  run(store, callback, ...values) {
    const old = this.#store;
    this.#store = store;
    let result;
    try {
      result = callback(...values);
    } finally {
      if (!(result instanceof Promise)) this.#store = old;
    }
    if (result instanceof Promise) {
      const restore = () => { this.#store = old; };
      PromisePrototypeThen(result, restore, restore);
    }
    return result;
  }
  exit(callback, ...values) { return this.run(undefined, callback, ...values); }
  getStore() { return this.#store; }
  enterWith(store) { this.#store = store; }
  disable() { this.#store = undefined; }
  static bind(callback) { return callback; }
}

class AsyncResource {
  runInAsyncScope(callback, self, ...values) { return callback.apply(self, values); }
  emitDestroy() { return this; }
  static bind(callback) { return callback; }
}

const vm = {
  runInThisContext: (code, options) => native.script(`${code}`, options?.filename ?? options ?? 'evalmachine.<anonymous>', undefined),
  Script: class Script {
    #code;
    constructor(code) { this.#code = code; }
    runInThisContext() { return vm.runInThisContext(this.#code); }
  },
  isContext: () => false,
  runInNewContext() { throw new Error('vm: further contexts are not available in this sandbox; run another node process'); },
  createContext() { return vm.runInNewContext(); },
};

module.exports = {
  timersPromises,
  asyncHooks: { AsyncLocalStorage, AsyncResource, createHook: () => ({ enable() {}, disable() {} }), executionAsyncId: () => 0, triggerAsyncId: () => 0 },
  vm,
};
