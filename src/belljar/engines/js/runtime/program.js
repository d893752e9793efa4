// A program of the sandbox, from START to exit: `node`'s door.
'use strict';

const { MathCeil, MathMin } = primordials;
const kernel = require('belljar/kernel');
const timers = require('belljar/timers');
const output = require('belljar/output');
const hooks = require('belljar/run');

let code = 0;

function exit(status) {
  kernel.tell('exit', status, 0, native.cpuTime());
  native.exit(0);
}

function print(fd, text) {
  kernel.call('write', fd, text);
}

module.exports = {
  main() {
    const { argv, numbers } = kernel.start();
    hooks.turn = turn;
    hooks.rejection = () => {};
    output.redirect(print);
    kernel.setLimits(numbers[6], numbers[7]);
    try {
      native.script(argv[2] ?? '', '[eval]', undefined);
    } catch (error) {
      uncaught(error);
    }
  },
};

function uncaught(error) {
  print(2, `Uncaught ${require('internal/util/inspect').inspect(error)}\n`);
  exit(1);
}

function turn() {
  const wait = timers.next();
  if (wait <= 0) {
    try {
      timers.fire();
    } catch (error) {
      uncaught(error);
    }
    return 0;
  }
  if (timers.referenced === 0 && kernel.pending === 0) exit(code);
  kernel.wait(MathCeil(MathMin(wait, 2 ** 30)));
  return 0;
}
