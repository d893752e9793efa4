// Runs in Node itself, once: hands Node's library sources and ours to the addon, which then serves forks of this process,
// and answers what guests' realms ask of Node's own. Arguments: what the guests are ("run" or "program"); the addon and its
// SHA-256; in hex Landlock's rules, and the filters of programs, of prefixes and their copies, and of forks; in JSON the
// table of kernel calls, and what the system is called; control descriptor.
'use strict';

const crypto = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const answer = require('./answer.cjs');

const [kind, addon, digest, rules, runFilter, sessionFilter, forkFilter, calls, system, control] = process.argv.slice(2);

const sources = { ...process.binding('natives') };
for (const name of fs.readdirSync(__dirname, { recursive: true })) {
  if (name.endsWith('.js')) sources[`belljar/${name.slice(0, -3)}`] = fs.readFileSync(path.join(__dirname, name), 'utf8');
}
sources['belljar/call_table'] = `module.exports = ${calls}`;
sources['belljar/system'] = `module.exports = ${system}`;

process.removeAllListeners('warning');
answer.warm();

// What is checked is what is loaded: the open file, whatever the path leads to by now.
const opened = fs.openSync(addon, 'r');
if (crypto.createHash('sha256').update(fs.readFileSync(opened)).digest('hex') !== digest) {
  throw new Error("the addon is not the one that was built");
}
const library = { exports: {} };
process.dlopen(library, fs.existsSync('/proc/self/fd') ? `/proc/self/fd/${opened}` : addon);

library.exports.serve(Number(control), {
  sources,
  answer: (question) => answer.answer(question, kind),
  rules: Buffer.from(rules, 'hex'),
  runFilter: Buffer.from(runFilter, 'hex'),
  sessionFilter: Buffer.from(sessionFilter, 'hex'),
  forkFilter: Buffer.from(forkFilter, 'hex'),
});
