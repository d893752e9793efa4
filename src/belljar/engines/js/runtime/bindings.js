// What Node's library gets from its C++ side, as far as what we load of it needs: our natives behind Node's names.
'use strict';

const { ArrayPrototypePush, ObjectDefineProperty, SafeMap } = primordials;
const { typeOf } = native;
const clock = require('belljar/clock');

module.exports = function fill(bindings, { privateSymbols, DOMException, require, put }) {
  const noop = () => {};
  const kinds = ('Proxy Date RegExp Promise MapIterator SetIterator Map Set WeakMap WeakSet ArrayBuffer ' +
    'SharedArrayBuffer DataView NumberObject BooleanObject StringObject SymbolObject BigIntObject NativeError ' +
    'AsyncFunction GeneratorObject ModuleNamespaceObject ArgumentsObject External').split(' ');
  const types = {};
  for (const kind of kinds) types[`is${kind}`] = (value) => typeOf(value) === kind;
  types.isGeneratorFunction = (value) => {
    const kind = typeOf(value);
    return kind === 'GeneratorFunction' || (kind === 'AsyncFunction' && primordials.FunctionPrototypeToString(value).includes('*'));
  };
  types.isAnyArrayBuffer = (value) => types.isArrayBuffer(value) || types.isSharedArrayBuffer(value);
  types.isBoxedPrimitive = (value) => {
    const kind = typeOf(value);
    return kind !== undefined && kind.endsWith('Object') && types[`is${kind}`] !== undefined &&
      kind !== 'GeneratorObject' && kind !== 'ModuleNamespaceObject' && kind !== 'ArgumentsObject';
  };
  types.isEventTarget = () => false;
  bindings.types = types;

  bindings.util = {
    constants: {
      kPending: 0, kFulfilled: 1, kRejected: 2, kExiting: 0, kExitCode: 1, kHasExitCode: 2,
      ALL_PROPERTIES: 0, ONLY_ENUMERABLE: 2, kDisallowCloneAndTransfer: 0, kTransferable: 1, kCloneable: 2,
    },
    privateSymbols,
    shouldAbortOnUncaughtToggle: [0],
    getOwnNonIndexProperties: native.ownNonIndex,
    getPromiseDetails: native.promiseDetails,
    getProxyDetails: (value, both = true) => {
      const details = native.proxyDetails(value);
      return details === undefined || both ? details : details[0];
    },
    previewEntries: native.previewEntries,
    getConstructorName: native.constructorName,
    getExternalValue: () => 0n,
    getCallerLocation: noop,
    getCallSites: () => [],
    constructSharedArrayBuffer: (size) => new SharedArrayBuffer(size),
    guessHandleType: () => 4,
    isInsideNodeModules: () => false,
    sleep: noop,
    toUSVString: (text) => primordials.StringPrototypeToWellFormed(`${text}`),
    isConstructor: (value) => {
      try { Reflect.construct(Object, [], value); return true; } catch { return false; }
    },
    defineLazyProperties(target, id, keys, enumerable = true) {
      for (const key of keys) {
        ObjectDefineProperty(target, key, {
          __proto__: null, enumerable, configurable: true,
          get: () => require(id)[key],
          set(value) {
            ObjectDefineProperty(target, key, { __proto__: null, value, writable: true, enumerable, configurable: true });
          },
        });
      }
    },
    WeakReference: class WeakReference {
      #ref;
      constructor(value) { this.#ref = new primordials.SafeWeakRef(value); }
      get() { return this.#ref.deref(); }
      incRef() {}
      decRef() {}
    },
    parseEnv: () => ({}),
    arrayBufferViewHasBuffer: () => true,
  };
  bindings.errors = {
    noSideEffectsToString: (value) => `${value}`,
    triggerUncaughtException(error) { throw error; },
    exitCodes: { kNoFailure: 0, kGenericUserError: 1 },
    setPrepareStackTraceCallback: noop, setGetSourceMapErrorSource: noop, setSourceMapsEnabled: noop,
    setMaybeCacheGeneratedSourceMap: noop, setEnhanceStackForFatalException: noop,
  };
  bindings.constants = { os: { signals: {}, errno: {}, priority: {}, dlopen: {}, UV_UDP_REUSEADDR: 4 }, fs: {}, trace: {}, crypto: {}, zlib: {} };
  bindings.config = { hasIntl: false, hasSmallICU: false, hasInspector: false, hasOpenSSL: false, fipsMode: false, hasTracing: false, hasNodeOptions: false, noBrowserGlobals: false, isDebugBuild: false, bits: 64, hasDtrace: false };
  bindings.symbols = privateSymbols;
  bindings.messaging = {
    DOMException,
    structuredClone: noop,
    MessageChannel: class MessageChannel {},
    setDeserializerCreateObjectFunction: noop,
    exposeLazyDOMExceptionProperty: noop,
  };
  bindings.string_decoder = { encodings: ['ascii', 'utf8', 'base64', 'utf16le', 'latin1', 'hex', 'buffer', 'base64url'] };
  bindings.uv = { errname: (number) => `E${number}`, getErrorMap: () => new SafeMap(), UV_EOF: -4095 };
  bindings.async_wrap = new Proxy({}, { get: (_, name) => (name === 'constants' ? {} : noop) });
  bindings.trace_events = { trace: noop, isTraceCategoryEnabled: () => false, setTraceCategoryStateUpdateHandler: noop, getCategoryEnabledBuffer: () => new Uint8Array(1), available: false };
  bindings.url_pattern = { URLPattern: class URLPattern {} };
  let channels = 0;
  bindings.diagnostics_channel = { subscribers: new Uint32Array(1024), linkNativeChannel: noop, getOrCreateChannelIndex: () => channels++ % 1024 };
  bindings.performance = {
    constants: { NODE_PERFORMANCE_MILESTONE_TIME_ORIGIN: 0, NODE_PERFORMANCE_MILESTONE_TIME_ORIGIN_TIMESTAMP: 1 },
    milestones: [0, 0],
    now: clock.now,
  };
  primordials.ObjectAssign(bindings, require('belljar/bytes'));

  const urlComponents = new Uint32Array(9);
  const invalid = (input, base) => {
    const { ERR_INVALID_URL } = require('internal/errors').codes;
    throw base === undefined ? new ERR_INVALID_URL(input) : new ERR_INVALID_URL(input, base);
  };
  bindings.url = {
    urlComponents,
    parse(input, base, raise) {
      const href = native.parseUrl(urlComponents, input, base);
      if (href === undefined && raise) invalid(input, base);
      return href;
    },
    canParse: (input, base) => native.parseUrl(new Uint32Array(9), input, base) !== undefined,
    update: (href, action, value) => native.updateUrl(urlComponents, href, action, value) ?? false,
    domainToASCII(domain) {
      return native.parseUrl(new Uint32Array(9), `ws://${domain}`, undefined) === undefined ? '' : new (require('internal/url').URL)(`ws://${domain}`).hostname;
    },
    domainToUnicode: (domain) => domain,
    getOrigin: (url) => new (require('internal/url').URL)(url).origin,
    pathToFileURL(path) {
      const href = native.parseUrl(urlComponents, 'file://', undefined);
      return native.updateUrl(urlComponents, href, 6, path);
    },
    format(href, hash, unicode, search, auth) {
      const url = new (require('internal/url').URL)(href);
      if (!hash) url.hash = '';
      if (!search) url.search = '';
      if (!auth) url.username = url.password = '';
      return url.href;
    },
  };
  put('internal/process/per_thread', { platform: 'linux', toggleTraceCategoryState: noop, refreshHrtimeBuffer: noop });
  const snapshot = { addDeserializeCallback: noop, addSerializeCallback: noop, isBuildingSnapshot: () => false };
  put('internal/v8/startup_snapshot', { ...snapshot, addAfterUserSerializeDeserializeSnapshot: noop, namespace: snapshot });
  put('internal/process/task_queues', { queueMicrotask: process.queueMicrotask, nextTick: process.nextTick, runNextTicks: noop });
  put('internal/source_map/source_map_cache', { getSourceMapsSupport: () => ({ enabled: false }), findSourceMap: noop });
  put('internal/worker/io', { structuredClone: (value) => native.clone(value, []) });
  put('timers', require('belljar/timers').node);
};
