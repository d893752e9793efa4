// Runs in Node itself, once: hands Node's library sources, ours, and the TypeScript stripper to the addon, which then
// serves forks of this process. Arguments: addon; filters (hex) of prefixes, runs, sessions, and
// their forks; the table of kernel calls (JSON); control descriptor.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { stripTypeScriptTypes } = require('node:module');

const [addon, templateFilter, runFilter, sessionFilter, forkFilter, calls, control] = process.argv.slice(2);

const sources = { ...process.binding('natives') };
for (const name of fs.readdirSync(__dirname)) {
  if (name.endsWith('.js')) sources[`belljar/${name.slice(0, -3)}`] = fs.readFileSync(path.join(__dirname, name), 'utf8');
}

sources['belljar/call_table'] = `module.exports = ${calls}`;

// Erasing keeps every position; only syntax that has to be rewritten (enums, namespaces) is.
function strip(code) {
  try {
    return stripTypeScriptTypes(code);
  } catch (error) {
    if (error.code !== 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') return undefined;
    return stripTypeScriptTypes(code, { mode: 'transform' });
  }
}

process.removeAllListeners('warning');
strip('const warm: number = 1; type T = { a: string }; function f<T>(x: T): T { return x }');

require(addon).serve(Number(control), {
  sources,
  strip,
  templateFilter: Buffer.from(templateFilter, 'hex'),
  runFilter: Buffer.from(runFilter, 'hex'),
  sessionFilter: Buffer.from(sessionFilter, 'hex'),
  forkFilter: Buffer.from(forkFilter, 'hex'),
});
