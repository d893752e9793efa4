// `node`: a program of the sandbox, from START to exit.
'use strict';

const { Error, MathCeil, MathMin, ObjectDefineProperty, PromisePrototypeThen, SafeMap } = primordials;
const kernel = require('belljar/kernel');
const timers = require('belljar/timers');
const output = require('belljar/output');
const hooks = require('belljar/run');

const USAGE = `Usage: node [options] [ script.js ] [arguments]
       node [options] -e code | -p code

  -e, --eval CODE     run CODE
  -p, --print CODE    run CODE and show its value
  -c, --check FILE    only look whether it is JavaScript
  -i, --interactive   ask for input, line by line
  -r, --require FILE  load FILE first
  -v, --version
  --input-type=module|commonjs
`;

const EPIPE = 32;
let failed = false;
const unhandled = new SafeMap();

function exit(status) {
  kernel.tell('exit', status & 255, 0, native.cpuTime());
  native.exit(0);
}

function parse(words) {
  const made = { requires: [], rest: [] };
  const take = (name, index) => {
    if (index >= words.length) usage(`node: ${name} requires an argument`);
    return words[index];
  };
  let i = 0;
  for (; i < words.length; i++) {
    const { 0: name, 1: value } = words[i].startsWith('--') && words[i].includes('=') ? [words[i].slice(0, words[i].indexOf('=')), words[i].slice(words[i].indexOf('=') + 1)] : [words[i]];
    if (name === '--') { i++; break; }
    if (name === '-' || !name.startsWith('-')) break;
    switch (name) {
      case '-e': case '--eval': made.code = value ?? take(name, ++i); break;
      case '-p': case '--print': case '-pe': made.print = true; if (value !== undefined || i + 1 < words.length) made.code = value ?? words[++i]; break;
      case '-c': case '--check': made.check = true; break;
      case '-i': case '--interactive': made.interactive = true; break;
      case '-r': case '--require': case '--import': made.requires.push(value ?? take(name, ++i)); break;
      case '-v': case '--version': made.version = true; break;
      case '-h': case '--help': made.help = true; break;
      case '--input-type': made.type = value ?? take(name, ++i); break;
      case '--test': usage('node: --test is not available in this sandbox; run the file itself'); break;
      default:
        if (!/^--(?:no-|trace-|experimental-|enable-|disable-|max-|stack-|unhandled-|harmony|use-|expose-|preserve-|throw-)/.test(name)) usage(`node: bad option: ${words[i]}`);
    }
  }
  made.rest = words.slice(i);
  return made;
}

function usage(message) {
  require('belljar/node_process').write(2, `${message}\n`);
  exit(9);
  throw new Error(message);
}

function define(name, value, enumerable = false) {
  ObjectDefineProperty(globalThis, name, { __proto__: null, value, writable: true, enumerable, configurable: true });
}

function set_up(start) {
  internalBinding('uv').getErrorMap = () => require('belljar/node/failure').map;
  const { set_up: fill, write } = require('belljar/node_process');
  fill(start, exit);
  output.redirect((fd, text) => {
    try {
      write(fd, text);
    } catch (error) {
      if (error.errno === EPIPE) exit(128 + 13); // nobody reads it any more, as `| head` does: there is no use in going on
    }
  });
  for (const name of ['setTimeout', 'setInterval', 'setImmediate', 'clearTimeout', 'clearInterval', 'clearImmediate']) define(name, timers.node[name], true);
  require('belljar/node_extras');
  define('process', process);
  define('Buffer', require('buffer').Buffer);
}

function main() {
  const start = kernel.start();
  const { argv, numbers } = start;
  hooks.turn = turn;
  hooks.rejection = (promise, reason, fresh) => { if (fresh) unhandled.set(promise, reason); else unhandled.delete(promise); };
  try {
    set_up(start);
    kernel.setLimits(numbers[6], numbers[7]);
    run(parse(argv.slice(1)));
  } catch (error) {
    uncaught(error);
  }
}

function run(options) {
  const { write } = require('belljar/node_process');
  const path = require('path');
  const modules = require('belljar/node_modules');
  if (options.version) return void write(1, `${process.version}\n`);
  if (options.help) return void write(1, USAGE);
  const here = path.join(process.cwd(), '[eval]');
  const load = modules.makeRequire(new modules.Module(here));
  for (const name of options.requires) load(name);
  const settle = (promise) => { if (promise !== undefined) PromisePrototypeThen(promise, undefined, uncaught); };
  if (options.code !== undefined) {
    process.argv = [process.execPath, ...options.rest];
    const isModule = options.type === 'module' || (options.type === undefined && !options.print && undefined);
    if (isModule === false || options.print || options.type === 'commonjs') return evaluate(options, load);
    const { looksLikeModule } = require('belljar/node_esm');
    if (isModule || looksLikeModule(options.code)) return settle(modules.runMain(here, strip(options.code), true));
    return evaluate(options, load);
  }
  const { 0: file, ...rest } = options.rest;
  if (file === undefined && (options.interactive || process.stdioTTY & 1)) return require('belljar/node_repl').start(load);
  if (file === undefined || file === '-') {
    process.argv = [process.execPath, '-', ...options.rest.slice(1)];
    const code = require('fs').readFileSync(0, 'utf8');
    return settle(modules.runMain(path.join(process.cwd(), '[stdin]'), strip(code), options.type === 'module' ? true : undefined));
  }
  const full = modules.resolve(path.resolve(file), here, false);
  process.argv = [process.execPath, full, ...options.rest.slice(1)];
  if (options.check) return void native.compileCheck?.(full);
  settle(modules.runMain(full));
}

function strip(code) {
  return code.startsWith('#!') ? `//${code.slice(2)}` : code;
}

function evaluate({ code, print }, load) {
  const modules = require('belljar/node_modules');
  const { transformScript } = require('belljar/node_esm');
  const here = `${process.cwd()}/[eval]`;
  define('require', load);
  define('module', new modules.Module(here));
  define('exports', globalThis.module.exports);
  define('__filename', '[eval]');
  define('__dirname', '.');
  define('__import', (id) => modules.importFrom(id, here));
  for (const name of modules.FOUND) {
    if (!name.includes('/') && !(name in globalThis)) ObjectDefineProperty(globalThis, name, { __proto__: null, configurable: true, get: () => modules.builtin(name), set: (value) => define(name, value) });
  }
  const text = transformScript(code);
  let value;
  try {
    value = native.script(text, '[eval]', undefined);
  } catch (error) {
    const stripped = error instanceof primordials.SyntaxError ? native.strip(code) : undefined;
    if (stripped === undefined || stripped === code) throw error;
    value = native.script(transformScript(stripped), '[eval]', undefined);
  }
  if (print) globalThis.console.log(value);
}

// What Node shows of an exception that nobody caught.
function uncaught(error) {
  if (failed) return exit(7);
  if (process.listenerCount?.('uncaughtException') > 0) return void process.emit('uncaughtException', error, 'uncaughtException');
  failed = true;
  const { write } = require('belljar/node_process');
  let shown;
  try {
    const { inspect } = require('internal/util/inspect');
    const isError = native.typeOf(error) === 'NativeError';
    const stack = isError && typeof error.stack === 'string' ? error.stack : '';
    shown = isError ? clean(inspect(error)) : `Uncaught:\n${inspect(error)}`;
    const at = /(?:\(|at |^)((?:\/|\[)[^\n():]*):(\d+):(\d+)\)?$/m.exec(clean(stack));
    if (isError && at !== null) shown = `${at[1]}:${at[2]}\n${sourceLine(at)}\n${shown}`;
  } catch {
    shown = 'Uncaught exception';
  }
  try {
    write(2, `${shown}\n\nNode.js ${process.version}\n`);
    process.exitCode = 1;
    process.exit?.(1);
  } catch { /* an exit handler failed */ }
  exit(1);
}

function sourceLine({ 1: file, 2: line, 3: column }) {
  if (!file.startsWith('/')) return '';
  const text = require('fs').readFileSync(file, 'utf8').split('\n')[line - 1] ?? '';
  return `${text}\n${' '.repeat(MathMin(column - 1, text.length))}^\n`;
}

// Without our own frames, and with the columns of a file's first line as they are in the file.
function clean(text) {
  const { FIRST_COLUMNS } = require('belljar/node_modules');
  return text.replace(/\n[^\n]*(?:node:)?belljar\/[^\n]*?( \{)?(?=\n|$)/g, '$1')
    .replace(/(\/[^\n():]*):1:(\d+)/g, (all, file, column) => (FIRST_COLUMNS.has(file) ? `${file}:1:${column - FIRST_COLUMNS.get(file)}` : all));
}

function turn() {
  for (const { 0: promise, 1: reason } of unhandled) {
    unhandled.delete(promise);
    const error = reason?.error ?? reason;
    if (process.listenerCount?.('unhandledRejection') > 0) process.emit('unhandledRejection', error, promise);
    else uncaught(error);
  }
  const wait = timers.next();
  if (wait <= 0) {
    try {
      timers.fire();
    } catch (error) {
      uncaught(error);
    }
    return 0;
  }
  if (timers.referenced === 0 && kernel.pending === 0) {
    if (!process._beforeExit && process.listenerCount?.('beforeExit') > 0) {
      process._beforeExit = true;
      process.emit('beforeExit', process.exitCode ?? 0);
      return 0;
    }
    try {
      process.exit(process.exitCode ?? 0);
    } catch (error) {
      uncaught(error);
    }
  }
  process._beforeExit = false;
  try {
    kernel.wait(MathCeil(MathMin(wait, 2 ** 30)));
  } catch (error) {
    uncaught(error);
  }
  return 0;
}

module.exports = { main };
