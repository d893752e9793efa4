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
  // Of `node` alone: files.
  bindings.constants.fs = {
    UV_FS_SYMLINK_DIR: 1, UV_FS_SYMLINK_JUNCTION: 2, O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, UV_DIRENT_UNKNOWN: 0,
    UV_DIRENT_FILE: 1, UV_DIRENT_DIR: 2, UV_DIRENT_LINK: 3, UV_DIRENT_FIFO: 4, UV_DIRENT_SOCKET: 5, UV_DIRENT_CHAR: 6,
    UV_DIRENT_BLOCK: 7, S_IFMT: 0o170000, S_IFREG: 0o100000, S_IFDIR: 0o040000, S_IFCHR: 0o020000, S_IFBLK: 0o060000,
    S_IFIFO: 0o010000, S_IFLNK: 0o120000, S_IFSOCK: 0o140000, O_CREAT: 0o100, O_EXCL: 0o200, UV_FS_O_FILEMAP: 0,
    O_NOCTTY: 0o400, O_TRUNC: 0o1000, O_APPEND: 0o2000, O_DIRECTORY: 0o200000, O_NOATIME: 0o1000000, O_NOFOLLOW: 0o400000,
    O_SYNC: 0o4010000, O_DSYNC: 0o10000, O_DIRECT: 0o40000, O_NONBLOCK: 0o4000, S_IRWXU: 0o700, S_IRUSR: 0o400,
    S_IWUSR: 0o200, S_IXUSR: 0o100, S_IRWXG: 0o70, S_IRGRP: 0o40, S_IWGRP: 0o20, S_IXGRP: 0o10, S_IRWXO: 0o7, S_IROTH: 0o4,
    S_IWOTH: 0o2, S_IXOTH: 0o1, F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, UV_FS_COPYFILE_EXCL: 1, COPYFILE_EXCL: 1,
    UV_FS_COPYFILE_FICLONE: 2, COPYFILE_FICLONE: 2, UV_FS_COPYFILE_FICLONE_FORCE: 4, COPYFILE_FICLONE_FORCE: 4,
  };
  ObjectDefineProperty(bindings, 'fs', { __proto__: null, get: () => require('belljar/node_fs') });
  bindings.fs_dir = { opendir: noop };
  bindings.permission = { has: () => true };
  put('internal/async_hooks', {
    defaultTriggerAsyncIdScope: (_id, run, ...values) => run(...values), getDefaultTriggerAsyncId: () => 0, newAsyncId: () => 0,
    symbols: { owner_symbol: Symbol('owner'), async_id_symbol: Symbol('async id'), trigger_async_id_symbol: Symbol('trigger') },
    initHooksExist: () => false, emitInit: noop, emitBefore: noop, emitAfter: noop, emitDestroy: noop,
  });
  bindings.fs_event_wrap = { FSEvent: class FSEvent {} };

  put('internal/process/per_thread', { platform: 'linux', toggleTraceCategoryState: noop, refreshHrtimeBuffer: noop });
  const snapshot = { addDeserializeCallback: noop, addSerializeCallback: noop, isBuildingSnapshot: () => false };
  put('internal/v8/startup_snapshot', { ...snapshot, addAfterUserSerializeDeserializeSnapshot: noop, namespace: snapshot });
  put('internal/process/task_queues', { queueMicrotask: process.queueMicrotask, nextTick: process.nextTick, runNextTicks: noop });
  put('internal/source_map/source_map_cache', { getSourceMapsSupport: () => ({ enabled: false }), findSourceMap: noop });
  put('internal/worker/io', { structuredClone: (value) => native.clone(value, []) });
  put('timers', require('belljar/timers').node);
  put('string_decoder', require('belljar/string_decoder'));
  put('os', require('belljar/node_os'));
  put('async_hooks', require('belljar/node_extras').asyncHooks);
};
