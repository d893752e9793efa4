// Bindings that are little more than the engine itself, or nothing at all in a sandbox.
'use strict';

const { Float64Array, ObjectAssign, ObjectKeys, SafeMap, Uint32Array, Uint8Array } = primordials;
const ask = require('belljar/ask');
const { isolateSymbols, privateSymbols } = native.realm;
const { types, util } = require('belljar/inspection');

const noop = () => {};
const values = (name) => ask('describe', name).values;

const config = ObjectAssign(values('config'), {
  hasInspector: false, hasTracing: false, fipsMode: false, getDefaultLocale: () => 'en-US',
});

// Settings of Node's diagnostic report: each with its getter and setter.
const report = {};
for (const { 0: get, 1: set, 2: first } of [
  ['getCompact', 'setCompact', false], ['getExcludeNetwork', 'setExcludeNetwork', false], ['getExcludeEnv', 'setExcludeEnv', false],
  ['getDirectory', 'setDirectory', ''], ['getFilename', 'setFilename', ''], ['getSignal', 'setSignal', 'SIGUSR2'],
  ['shouldReportOnFatalError', 'setReportOnFatalError', false], ['shouldReportOnSignal', 'setReportOnSignal', false],
  ['shouldReportOnUncaughtException', 'setReportOnUncaughtException', false],
]) {
  let value = first;
  report[get] = () => value;
  report[set] = (given) => { value = given; };
}

const milestones = new Float64Array(16);
let origin = 0;

const heap = new Float64Array(14);
const spaces = new Float64Array(5);

module.exports = {
  async_context_frame: {
    getContinuationPreservedEmbedderData: native.getContinuation,
    setContinuationPreservedEmbedderData: native.setContinuation,
  },
  config,
  constants: values('constants'),
  diagnostics_channel: {
    subscribers: new Uint32Array(1024),
    linkNativeChannel: noop,
    getOrCreateChannelIndex: (() => { let count = 0; return () => count++ % 1024; })(),
  },
  fs_event_wrap: {},
  heap_utils: {},
  inspector: { isEnabled: () => false, console: {}, setConsoleExtensionInstaller: noop, registerAsyncHook: noop },
  mksnapshot: {
    setSerializeCallback: noop, setDeserializeCallback: noop, setDeserializeMainFunction: noop,
    isBuildingSnapshotBuffer: new Uint8Array(1), anonymousMainPath: '__node_anonymous_main',
  },
  performance: {
    milestones,
    now: () => native.now() - origin,
    loopIdleTime: () => 0,
    markBootstrapComplete: noop,
    setupObservers: noop,
    installGarbageCollectionTracking: noop,
    removeGarbageCollectionTracking: noop,
    observerCounts: new Uint32Array(8),
    uvMetricsInfo: () => [0, 0, 0],
  },
  permission: { has: () => true },
  report, // nothing is ever reported, but one may ask not to
  sea: { isSea: () => false, isExperimentalSeaWarningNeeded: () => false },
  symbols: isolateSymbols,
  trace_events: {
    trace: noop, isTraceCategoryEnabled: () => false, setTraceCategoryStateUpdateHandler: noop,
    getCategoryEnabledBuffer: () => new Uint8Array(1), getEnabledCategories: noop, available: false,
  },
  types,
  url: require('belljar/url_binding'),
  util: ObjectAssign(util((id) => native.realm.require(id), privateSymbols), {
    guessHandleType: (fd) => require('belljar/node/streams').guess(fd),
    parseEnv: (text) => ask('call', 'util', 'parseEnv', text),
    sleep: (milliseconds) => require('belljar/kernel').call('sleep', milliseconds * 1e6),
    getCallSites: (count) => require('belljar/node/errors').callSites(count),
    getCallerLocation() {
      const site = require('belljar/node/errors').callSites(2)[1];
      return site && [site.lineNumber, site.columnNumber, site.scriptName];
    },
    isInsideNodeModules: () => require('belljar/node/errors').callSites(64).some(({ scriptName }) =>
      primordials.RegExpPrototypeExec(/[/\\]node_modules[/\\]/, scriptName) !== null),
  }),
  uv: {
    errname: (number) => ask('call', 'uv', 'errname', number),
    getErrorMap: () => new SafeMap(ask('call', 'uv', 'getErrorMap')),
    getErrorMessage: (number) => ask('call', 'uv', 'getErrorMessage', number),
  },
  v8: {
    heapStatisticsBuffer: heap,
    updateHeapStatisticsBuffer() {
      const { 0: total, 1: used, 2: limit, 3: malloced, 4: external, 5: buffers } = native.heap();
      const values = [total, 0, total, limit - used, used, limit, malloced, malloced, 0, 1, 0, 0, 0, external + buffers];
      for (let i = 0; i < heap.length; i++) heap[i] = values[i];
    },
    heapSpaceStatisticsBuffer: spaces,
    updateHeapSpaceStatisticsBuffer: noop,
    setFlagsFromString: noop,
    setHeapSnapshotNearHeapLimit: noop,
    cachedDataVersionTag: () => 0,
    isStringOneByteRepresentation: (text) => primordials.RegExpPrototypeExec(/[^\0-\xff]/, text) === null,
  },
  serdes: {},
  wasm_web_api: { setImplementation: noop },
  worker: {
    isMainThread: true, isInternalThread: false, ownsProcessState: true, threadId: 0, threadName: 'main',
    resourceLimits: new Float64Array(4), getEnvMessagePort: noop,
    Worker: class Worker {
      constructor() {
        const { ERR_WORKER_INIT_FAILED } = require('internal/errors').codes;
        throw new ERR_WORKER_INIT_FAILED('there are no threads in this sandbox; start another node process (child_process)');
      }
    },
  },
};

// In a new process: time begins.
module.exports.begin = () => {
  const { constants } = internalBinding('performance');
  for (const name of ObjectKeys(constants)) {
    if (primordials.StringPrototypeStartsWith(name, 'NODE_PERFORMANCE_MILESTONE')) milestones[constants[name]] = native.now() * 1e6;
  }
  milestones[constants.NODE_PERFORMANCE_MILESTONE_TIME_ORIGIN_TIMESTAMP] = primordials.DateNow() * 1e3;
  origin = native.now();
};
