// `process`, as a Node program knows it.
'use strict';

const { BigInt, Number, ObjectDefineProperty, ObjectSetPrototypeOf, Proxy, ReflectOwnKeys, String } = primordials;
const kernel = require('belljar/kernel');
const { failure } = require('belljar/node/failure');
const EventEmitter = require('events');
const { Buffer } = require('buffer');

const environment = { __proto__: null };
const env = new Proxy(environment, {
  get: (target, name) => (typeof name === 'string' ? target[name] : undefined),
  set(target, name, value) { target[name] = String(value); return true; },
  has: (target, name) => name in target,
  ownKeys: (target) => ReflectOwnKeys(target),
});

function write(fd, data) {
  let left = typeof data === 'string' ? Buffer.from(data) : data;
  while (left.length > 0) left = left.subarray(kernel.call('write', fd, left.subarray(0, 1 << 20)));
}

function output(fd, tty) {
  const { Writable } = require('stream');
  const stream = new Writable({
    decodeStrings: true,
    write(chunk, _encoding, callback) {
      try {
        write(fd, chunk);
      } catch (error) {
        return callback(failure(error, 'write'));
      }
      callback();
    },
  });
  stream.fd = fd;
  stream._type = tty ? 'tty' : 'pipe';
  if (tty) {
    const { 0: rows, 1: columns } = kernel.call('winsize', fd);
    Object.assign(stream, { isTTY: true, rows, columns, getColorDepth: () => 4, hasColors: () => true, getWindowSize: () => [columns, rows] });
  }
  stream.destroySoon = stream.destroy;
  stream._destroy = (error, callback) => callback(error);
  return stream;
}

function input(tty) {
  const { Readable } = require('stream');
  const stream = new Readable({
    highWaterMark: 64 << 10,
    read(size) {
      kernel.background('read', [0, size], (error, data) => {
        if (error !== null) return this.destroy(failure(error, 'read'));
        this.push(data.length === 0 ? null : Buffer.from(data));
      });
    },
  });
  stream.fd = 0;
  if (tty) Object.assign(stream, { isTTY: true, isRaw: false, setRawMode() { return this; } });
  stream.ref = stream.unref = () => stream;
  return stream;
}

const lazily = (target, name, make) => ObjectDefineProperty(target, name, {
  __proto__: null, configurable: true, enumerable: true,
  get() {
    const value = make();
    ObjectDefineProperty(target, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
    return value;
  },
});

// Turns what Node's library thinks of as the process into a whole one.
function set_up({ argv, env: given, cwd, options, numbers }, exit) {
  for (const item of given) {
    const at = item.indexOf('=');
    if (at > 0) environment[item.slice(0, at)] = item.slice(at + 1);
  }
  const { 0: pid, 1: ppid, 2: uid, 3: gid, 5: ttys } = numbers;
  let directory = cwd;
  let mask = numbers[4];
  const began = native.now();
  ObjectSetPrototypeOf(process, ObjectSetPrototypeOf({ constructor: { name: 'process' } }, EventEmitter.prototype));
  for (const name of ['on', 'emitWarning']) delete process[name];
  EventEmitter.call(process);
  Object.assign(process, {
    title: 'node', pid, ppid, env, argv0: argv[0], execArgv: [], execPath: options.executable || '/usr/bin/node',
    exitCode: undefined, stdioTTY: ttys,
    cwd: () => directory,
    chdir(path) {
      try {
        kernel.call('chdir', -100, path);
      } catch (error) {
        throw failure(error, `chdir '${directory}' ->`, path);
      }
      directory = Buffer.from(kernel.call('getcwd')).toString();
    },
    umask(value) {
      const old = mask;
      if (value !== undefined) { mask = typeof value === 'string' ? parseInt(value, 8) : value; kernel.call('umask', mask); }
      return old;
    },
    exit(code) {
      if (code !== undefined) process.exitCode = code;
      if (!process._exiting) {
        process._exiting = true;
        process.emit('exit', process.exitCode || 0);
      }
      exit(Number(process.exitCode) || 0);
    },
    reallyExit: exit,
    abort() { kernel.call('kill', pid, 6); },
    kill(target, signal = 'SIGTERM') {
      const { SIGNALS } = require('belljar/node_os');
      const number = typeof signal === 'number' ? signal : SIGNALS[signal];
      if (number === undefined) throw new TypeError(`Unknown signal: ${signal}`);
      try {
        kernel.call('kill', target, number);
      } catch (error) {
        throw failure(error, 'kill');
      }
      return true;
    },
    getuid: () => uid, geteuid: () => uid, getgid: () => gid, getegid: () => gid, getgroups: () => [gid],
    uptime: () => (native.now() - began) / 1e3,
    hrtime: Object.assign((since) => {
      const now = BigInt(Math.round(native.now() * 1e6));
      const pair = [Number(now / 1000000000n), Number(now % 1000000000n)];
      if (since === undefined) return pair;
      const seconds = pair[0] - since[0], nanos = pair[1] - since[1];
      return nanos < 0 ? [seconds - 1, nanos + 1e9] : [seconds, nanos];
    }, { bigint: () => BigInt(Math.round(native.now() * 1e6)) }),
    cpuUsage: () => ({ user: Math.round(native.cpuTime() / 1e3), system: 0 }),
    memoryUsage: Object.assign(() => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }), { rss: () => 0 }),
    resourceUsage: () => ({ userCPUTime: Math.round(native.cpuTime() / 1e3), systemCPUTime: 0 }),
    emitWarning(warning, type = 'Warning') {
      if (typeof type === 'object') type = type.type ?? 'Warning';
      const name = warning?.name ?? type;
      if (!environment.NODE_NO_WARNINGS && name !== 'ExperimentalWarning') write(2, `(node:${pid}) ${name}: ${warning?.message ?? warning}\n`);
    },
    getBuiltinModule: (id) => require('belljar/node_modules').builtin(id),
    stdout: undefined, stderr: undefined, stdin: undefined,
  });
  process.versions.v8 = '13.6';
  process.release = { name: 'node' };
  lazily(process, 'stdout', () => output(1, ttys & 2));
  lazily(process, 'stderr', () => output(2, ttys & 4));
  lazily(process, 'stdin', () => input(ttys & 1));
}

module.exports = { env, set_up, write };
