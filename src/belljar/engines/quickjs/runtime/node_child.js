// child_process: commands of the sandbox, started by the kernel as children of this process.
'use strict';

const { ArrayIsArray, ArrayPrototypePush, Error, ObjectKeys, Promise } = primordials;
const kernel = require('belljar/kernel');
const { failure, numbers } = require('belljar/node/failure');
const EventEmitter = require('events');
const { Readable, Writable } = require('stream');
const { Buffer } = require('buffer');
const { promisify } = require('internal/util');

const PIECE = 1 << 20;
const POLLIN = 1, CLOEXEC = 1;
const SIGNALS = ('HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU ' +
  'URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS').split(' ');
const signalName = (number) => (number > 0 ? `SIG${SIGNALS[number - 1] ?? number}` : null);
const signalNumber = (signal) => (typeof signal === 'number' ? signal : SIGNALS.indexOf(`${signal}`.replace(/^SIG/, '')) + 1);

function begin(file, args, options) {
  const stdio = typeof options.stdio === 'string' ? [options.stdio, options.stdio, options.stdio] : [...(options.stdio ?? [])];
  const targets = [], sources = [], opened = [], ours = [];
  for (let fd = 0; fd < 3; fd++) {
    const how = stdio[fd] ?? 'pipe';
    ArrayPrototypePush(targets, fd);
    if (how === 'pipe' || how === 'overlapped') {
      const { 0: reader, 1: writer } = kernel.call('pipe', CLOEXEC);
      const { 0: theirs, 1: mine } = fd === 0 ? [reader, writer] : [writer, reader];
      ArrayPrototypePush(sources, theirs);
      ArrayPrototypePush(opened, theirs);
      ours[fd] = mine;
    } else if (how === 'ignore') {
      const { 0: nothing } = kernel.call('open', -100, '/dev/null', 2 | 0o2000000, 0);
      ArrayPrototypePush(sources, nothing);
      ArrayPrototypePush(opened, nothing);
    } else {
      ArrayPrototypePush(sources, how === 'inherit' ? fd : typeof how === 'number' ? how : how.fd);
    }
  }
  const given = options.env ?? require('belljar/node_process').env;
  const env = ObjectKeys(given).filter((name) => given[name] !== undefined).map((name) => `${name}=${given[name]}`);
  try {
    const pid = kernel.call('spawn', file, args, env, options.cwd === undefined ? '' : `${options.cwd}`.replace(/^file:\/\//, ''), targets, sources, 0);
    return { pid, ours };
  } catch (error) {
    for (const fd of ours) if (fd !== undefined) kernel.call('close', fd);
    throw failure(error, `spawn ${file}`, file);
  } finally {
    for (const fd of opened) kernel.call('close', fd);
  }
}

function shellOf(command, options) {
  const shell = typeof options.shell === 'string' ? options.shell : '/bin/sh';
  return [shell, ['sh', '-c', command]];
}

function normalise(file, args, options) {
  if (!ArrayIsArray(args)) { options = args; args = []; }
  options = { ...options };
  if (options.shell) return [...shellOf([file, ...(args ?? [])].join(' '), options), options];
  return [`${file}`, [options.argv0 ?? `${file}`, ...(args ?? []).map(String)], options];
}

class ChildProcess extends EventEmitter {
  pid;
  exitCode = null;
  signalCode = null;
  killed = false;
  connected = false;
  stdin = null;
  stdout = null;
  stderr = null;
  stdio = [null, null, null];

  kill(signal = 'SIGTERM') {
    if (this.pid === undefined || this.exitCode !== null || this.signalCode !== null) return false;
    try {
      kernel.call('kill', this.pid, signalNumber(signal));
    } catch {
      return false;
    }
    this.killed = true;
    return true;
  }

  ref() {}
  unref() {}
}

function reading(fd) {
  const stream = new Readable({
    read() {
      kernel.background('read', [fd, 64 << 10], (error, data) => {
        if (error !== null) return this.destroy(failure(error, 'read'));
        this.push(data.length === 0 ? null : Buffer.from(data));
      });
    },
    destroy(error, callback) {
      try { kernel.call('close', fd); } catch { /* it was closed */ }
      callback(error);
    },
  });
  return stream;
}

function writing(fd) {
  return new Writable({
    decodeStrings: true,
    write(chunk, _encoding, callback) {
      const next = (rest) => {
        if (rest.length === 0) return callback();
        kernel.background('write', [fd, rest.subarray(0, PIECE)], (error, count) => {
          if (error !== null) return callback(failure(error, 'write'));
          next(rest.subarray(count));
        });
      };
      next(chunk);
    },
    final(callback) { kernel.call('close', fd); callback(); },
  });
}

function spawn(file, args, options) {
  const { 0: path, 1: argv, 2: opts } = normalise(file, args, options);
  const child = new ChildProcess();
  child.spawnfile = path;
  child.spawnargs = argv;
  let begun;
  try {
    begun = begin(path, argv, opts);
  } catch (error) {
    error.spawnargs = argv.slice(1);
    process.nextTick(() => { child.emit('error', error); child.emit('close', -2, null); });
    return child;
  }
  const { pid, ours } = begun;
  child.pid = pid;
  if (ours[0] !== undefined) child.stdin = child.stdio[0] = writing(ours[0]);
  if (ours[1] !== undefined) child.stdout = child.stdio[1] = reading(ours[1]);
  if (ours[2] !== undefined) child.stderr = child.stdio[2] = reading(ours[2]);
  let open = 1 + (child.stdout ? 1 : 0) + (child.stderr ? 1 : 0);
  const over = () => { if (--open === 0) child.emit('close', child.exitCode, child.signalCode); };
  child.stdout?.once('close', over);
  child.stderr?.once('close', over);
  process.nextTick(() => child.emit('spawn'));
  kernel.background('wait', [pid, 0], (_error, _pid, code, signal) => {
    child.exitCode = signal ? null : code;
    child.signalCode = signalName(signal);
    child.emit('exit', child.exitCode, child.signalCode);
    // Nobody listens: what it said is let go of, so that the end comes.
    for (const stream of [child.stdout, child.stderr]) if (stream && stream.listenerCount('data') === 0 && !stream.readableFlowing) stream.resume();
    over();
  });
  if (opts.timeout > 0) {
    const timer = setTimeout(() => child.kill(opts.killSignal ?? 'SIGTERM'), opts.timeout);
    child.once('exit', () => clearTimeout(timer));
  }
  opts.signal?.addEventListener('abort', () => child.kill(opts.killSignal ?? 'SIGTERM'));
  return child;
}

function execFile(file, args, options, callback) {
  if (typeof args === 'function') { callback = args; args = []; options = {}; } else if (!ArrayIsArray(args)) { callback = options; options = args; args = []; }
  if (typeof options === 'function') { callback = options; options = {}; }
  options = { encoding: 'utf8', maxBuffer: 1 << 20, ...options };
  const child = spawn(file, args, options);
  const parts = { stdout: [], stderr: [] };
  let failed = null;
  for (const name of ['stdout', 'stderr']) {
    let size = 0;
    child[name]?.on('data', (data) => {
      size += data.length;
      if (size > options.maxBuffer) {
        failed ??= Object.assign(new RangeError(`${name} maxBuffer length exceeded`), { code: 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER' });
        return void child.kill(options.killSignal);
      }
      ArrayPrototypePush(parts[name], data);
    });
  }
  const give = (name) => {
    const all = Buffer.concat(parts[name]);
    return options.encoding && options.encoding !== 'buffer' ? all.toString(options.encoding) : all;
  };
  child.once('error', (error) => { failed ??= error; });
  child.once('close', (code, signal) => {
    const stdout = give('stdout'), stderr = give('stderr');
    let error = failed;
    if (error === null && (code !== 0 || signal !== null)) {
      const command = options.shell ? file : child.spawnargs.join(' ');
      error = Object.assign(new Error(`Command failed: ${command}\n${stderr}`), { code, killed: child.killed, signal, cmd: command });
    }
    if (error !== null) Object.assign(error, { stdout, stderr });
    callback?.(error, stdout, stderr);
  });
  return child;
}

function exec(command, options, callback) {
  if (typeof options === 'function') { callback = options; options = {}; }
  return execFile(command, [], { ...options, shell: options?.shell ?? true }, callback);
}

function spawnSync(file, args, options) {
  const { 0: path, 1: argv, 2: opts } = normalise(file, args, options);
  let begun;
  try {
    begun = begin(path, argv, opts);
  } catch (error) {
    error.spawnargs = argv.slice(1);
    return { error, status: null, signal: null, output: null, pid: 0, stdout: null, stderr: null };
  }
  const { pid, ours } = begun;
  const parts = { 1: [], 2: [] };
  const input = opts.input === undefined ? Buffer.alloc(0) : Buffer.from(opts.input);
  let left = input, error;
  const deadline = opts.timeout > 0 ? Date.now() + opts.timeout : Infinity;
  const most = opts.maxBuffer ?? 1 << 20;
  let size = 0;
  if (ours[0] !== undefined && left.length === 0) { kernel.call('close', ours[0]); ours[0] = undefined; }
  for (;;) {
    const fds = [], events = [];
    for (let fd = 0; fd < 3; fd++) {
      if (ours[fd] === undefined) continue;
      ArrayPrototypePush(fds, ours[fd]);
      ArrayPrototypePush(events, fd === 0 ? 4 : POLLIN);
    }
    if (fds.length === 0) break;
    const wait = deadline === Infinity ? -1 : Math.max(0, deadline - Date.now()) * 1e6;
    const ready = kernel.call('poll', fds, events, wait);
    if (Date.now() >= deadline && error === undefined) {
      error = Object.assign(new Error(`spawnSync ${path} ETIMEDOUT`), { code: 'ETIMEDOUT', errno: -numbers.ETIMEDOUT, syscall: `spawnSync ${path}`, path });
      kernel.call('kill', pid, signalNumber(opts.killSignal ?? 'SIGTERM'));
    }
    for (let i = 0; i < fds.length; i++) {
      if (ready[i] === 0) continue;
      const fd = ours.indexOf(fds[i]);
      if (fd === 0) {
        let count = left.length;
        try { count = kernel.call('write', fds[i], left.subarray(0, 4096)); } catch { /* it reads no more */ }
        left = left.subarray(count);
        if (left.length > 0) continue;
      } else {
        const data = kernel.call('read', fds[i], PIECE);
        size += data.length;
        if (data.length > 0 && size <= most) { ArrayPrototypePush(parts[fd], Buffer.from(data)); continue; }
        if (size > most && error === undefined) {
          error = Object.assign(new Error(`spawnSync ${path} ENOBUFS`), { code: 'ENOBUFS', errno: -105, syscall: `spawnSync ${path}`, path });
          kernel.call('kill', pid, 15);
        }
      }
      kernel.call('close', fds[i]);
      ours[fd] = undefined;
    }
  }
  const { 1: code, 2: signal } = kernel.call('wait', pid, 0);
  const give = (fd) => {
    if (opts.stdio !== undefined && parts[fd].length === 0 && ['inherit', 'ignore'].includes(typeof opts.stdio === 'string' ? opts.stdio : opts.stdio[fd])) return null;
    const all = Buffer.concat(parts[fd]);
    return opts.encoding && opts.encoding !== 'buffer' ? all.toString(opts.encoding) : all;
  };
  const stdout = give(1), stderr = give(2);
  return { pid, output: [null, stdout, stderr], stdout, stderr, status: signal ? null : code, signal: signalName(signal), ...(error && { error }) };
}

function checked(result, command, options) {
  if (result.stderr?.length > 0 && options?.stdio === undefined) kernel.call('write', 2, Buffer.from(result.stderr));
  if (result.error !== undefined) throw Object.assign(result.error, result);
  if (result.status !== 0) throw Object.assign(new Error(`Command failed: ${command}${result.stderr?.length > 0 ? `\n${result.stderr}` : ''}`), result);
  return result.stdout;
}

const execSync = (command, options) => checked(spawnSync(command, [], { ...options, shell: options?.shell ?? true }), command, options);
const execFileSync = (file, args, options) => {
  const { 0: path, 1: argv, 2: opts } = normalise(file, args, options);
  return checked(spawnSync(path, argv.slice(1), { ...opts, argv0: argv[0], shell: false }), [file, ...(ArrayIsArray(args) ? args : [])].join(' '), opts);
};

const promised = (run) => (...values) => {
  let child;
  const promise = new Promise((resolve, reject) => {
    child = run(...values, (error, stdout, stderr) => (error === null ? resolve({ stdout, stderr }) : reject(error)));
  });
  promise.child = child;
  return promise;
};
exec[promisify.custom] = promised(exec);
execFile[promisify.custom] = promised(execFile);

module.exports = {
  ChildProcess, exec, execFile, execFileSync, execSync, spawn, spawnSync,
  fork: (path, args = [], options) => spawn('node', [path, ...args], { stdio: 'inherit', ...options }),
};
