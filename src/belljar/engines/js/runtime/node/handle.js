// What every handle of Node's C++ side is: something that the loop waits for, with an id, that can be closed.
'use strict';

const { newId } = require('belljar/node/async');
const { isolateSymbols } = native.realm;
const loop = require('belljar/node/loop');

class Handle {
  #id = newId();
  #held = false;
  #referenced = true;
  #closed = false;

  getAsyncId() { return this.#id; }
  getProviderType() { return 0; }
  hasRef() { return this.#referenced && !this.#closed; }
  ref() { this.#referenced = true; this.#update(); }
  unref() { this.#referenced = false; this.#update(); }

  // Whether it has anything going on that the loop should wait for.
  set busy(busy) { this._busy = busy; this.#update(); }
  get closed() { return this.#closed; }

  #update() {
    const hold = this._busy === true && this.#referenced && !this.#closed;
    if (hold !== this.#held) loop.hold(hold ? 1 : -1);
    this.#held = hold;
  }

  close(callback) {
    if (this.#closed) return;
    this.#closed = true;
    this.#update();
    this._close();
    if (callback !== undefined) this[isolateSymbols.handle_onclose] = callback;
    loop.later(() => this[isolateSymbols.handle_onclose]?.());
  }

  _close() {}
}
// A property of its own would be seen by whoever looks at a handle.
primordials.ObjectDefineProperty(Handle.prototype, '_busy', { __proto__: null, value: false, writable: true });

module.exports = { Handle };
