// Child processes: commands of the sandbox, as processes of its kernel.
'use strict';

const { ArrayPrototypeIndexOf, ArrayPrototypePush, DateNow, MathMax, MathMin } = primordials;
const kernel = require('belljar/kernel');
const { Handle } = require('belljar/node/handle');
const { Request } = require('belljar/node/loop');

const ETIMEDOUT = 110, ENOBUFS = 105;
const NEW_SESSION = 2, CLOSE_OTHERS = 4; // of `spawn`
const POLLIN = 1, POLLOUT = 4, PIECE = 64 << 10;
const SIGTERM = 15;

// Closes what is still open of these.
function closeAll(fds) {
  for (const fd of fds) {
    try { kernel.call('close', fd); } catch { /* it was */ }
  }
}

// The descriptors of a child, and of pipes our end and the one that is the child's once it runs.
function open(stdio) {
  const targets = [], sources = [], theirs = [], ours = [];
  try {
    for (let i = 0; i < stdio.length; i++) {
      const item = stdio[i];
      let source;
      switch (item.type) {
        case 'ignore': { source = kernel.call('open', -100, '/dev/null', 2, 0)[0]; ArrayPrototypePush(theirs, source); break; }
        case 'inherit': source = item.fd ?? i; break;
        case 'fd': source = item.fd; break;
        case 'wrap': source = item.handle.fd; break;
        default: {
          const { 0: reader, 1: writer } = kernel.call('pipe', 1);
          source = i === 0 ? reader : writer;
          ArrayPrototypePush(theirs, source);
          ours[i] = i === 0 ? writer : reader;
        }
      }
      ArrayPrototypePush(targets, i);
      ArrayPrototypePush(sources, source);
    }
  } catch (error) {
    closeAll(theirs);
    closeAll(ours.filter((fd) => fd !== undefined));
    throw error;
  }
  return { targets, sources, theirs, ours };
}

function spawn({ file, args, cwd, envPairs, stdio, detached }) {
  const { targets, sources, theirs, ours } = open(stdio);
  try {
    const env = envPairs ?? primordials.ArrayPrototypeMap(primordials.ObjectKeys(process.env), (name) => `${name}=${process.env[name]}`);
    const pid = kernel.call('spawn', file, args ?? [file], env, cwd ?? '', targets, sources, CLOSE_OTHERS | (detached ? NEW_SESSION : 0));
    return { pid, ours };
  } catch (error) {
    closeAll(ours.filter((fd) => fd !== undefined));
    throw error;
  } finally {
    closeAll(theirs);
  }
}

const signalName = (number) => {
  if (number === 0) return '';
  const { signals } = internalBinding('constants').os;
  for (const name of primordials.ObjectKeys(signals)) if (signals[name] === number) return name;
  return `SIG${number}`;
};

class Process extends Handle {
  spawn(file, args, cwd, envPairs, stdio, flags) {
    let begun;
    try {
      const { kProcessFlagDetached } = internalBinding('process_wrap').constants;
      begun = spawn({ file, args, cwd, envPairs, stdio, detached: (flags & kProcessFlagDetached) !== 0 });
    } catch (error) {
      if (error.errno === undefined) throw error;
      return -error.errno;
    }
    this.pid = begun.pid;
    for (let i = 0; i < stdio.length; i++) {
      if (begun.ours[i] === undefined) continue;
      if (i === 0) stdio[i].handle.attach(-1, begun.ours[i]);
      else stdio[i].handle.attach(begun.ours[i], -1);
    }
    this.busy = true;
    const request = new Request('wait', [begun.pid, 0], (_error, _pid, code, signal) => {
      this.busy = false;
      this.onexit(signal ? 0 : code, signalName(signal));
    });
    request.count(false); // it is the handle that counts
    return 0;
  }

  kill(signal) {
    try {
      kernel.call('kill', this.pid, signal);
      return 0;
    } catch (error) {
      return -error.errno;
    }
  }
}

// Runs a child to its end. Gives what Node's C++ side gives.
function spawnSync(options) {
  const { Buffer } = require('buffer');
  let begun;
  const stdio = options.stdio ?? [];
  try {
    begun = spawn(options);
  } catch (error) {
    if (error.errno === undefined) throw error;
    return { error: -error.errno, status: null, signal: null, output: null, pid: 0 };
  }
  const { pid, ours } = begun;
  const parts = [], sizes = [];
  let input = stdio[0]?.input;
  input = input === undefined || input === null ? Buffer.alloc(0) : Buffer.from(input.buffer, input.byteOffset, input.byteLength);
  let failed = 0;
  const deadline = options.timeout > 0 ? DateNow() + options.timeout : Infinity;
  const most = options.maxBuffer > 0 ? options.maxBuffer : Infinity;
  const kill = (error) => {
    if (failed !== 0) return;
    failed = error;
    try { kernel.call('kill', pid, options.killSignal > 0 ? options.killSignal : SIGTERM); } catch { /* it has ended */ }
  };
  const shut = (index) => { kernel.call('close', ours[index]); ours[index] = undefined; };
  if (ours[0] !== undefined && input.length === 0) shut(0);
  for (;;) {
    const fds = [], events = [];
    for (let i = 0; i < ours.length; i++) {
      if (ours[i] === undefined) continue;
      ArrayPrototypePush(fds, ours[i]);
      ArrayPrototypePush(events, i === 0 ? POLLOUT : POLLIN);
    }
    if (fds.length === 0) break;
    const wait = deadline === Infinity || failed !== 0 ? -1 : MathMax(0, deadline - DateNow()) * 1e6;
    const ready = kernel.call('poll', fds, events, wait);
    if (DateNow() >= deadline) kill(-ETIMEDOUT);
    for (let k = 0; k < fds.length; k++) {
      if (ready[k] === 0) continue;
      const index = ArrayPrototypeIndexOf(ours, fds[k]);
      if (index === 0) {
        let count = input.length;
        try { count = kernel.call('write', fds[k], input.subarray(0, MathMin(4096, input.length))); } catch { /* it reads no more */ }
        input = input.subarray(count);
        if (input.length === 0) shut(0);
        continue;
      }
      const data = kernel.call('read', fds[k], PIECE);
      if (data.length === 0) { shut(index); continue; }
      const room = most - (sizes[index] ?? 0);
      sizes[index] = (sizes[index] ?? 0) + data.length;
      (parts[index] ??= []).push(Buffer.from(data.subarray(0, MathMin(data.length, room))));
      if (sizes[index] > most) { kill(-ENOBUFS); shut(index); }
    }
  }
  let status;
  if (deadline !== Infinity && failed === 0) {
    while ((status = kernel.call('wait', pid, 1))[0] === 0) {
      if (DateNow() >= deadline) { kill(-ETIMEDOUT); break; }
      kernel.call('sleep', 5e6);
    }
  }
  if (status === undefined || status[0] === 0) status = kernel.call('wait', pid, 0);
  const { 1: code, 2: signal } = status;
  const output = stdio.map((item, index) => (item.type === 'pipe' && index > 0 ? Buffer.concat(parts[index] ?? []) : null));
  return { ...(failed !== 0 && { error: failed }), status: signal ? null : code, signal: signal ? signalName(signal) : null, output, pid };
}

module.exports = { process_wrap: { Process }, spawn_sync: { spawn: spawnSync } };
