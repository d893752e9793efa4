// `node`: a program of the sandbox, from START to exit.
'use strict';

const kernel = require('belljar/kernel');
const random = require('belljar/random');
const { precompile } = require('belljar/node/code');
const loop = require('belljar/node/loop');
const options = require('belljar/node/options');
const asyncs = require('belljar/node/async');
const { begin, given, setEnd } = require('belljar/node/process');
const { setExit } = require('belljar/node/errors');
const { begin: beginTime } = require('belljar/node/engine');
const { hooks } = require('belljar/node/hooks');
const { deliver } = require('belljar/node/signals');

const BAD_OPTION = 9, UNSETTLED = 13;
const PENDING = 0;
const { privateSymbols } = native.realm;

function end(status) {
  kernel.tell('exit', status & 255, 0, native.cpuTime());
  native.exit(0);
}

function say(fd, text) {
  let left = native.decode(text, 1);
  try {
    while (left.length > 0) left = left.subarray(kernel.call('write', fd, left.subarray(0, 1 << 20)));
  } catch { /* nobody reads it */ }
}

setEnd(end);
setExit((status, text) => { say(2, text); end(status); });

// The file of Node's library that does what the command line asks for.
function main(values, first) {
  if (values['--help']) return 'print_help';
  if (values['--check']) return 'check_syntax';
  if (values['--test']) return 'test_runner';
  if (values['[has_eval_string]'] && !values['--interactive']) return 'eval_string';
  if (first !== undefined && first !== '-') return 'run_main_module';
  if (values['--interactive'] || internalBinding('tty_wrap').isTTY(0)) return 'repl';
  return 'eval_stdin';
}

hooks.program = () => {
  const start = kernel.start();
  loop.start();
  begin(start);
  beginTime();
  native.allowWasm();
  if (internalBinding('tty_wrap').isTTY(2)) native.realm.require('internal/util/colors').refresh();
  kernel.setLimits(start.numbers[6], start.numbers[7]);
  let read;
  try {
    read = options.read(start.argv.slice(1), process.env.NODE_OPTIONS);
  } catch (error) {
    if (!(error instanceof options.BadOption)) throw error;
    say(2, `node: ${error.message}\n`);
    end(BAD_OPTION);
  }
  native.realm.require('internal/options').refreshOptions(); // the template's were those of no command line
  const { flags, rest, values } = read;
  given.argv = [start.argv[0], ...rest];
  given.flags = flags;
  if (values['--version']) {
    say(1, `${process.version}\n`);
    end(0);
  }
  for (const name of ['--watch', '--inspect', '--inspect-brk', '--run']) {
    if (!values[name] || values[name].length === 0) continue;
    say(2, `node: ${name} is not available in this sandbox\n`);
    end(BAD_OPTION);
  }
  const name = main(values, rest[0]);
  const run = mains[name] ?? native.compile(`internal/main/${name}`, MAIN);
  loop.enter(() => {
    asyncs.async_wrap.pushAsyncContext(1, 0);
    run(process, native.realm.require, native.realm.internalBinding, primordials);
  });
  asyncs.async_wrap.clearAsyncIdStack();
};

let over = false;

// Whether the main module awaits something that nothing is left to settle.
function waitsForEver() {
  const promise = globalThis[privateSymbols.entry_point_promise_private_symbol];
  return promise !== undefined && native.promiseDetails(promise)[0] === PENDING;
}

hooks.turn = () => {
  deliver();
  if (loop.turn()) return 0;
  if (!over) {
    loop.enter(() => process.emit('beforeExit', process.exitCode ?? 0));
    if (loop.alive()) return 0;
  }
  over = true;
  const unsettled = waitsForEver();
  loop.enter(() => {
    process._exiting = true;
    process.emit('exit', process.exitCode ?? (unsettled ? UNSETTLED : 0));
  });
  if (unsettled && process.exitCode === undefined) say(2, globalThis[privateSymbols.entry_point_module_private_symbol]?.stalled() ?? '');
  end(process.exitCode ?? (unsettled ? UNSETTLED : 0));
  return -1;
};

// What most programs need is loaded before any of them begins; what is large and rarely needed, compiled.
for (const id of ['tty', 'net', 'child_process', 'os', 'readline', 'readline/promises', 'fs/promises', 'stream/promises', 'timers/promises', 'crypto', 'zlib', 'http', 'https',
  'assert', 'async_hooks', 'worker_threads', 'perf_hooks', 'string_decoder', 'vm', 'internal/fs/sync_write_stream',
  'internal/fs/read/context', 'internal/modules/typescript', 'internal/modules/esm/translators', 'internal/modules/esm/load',
  'internal/source_map/prepare_stack_trace', 'internal/crypto/webcrypto', 'internal/util/colors',
  'internal/webstreams/readablestream']) native.realm.require(id);
for (const id of ['internal/deps/undici/undici', 'internal/test_runner/test', 'internal/test_runner/harness']) precompile(id);
internalBinding('process_methods').resetStdioForTesting(); // whoever looked at them found none

const MAIN = ['process', 'require', 'internalBinding', 'primordials'];
const mains = { __proto__: null };
for (const name of ['run_main_module', 'eval_string', 'eval_stdin']) mains[name] = native.compile(`internal/main/${name}`, MAIN);

hooks.reseed = () => random.reseed();
