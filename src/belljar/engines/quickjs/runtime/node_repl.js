// The prompt of `node` on a terminal: a line (or more, while it is not complete) in, its value out.
'use strict';

const kernel = require('belljar/kernel');
const repl = require('belljar/repl');
const { inspect } = require('internal/util/inspect');
const { Buffer } = require('buffer');

function start(load) {
  const { write } = require('belljar/node_process');
  const modules = require('belljar/node_modules');
  globalThis.require = load;
  for (const name of modules.FOUND) {
    if (!name.includes('/') && !(name in globalThis)) Object.defineProperty(globalThis, name, { configurable: true, get: () => modules.builtin(name) });
  }
  write(1, `Welcome to Node.js ${process.version}.\nType ".help" for more information.\n`);
  let kept = '';
  const ask = () => {
    write(1, kept === '' ? '> ' : '| ');
    kernel.background('read', [0, 64 << 10], (error, data) => {
      if (error !== null || data.length === 0) return void write(1, '\n');
      line(Buffer.from(data).toString().replace(/\n$/, ''));
    });
  };
  const line = (text) => {
    if (kept === '' && text.trim() === '.exit') return process.exit(0);
    if (kept === '' && text.trim() === '.help') { write(1, '.exit    leave\n.help    this\n'); return ask(); }
    const code = kept === '' ? text : `${kept}\n${text}`;
    if (code.trim() === '') return ask();
    let started;
    try {
      started = repl.start(code, 'REPL', undefined);
    } catch (error) {
      if (native.typeOf(error) === 'NativeError' && /Unexpected end of input|Unterminated template/.test(error.message)) { kept = code; return ask(); }
      kept = '';
      write(1, `Uncaught ${inspect(error)}\n`);
      return ask();
    }
    kept = '';
    Promise.resolve(started).then((value) => write(1, `${inspect(value, { colors: true })}\n`), (error) => write(1, `Uncaught ${inspect(error)}\n`)).then(ask);
  };
  ask();
}

module.exports = { start };
