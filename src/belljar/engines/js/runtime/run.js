// One run after another: code in, host calls and a result out. The messages are those of belljar/api/dialogue.py.
'use strict';

const {
  ArrayPrototypeFilter, ArrayPrototypeJoin, Error, JSONParse, JSONStringify, ObjectDefineProperty, ObjectKeys,
  Promise, PromisePrototypeThen, SafeMap, String, StringPrototypeIncludes, StringPrototypeSlice,
  StringPrototypeSplit, SyntaxError, Uint8Array, globalThis,
} = primordials;
const { NotPlain, dumps, untagged } = require('belljar/values');
const timers = require('belljar/timers');
const random = require('belljar/random');
const repl = require('belljar/repl');
const clock = require('belljar/clock');
const state = require('belljar/state');
const { setTransport } = require('belljar/fetch');
const { module: runModule, script: runScript } = require('belljar/code');
const ask = require('belljar/ask');

const BRIDGE = 4, UNSETTLED = 5;
const TEXT_MAX = 64 << 10;
const errors = { __proto__: null };
for (const name of ['TypeError', 'RangeError', 'SyntaxError', 'ReferenceError', 'URIError']) errors[name] = primordials[name];

// What the owner is told when something ends a run: by guest.h's numbers, then ours.
const limits = ['engine', 'cpu_ms', 'wall_ms', 'memory_mb', 'max_bridge_bytes', 'unsettled'];
for (let why = 0; why < limits.length; why++) {
  const body = native.decode(JSONStringify({ op: 'limit', limit: limits[why] }), 1);
  const frame = new Uint8Array(5 + body.length);
  frame[0] = body.length;
  frame[4] = 0x4d; // 'M', a message
  native.copy(body, frame, 5, 0, body.length);
  native.setFinalMessage(why, frame);
}

const pending = new SafeMap(); // host calls
const unhandled = new SafeMap(); // rejected promises
let calls = 0;
let number = 0; // of the run under way, or the last
let run; // { code, mode, file, settled, failed, value, exports }

function hostFunction(name) {
  const { [name]: stub } = { [name](...values) { return callHost(name, values); } };
  state.know(name, stub);
  return stub;
}

function callHost(name, values) {
  return new Promise((resolve, reject) => {
    let args = '';
    for (let i = 0; i < values.length; i++) args += (i > 0 ? ',' : '') + dumps(values[i], `${name}() argument ${i + 1}`);
    const id = ++calls;
    const text = `{"op":"call","run":${number},"id":${id},"name":${JSONStringify(name)},"args":[${args}],"kwargs":{}}`;
    if (run !== undefined && text.length > run.bridgeBytes) native.stop(BRIDGE);
    pending.set(id, { resolve, reject });
    native.send(text);
  });
}

function answer({ id, value, error }) {
  const call = pending.get(id);
  if (call === undefined) return;
  pending.delete(id);
  if (error === undefined) return call.resolve(untagged(value));
  const made = new (errors[error.name] ?? Error)(error.message);
  if (made.name !== error.name) {
    ObjectDefineProperty(made, 'name', { __proto__: null, value: error.name, writable: true, configurable: true });
  }
  call.reject(made);
}

function define(name, value) {
  ObjectDefineProperty(globalThis, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
}

// Compiles and starts some code; what it gives is the promise of its value. Code that is no JavaScript may be
// TypeScript: only then is it stripped.
function start(code, compiled) {
  switch (run.mode) {
    case 'repl':
      state.remember(code);
      return repl.start(code, run.file, compiled);
    case 'save': case 'load':
      run.namespace = run.mode === 'save' ? state.save(run.values) : state.load(run.values);
      return undefined;
    case 'prefix':
      try {
        return runScript(code, run.file, compiled);
      } catch (error) {
        if (run.compiled || !(error instanceof SyntaxError)) throw error;
      } // an `await`, `import` or `export`: a module
  }
  const [namespace, promise] = runModule(code, run.file, compiled);
  run.namespace = namespace;
  return promise;
}

function begin(message) {
  const { code, mode, file, limits } = message;
  number = message.run;
  run = { mode, file, compiled: false, settled: false, failed: undefined, bridgeBytes: limits.max_bridge_bytes };
  for (const name of message.globals) {
    if (name === 'fetch') setTransport(hostFunction(name));
    else define(name, hostFunction(name));
  }
  const values = untagged(message.values);
  if (mode === 'save' || mode === 'load') run.values = values;
  else for (const name of ObjectKeys(values)) define(name, values[name]);
  if (message.wasm) native.allowWasm();
  else if (mode === 'prefix') delete globalThis.WebAssembly;
  if (message !== WARM_UP) native.limits(limits.cpu_ms, limits.wall_ms, limits.memory_mb);
  const mine = run;
  const compiled = () => { mine.compiled = true; };
  let started;
  try {
    try {
      started = start(code, compiled);
    } catch (error) {
      const stripped = run.compiled || !(error instanceof SyntaxError) ? undefined : ask('strip', code);
      if (stripped === undefined || stripped === code) throw error;
      started = start(stripped, compiled);
    }
  } catch (error) {
    return fail(error, run.compiled ? 'RUNTIME_ERROR' : 'SYNTAX_ERROR');
  }
  PromisePrototypeThen(Promise.resolve(started), (value) => { mine.settled = true; mine.value = value; }, fail);
}

function fail(error, code = 'RUNTIME_ERROR') {
  run.failed ??= { code, error };
}

// What an exception says of itself. Reading it may run the guest's own code, which may throw again.
function describe({ code, error }) {
  const told = { code, name: 'Error', message: '', stack: '' };
  try {
    if (error instanceof Error || typeof error === 'object' && error !== null && 'message' in error) {
      told.name = cut(error.name);
      told.message = cut(error.message);
      const lines = StringPrototypeSplit(cut(error.stack ?? ''), '\n');
      told.stack = ArrayPrototypeJoin(ArrayPrototypeFilter(lines, (line) => !StringPrototypeIncludes(line, 'node:belljar/')), '\n');
    } else {
      told.name = typeof error;
      told.message = cut(require('internal/util/inspect').inspect(error));
    }
  } catch {
    told.message ||= 'an exception that can not be described';
  }
  return told;
}

function cut(text) {
  return StringPrototypeSlice(String(text), 0, TEXT_MAX);
}

// A run of nothing, which leaves nothing and says nothing.
const WARM_UP = {
  op: 'run', run: 0, code: 'await 0; export default { a: 1 }', mode: 'module', file: 'run.mjs', globals: [], values: {},
  limits: { cpu_ms: 0, wall_ms: 0, memory_mb: 1, max_bridge_bytes: 1 },
};

function finish() {
  const { failed, namespace, mode, value } = run;
  let text;
  if (failed !== undefined) {
    text = `{"op":"done","run":${number},"ok":false,"error":${JSONStringify(describe(failed))}}`;
  } else {
    const exports = [], unsent = { __proto__: null };
    const given = namespace ?? (mode === 'repl' && value !== undefined ? { __proto__: null, default: value } : {});
    for (const name of mode === 'prefix' ? [] : ObjectKeys(given)) {
      try {
        exports.push(`${JSONStringify(name)}:${dumps(given[name], name)}`);
      } catch (error) {
        if (!(error instanceof NotPlain)) {
          run.failed = { code: 'RUNTIME_ERROR', error };
          return finish();
        }
        unsent[name] = error.message;
      }
    }
    text = `{"op":"done","run":${number},"ok":true,"exports":{${ArrayPrototypeJoin(exports, ',')}},"unsent":${JSONStringify(unsent)}}`;
  }
  const { silent } = run;
  run = undefined;
  pending.clear();
  unhandled.clear();
  timers.reset();
  if (!silent) native.send(text);
}

module.exports = {
  __proto__: null,
  message(text) {
    const message = JSONParse(text);
    if (message.op === 'run') begin(message);
    else if (message.op === 'answer') answer(message);
  },
  // After every macrotask and the microtasks that follow it.
  turn() {
    if (run === undefined) return -1;
    for (const { 1: reason } of unhandled) {
      fail(reason);
      break;
    }
    if (run.failed !== undefined || (run.settled && run.mode === 'prefix')) return finish(), -1;
    const wait = timers.next();
    if (wait <= 0) {
      try {
        timers.fire();
      } catch (error) {
        fail(error);
      }
      return 0;
    }
    if (pending.size === 0) {
      if (run.settled && timers.referenced === 0) return finish(), -1;
      if (wait === Infinity) native.stop(UNSETTLED); // it would only wait for its deadline
    }
    return wait;
  },
  warmUp() {
    begin(WARM_UP);
    run.silent = true;
  },
  rejection(promise, reason, fresh) {
    if (fresh) unhandled.set(promise, reason);
    else unhandled.delete(promise);
  },
  // In a new process.
  reseed() {
    random.reseed();
    clock.restart();
  },
  // In a copy of a session, which keeps its time.
  redraw: random.reseed,
};
