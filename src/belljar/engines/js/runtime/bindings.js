// What Node's library gets from its C++ side, as far as what we load of it needs: our natives behind Node's names.
'use strict';

const { ReflectApply, SafeMap } = primordials;
const clock = require('belljar/clock');
const { clone } = require('belljar/structured_clone');
const { types, util } = require('belljar/inspection');

class AsyncResource {
  runInAsyncScope(callback, self, ...values) { return ReflectApply(callback, self, values); }
  emitDestroy() { return this; }
  static bind(callback) { return callback; }
}

module.exports = function fill(bindings, { privateSymbols, isolateSymbols = privateSymbols, DOMException, require, put }) {
  const noop = () => {};
  bindings.types = types;
  bindings.util = util(require, privateSymbols);
  bindings.errors = {
    noSideEffectsToString: (value) => `${value}`,
    triggerUncaughtException(error) { throw error; },
    exitCodes: { kNoFailure: 0, kGenericUserError: 1 },
    setPrepareStackTraceCallback: noop, setGetSourceMapErrorSource: noop, setSourceMapsEnabled: noop,
    setMaybeCacheGeneratedSourceMap: noop, setEnhanceStackForFatalException: noop,
  };
  bindings.constants = {
    os: { signals: {}, errno: {}, priority: {}, dlopen: {}, UV_UDP_REUSEADDR: 4 }, fs: {}, trace: {}, crypto: {}, zlib: {},
  };
  bindings.config = {
    hasIntl: false, hasSmallICU: false, hasInspector: false, hasOpenSSL: false, fipsMode: false, hasTracing: false,
    hasNodeOptions: false, noBrowserGlobals: false, isDebugBuild: false, bits: 64, hasDtrace: false,
  };
  bindings.symbols = isolateSymbols;
  bindings.messaging = {
    DOMException,
    structuredClone: noop,
    MessageChannel: class MessageChannel {},
    setDeserializerCreateObjectFunction: noop,
    exposeLazyDOMExceptionProperty: noop,
  };
  bindings.string_decoder = {
    encodings: ['ascii', 'utf8', 'base64', 'utf16le', 'latin1', 'hex', 'buffer', 'base64url'],
  };
  bindings.uv = { errname: (number) => `E${number}`, getErrorMap: () => new SafeMap(), UV_EOF: -4095 };
  bindings.async_wrap = new Proxy({}, { get: (_, name) => (name === 'constants' ? {} : noop) });
  bindings.trace_events = {
    trace: noop, isTraceCategoryEnabled: () => false, setTraceCategoryStateUpdateHandler: noop,
    getCategoryEnabledBuffer: () => new Uint8Array(1), available: false,
  };
  bindings.url_pattern = { URLPattern: class URLPattern {} };
  let channels = 0;
  bindings.diagnostics_channel = {
    subscribers: new Uint32Array(1024), linkNativeChannel: noop, getOrCreateChannelIndex: () => channels++ % 1024,
  };
  bindings.performance = {
    constants: { NODE_PERFORMANCE_MILESTONE_TIME_ORIGIN: 0, NODE_PERFORMANCE_MILESTONE_TIME_ORIGIN_TIMESTAMP: 1 },
    milestones: [0, 0],
    now: clock.now,
  };
  primordials.ObjectAssign(bindings, require('belljar/bytes'));

  bindings.url = require('belljar/url_binding');
  put('internal/async_hooks', {
    defaultTriggerAsyncIdScope: (_id, run, ...values) => run(...values), getDefaultTriggerAsyncId: () => 0, newAsyncId: () => 0,
    symbols: { owner_symbol: Symbol('owner'), async_id_symbol: Symbol('async id'), trigger_async_id_symbol: Symbol('trigger') },
    initHooksExist: () => false, emitInit: noop, emitBefore: noop, emitAfter: noop, emitDestroy: noop,
  });

  put('internal/process/per_thread', { platform: 'linux', toggleTraceCategoryState: noop, refreshHrtimeBuffer: noop });
  const snapshot = { addDeserializeCallback: noop, addSerializeCallback: noop, isBuildingSnapshot: () => false };
  put('internal/v8/startup_snapshot', { ...snapshot, addAfterUserSerializeDeserializeSnapshot: noop, namespace: snapshot });
  put('internal/process/task_queues', { queueMicrotask: process.queueMicrotask, nextTick: process.nextTick, runNextTicks: noop });
  put('internal/source_map/source_map_cache', { getSourceMapsSupport: () => ({ enabled: false }), findSourceMap: noop });
  put('internal/worker/io', { structuredClone: (value) => clone(value, []) });
  put('timers', require('belljar/timers').node);
  put('string_decoder', require('belljar/string_decoder'));
  put('async_hooks', { AsyncResource, AsyncLocalStorage: class AsyncLocalStorage {} });
};
