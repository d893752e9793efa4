// `process`: the bindings process_methods and credentials, and what START says of this process.
'use strict';

const { BigInt, BigUint64Array, Error, MathRound, ObjectDefineProperty, Proxy, ReflectOwnKeys, String, Uint32Array } = primordials;
const ask = require('belljar/ask');
const kernel = require('belljar/kernel');
const { failure } = require('belljar/node/failure');
const { privateSymbols } = native.realm;
const { encode } = native;

const UTF8 = 1, END = 2 ** 53, AT_FDCWD = -100;
const text = (bytes) => encode(bytes, UTF8, 0, END);

const environment = { __proto__: null };
const hidden = { __proto__: null, writable: true, enumerable: true, configurable: true };
const env = new Proxy({}, {
  __proto__: null,
  get: (target, name) => (typeof name === 'string' && name in environment ? environment[name] : target[name]),
  set(_target, name, value) {
    if (typeof name === 'symbol' || typeof value === 'symbol') throw new primordials.TypeError('Cannot convert a Symbol value to a string');
    environment[name] = String(value);
    return true;
  },
  has: (target, name) => (typeof name === 'string' && name in environment) || name in target,
  deleteProperty(_target, name) { delete environment[name]; return true; },
  ownKeys: () => ReflectOwnKeys(environment),
  getOwnPropertyDescriptor: (_target, name) => (typeof name === 'string' && name in environment ? { ...hidden, value: environment[name] } : undefined),
  defineProperty(_target, name, descriptor) {
    if ('value' in descriptor) { environment[name] = String(descriptor.value); return true; }
    throw new (require('internal/errors').codes.ERR_INVALID_OBJECT_DEFINE_PROPERTY)("'process.env' does not accept an accessor(getter/setter) descriptor");
  },
});

const { version, versions, arch, release } = ask('process');
const put = (name, value) => ObjectDefineProperty(process, name, { __proto__: null, value, enumerable: true, writable: false, configurable: false });
put('version', version);
put('versions', primordials.ObjectFreeze(versions));
put('arch', arch);
put('platform', 'linux');
put('release', release);
process[privateSymbols.exit_info_private_symbol] = new primordials.Int32Array(3);
process.env = env;

const given = { argv: ['node'], flags: [], pid: 0, ppid: 0, uid: 0, gid: 0, umask: 0o22, executable: '/usr/bin/node', began: 0 };
let title = 'node';
let end = () => {}; // (status): ends the process

const hrtimeBuffer = new Uint32Array(3);
const hrtimeBigints = new BigUint64Array(hrtimeBuffer.buffer, 0, 1);

const guard = (syscall, run, ...paths) => {
  try {
    return run();
  } catch (error) {
    throw failure(error, syscall, ...paths);
  }
};

// What of this process is its own, as far as the engine knows.
const rss = () => { const { 0: total, 3: malloced, 5: buffers } = native.heap(); return total + malloced + buffers; };

const process_methods = {
  hrtimeBuffer,
  hrtime() {
    const nanoseconds = MathRound(native.now() * 1e6), seconds = primordials.MathFloor(nanoseconds / 1e9);
    hrtimeBuffer[0] = seconds / 2 ** 32;
    hrtimeBuffer[1] = seconds >>> 0;
    hrtimeBuffer[2] = nanoseconds % 1e9;
  },
  hrtimeBigInt() { hrtimeBigints[0] = BigInt(MathRound(native.now() * 1e6)); },
  uptime: () => (native.now() - given.began) / 1e3,
  cpuUsage(values) {
    values[0] = native.cpuTime() / 1e3;
    values[1] = 0;
  },
  threadCpuUsage: (values) => process_methods.cpuUsage(values),
  resourceUsage(values) {
    values.fill(0);
    values[0] = native.cpuTime() / 1e3;
    values[2] = rss() / 1024;
  },
  memoryUsage(values) {
    const { 0: total, 1: used, 4: external, 5: buffers } = native.heap();
    values[0] = rss();
    values[1] = total;
    values[2] = used;
    values[3] = external + buffers;
    values[4] = buffers;
  },
  rss,
  constrainedMemory: () => 0,
  availableMemory: () => native.heap()[2] - native.heap()[1],
  cwd: () => guard('uv_cwd', () => text(kernel.call('getcwd'))),
  chdir(path) {
    const from = process.cwd();
    guard('chdir', () => kernel.call('chdir', AT_FDCWD, path), from, path);
  },
  umask(mask) {
    const old = given.umask;
    if (mask !== undefined) {
      kernel.call('umask', mask);
      given.umask = mask;
    }
    return old;
  },
  _kill(pid, signal) {
    try {
      kernel.call('kill', pid, signal);
      return 0;
    } catch (error) {
      return -error.errno;
    }
  },
  abort() { kernel.call('kill', given.pid, 6); },
  reallyExit(code) { end(code ?? 0); },
  _rawDebug(line) { kernel.call('write', 2, `${line}\n`); },
  _getActiveRequests: () => [],
  _getActiveHandles: () => [],
  getActiveResourcesInfo: () => [],
  setEmitWarningSync() {},
  loadEnvFile(path = '.env') {
    const parsed = ask('call', 'util', 'parseEnv', guard('open', () => text(kernel.call('read_file', AT_FDCWD, path)), path));
    for (const name of primordials.ObjectKeys(parsed)) if (!(name in environment)) environment[name] = parsed[name];
  },
  dlopen(module, file) {
    const error = new Error(`${file}: a native addon, which can't run in a sandbox: use a package in JavaScript or WebAssembly`);
    error.code = 'ERR_DLOPEN_FAILED';
    throw error;
  },
  patchProcessObject(target) {
    ObjectDefineProperty(target, 'title', {
      __proto__: null, enumerable: true, configurable: true, get: () => title, set(value) { title = String(value); },
    });
    target.argv = [...given.argv];
    target.execArgv = [...given.flags];
    for (const name of ['pid', 'ppid']) {
      ObjectDefineProperty(target, name, { __proto__: null, value: given[name], enumerable: true, configurable: true, writable: true });
    }
    target.execPath = given.executable;
    target.debugPort = 9229;
  },
};

const credentials = {
  safeGetenv: (name) => environment[name],
  getTempDir: () => (environment.TMPDIR ?? environment.TMP ?? environment.TEMP ?? '/tmp').replace(/(.)\/$/, '$1'),
  implementsPosixCredentials: true,
  getuid: () => given.uid, geteuid: () => given.uid, getgid: () => given.gid, getegid: () => given.gid, getgroups: () => [given.gid],
};
for (const name of ['initgroups', 'setegid', 'seteuid', 'setgid', 'setuid', 'setgroups']) {
  credentials[name] = () => { throw failure({ errno: 1 }, name); };
}

module.exports = {
  process_methods, credentials, given,
  environment,
  setEnd(handler) { end = handler; },
  begin({ argv, env: lines, options, numbers }) {
    for (const line of lines) {
      const at = line.indexOf('=');
      if (at > 0) environment[line.slice(0, at)] = line.slice(at + 1);
    }
    const { 0: pid, 1: ppid, 2: uid, 3: gid, 4: umask } = numbers;
    primordials.ObjectAssign(given, { argv, pid, ppid, uid, gid, umask, began: native.now() });
    if (options.executable) given.executable = options.executable;
  },
};
