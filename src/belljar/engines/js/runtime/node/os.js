// os: what a program may know of the machine it thinks it is on.
'use strict';

const { ArrayPrototypePush, Number, RegExp, RegExpPrototypeExec } = primordials;
const kernel = require('belljar/kernel');
const system = require('belljar/system');
const { given } = require('belljar/node/process');

const read = (path) => native.encode(kernel.call('read_file', -100, path), 1, 0, 2 ** 53);
const kilobytes = (text, name) => Number(RegExpPrototypeExec(new RegExp(`^${name}:\\s+(\\d+)`, 'm'), text)?.[1] ?? 0) * 1024;
const user = (uid) => read('/etc/passwd').split('\n').map((line) => line.split(':')).find((entry) => Number(entry[2]) === uid);
const cpus = () => read('/proc/cpuinfo').split('\n').filter((line) => line.startsWith('processor')).length || 1;

module.exports = {
  os: {
    getHostname: () => read('/proc/sys/kernel/hostname').trim(),
    getOSInformation: () => [...system],
    getUptime: () => Number(read('/proc/uptime').split(' ')[0]),
    getLoadAvg(values) {
      const words = read('/proc/loadavg').split(' ');
      for (let i = 0; i < 3; i++) values[i] = Number(words[i]);
    },
    getTotalMem: () => kilobytes(read('/proc/meminfo'), 'MemTotal'),
    getFreeMem: () => kilobytes(read('/proc/meminfo'), 'MemAvailable'),
    getCPUs() {
      const made = [];
      for (let i = cpus(); i > 0; i--) ArrayPrototypePush(made, 'virtual', 0, 0, 0, 0, 0, 0);
      return made;
    },
    getAvailableParallelism: cpus,
    getInterfaceAddresses: () => [],
    getHomeDirectory: () => process.env.HOME ?? user(given.uid)?.[5] ?? '/',
    getUserInfo(options) {
      const entry = user(given.uid);
      const made = { uid: given.uid, gid: given.gid, username: entry?.[0] ?? `${given.uid}`, homedir: entry?.[5] ?? '/', shell: entry?.[6] ?? null };
      if (options?.encoding === 'buffer') for (const name of ['username', 'homedir', 'shell']) made[name] = require('buffer').Buffer.from(made[name]);
      return made;
    },
    getPriority: () => 0,
    setPriority: () => 0,
    isBigEndian: false,
  },
};
