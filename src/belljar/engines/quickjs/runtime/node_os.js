// os: what a program may know of the machine it thinks it is on.
'use strict';

const kernel = require('belljar/kernel');
const { Buffer } = require('buffer');
const { numbers } = require('belljar/node/failure');

const SIGNALS = { __proto__: null };
('HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ ' +
  'VTALRM PROF WINCH IO PWR SYS').split(' ').forEach((name, index) => { SIGNALS[`SIG${name}`] = index + 1; });

const read = (path) => Buffer.from(kernel.call('read_file', -100, path)).toString();
const field = (text, name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0) * 1024;

function userInfo() {
  const uid = process.getuid();
  const line = read('/etc/passwd').split('\n').map((entry) => entry.split(':')).find((entry) => Number(entry[2]) === uid);
  return { uid, gid: process.getgid(), username: line?.[0] ?? `${uid}`, homedir: line?.[5] ?? '/', shell: line?.[6] ?? null };
}

module.exports = {
  SIGNALS,
  EOL: '\n',
  devNull: '/dev/null',
  arch: () => 'x64',
  platform: () => 'linux',
  type: () => 'Linux',
  release: () => read('/proc/sys/kernel/osrelease').trim(),
  version: () => read('/proc/version').trim(),
  machine: () => 'x86_64',
  endianness: () => 'LE',
  hostname: () => read('/proc/sys/kernel/hostname').trim(),
  homedir: () => process.env.HOME ?? userInfo().homedir,
  tmpdir: () => (process.env.TMPDIR ?? process.env.TMP ?? process.env.TEMP ?? '/tmp').replace(/(.)\/$/, '$1'),
  uptime: () => Number(read('/proc/uptime').split(' ')[0]),
  loadavg: () => read('/proc/loadavg').split(' ').slice(0, 3).map(Number),
  totalmem: () => field(read('/proc/meminfo'), 'MemTotal'),
  freemem: () => field(read('/proc/meminfo'), 'MemAvailable'),
  cpus: () => read('/proc/cpuinfo').split('\n').filter((line) => line.startsWith('processor')).map(() => ({ model: 'virtual', speed: 0, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } })),
  availableParallelism: () => module.exports.cpus().length || 1,
  networkInterfaces: () => ({}),
  userInfo,
  getPriority: () => 0,
  setPriority() {},
  constants: { signals: SIGNALS, errno: numbers, priority: { PRIORITY_NORMAL: 0 } },
};
