// The other side of benchmarks/js.py: one run of isolated-vm per line on stdin, its milliseconds on stdout.
'use strict';

const fs = require('node:fs');
const readline = require('node:readline');
const ivm = require(process.argv[2]);

const prefix = fs.readFileSync(process.argv[3], 'utf8');
const shim = 'globalThis.console ??= { log() {}, warn() {}, error() {} };';
const snapshot = ivm.Isolate.createSnapshot([{ code: shim + prefix }]);

async function run() {
  const isolate = new ivm.Isolate({ snapshot, memoryLimit: 128 });
  try {
    const context = await isolate.createContext();
    await context.global.set('$lookup', new ivm.Reference(async (key) => JSON.stringify({ name: 'Ada', key })));
    await context.eval(
      'globalThis.lookup = async (key) => JSON.parse(await $lookup.apply(undefined, [key], { result: { promise: true } }))',
    );
    const code = "(async () => { const u = await lookup(1); return JSON.stringify({ name: u.name, s: _.sum([1, 2]) }) })()";
    const result = JSON.parse(await context.eval(code, { promise: true, timeout: 1000 }));
    if (result.name !== 'Ada' || result.s !== 3) throw new Error('wrong');
  } finally {
    isolate.dispose();
  }
}

readline.createInterface({ input: process.stdin }).on('line', async () => {
  const began = process.hrtime.bigint();
  await run();
  console.log(Number(process.hrtime.bigint() - began) / 1e6);
});
