// Signals that a program listens for.
'use strict';

const { SafeSet } = primordials;
const kernel = require('belljar/kernel');
const { Handle } = require('belljar/node/handle');
const { enter } = require('belljar/node/loop');

const DEFAULT = 0, REPORTED = 2; // of `catch`
const listening = new SafeSet();

class Signal extends Handle {
  #number = 0;

  start(number) {
    try {
      kernel.call('catch', number, REPORTED);
    } catch (error) {
      return -error.errno;
    }
    this.#number = number;
    listening.add(this);
    this.busy = true;
    return 0;
  }

  stop() {
    if (!listening.delete(this)) return 0;
    this.busy = false;
    for (const other of listening) if (other.#number === this.#number) return 0;
    kernel.call('catch', this.#number, DEFAULT);
    return 0;
  }

  _close() { this.stop(); }

  // Those that came since it was asked last.
  static deliver() {
    while (kernel.signals.length > 0) {
      const number = kernel.signals.shift();
      for (const signal of listening) if (signal.#number === number) enter(() => signal.onsignal(number));
    }
  }
}

module.exports = { signal_wrap: { Signal }, deliver: Signal.deliver };
