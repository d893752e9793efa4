// The bindings of Node's library by name: ours, filled up with the plain values of Node's own. What is in neither can be
// seen, as in Node, but says that it is not here when it is used.
'use strict';

const { Error, ObjectKeys } = primordials;
const ask = require('belljar/ask');
const { remoteClass, remoteFunction } = require('belljar/node/remote');

const OURS = {
  __proto__: null,
  async_context_frame: 'engine', async_wrap: 'async', blob: 'bytes', buffer: 'bytes', builtins: 'code', cares_wrap: 'dns',
  config: 'engine', constants: 'engine', contextify: 'code', credentials: 'process', crypto: 'crypto', diagnostics_channel: 'engine',
  encoding_binding: 'bytes', errors: 'errors', fs: 'fs', fs_dir: 'fs_dir', fs_event_wrap: 'engine', heap_utils: 'engine',
  http_parser: 'http_parser', inspector: 'engine', messaging: 'messaging', mksnapshot: 'engine', module_wrap: 'module_wrap',
  modules: 'packages', options: 'options', os: 'os', performance: 'engine', permission: 'engine', pipe_wrap: 'streams',
  process_methods: 'process', process_wrap: 'children', report: 'engine', sea: 'engine', serdes: 'engine',
  signal_wrap: 'signals', spawn_sync: 'children', stream_wrap: 'streams', string_decoder: 'string_decoder',
  symbols: 'engine', task_queue: 'loop', tcp_wrap: 'tcp', timers: 'loop', trace_events: 'engine', tty_wrap: 'streams',
  types: 'engine', url: 'engine', util: 'engine', uv: 'engine', v8: 'engine', wasm_web_api: 'engine', worker: 'engine', zlib: 'zlib',
};
// Whatever ours has not got of these is done in Node's own realm.
const REMOTE = { __proto__: null, block_list: true, cjs_lexer: true, crypto: true, icu: true, performance: true, serdes: true, url_pattern: true };

// A function or class of Node's C++ side that is not here.
function absent(binding, name) {
  const text = `${name} of Node's ${binding} is not available in this sandbox`;
  return { [name]: function() {
    const error = new Error(text);
    error.code = 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM';
    throw error;
  } }[name];
}

function bind(name) {
  const { values, functions } = ask('describe', name);
  const file = OURS[name];
  const ours = file === undefined ? {} : load(file)[name];
  for (const { 0: key, 1: methods } of functions) {
    if (key in ours) continue;
    if (REMOTE[name] !== true) values[key] = absent(name, key);
    else values[key] = methods === undefined ? remoteFunction(name, key) : remoteClass(name, key, methods);
  }
  for (const key of ObjectKeys(values)) if (!(key in ours)) ours[key] = values[key];
  return ours;
}

const load = (file) => require(`belljar/node/${file}`);

module.exports = { bind };
