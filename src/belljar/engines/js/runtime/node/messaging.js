// Structured clones, and channels between ends in the same process: there are no other threads to talk to.
'use strict';

const { ArrayPrototypePush, ArrayPrototypeShift, FunctionPrototypeCall, ObjectDefineProperty } = primordials;
const { DOMException, isolateSymbols, privateSymbols } = native.realm;
const { clone } = require('belljar/structured_clone');
const loop = require('belljar/node/loop');

function exposeLazyDOMExceptionProperty(target) {
  ObjectDefineProperty(target, 'DOMException',
    { __proto__: null, value: DOMException, writable: true, enumerable: false, configurable: true });
}

const { emitMessage } = (() => {
  const names = ['exports', 'primordials', 'privateSymbols', 'perIsolateSymbols'], exports = {};
  native.compile('internal/per_context/messageport', names)(exports, primordials, privateSymbols, isolateSymbols);
  return exports;
})();

// Node's library makes an EventTarget of it, and is told of messages by `emitMessage`.
class MessagePort {
  #other;
  #waiting = [];
  #started = false;
  #closed = false;
  #counts = false;

  static pair() {
    const one = new MessagePort(), two = new MessagePort();
    one.#other = two;
    two.#other = one;
    for (const port of [one, two]) port[isolateSymbols.oninit]?.();
    return [one, two];
  }

  postMessage(value, options) {
    const copy = clone(value, (options?.transfer ?? options ?? []));
    if (this.#closed || this.#other.#closed) return;
    ArrayPrototypePush(this.#other.#waiting, copy);
    this.#other.#deliver();
  }

  #deliver() {
    if (!this.#started || this.#waiting.length === 0) return;
    loop.later(() => {
      if (this.#started && !this.#closed && this.#waiting.length > 0) {
        const message = ArrayPrototypeShift(this.#waiting);
        FunctionPrototypeCall(emitMessage, this, message, [], 'message');
      }
      this.#deliver();
    });
  }

  start() { this.#started = true; this.#deliver(); }
  stop() { this.#started = false; }
  take() { return this.#waiting.length > 0 ? [ArrayPrototypeShift(this.#waiting)] : undefined; }
  close() {
    if (this.#closed) return;
    this.unref();
    for (const port of [this, this.#other]) {
      port.#closed = true;
      loop.later(() => port[isolateSymbols.handle_onclose]?.());
    }
  }
  drain() { while (this.#waiting.length > 0) FunctionPrototypeCall(emitMessage, this, ArrayPrototypeShift(this.#waiting), [], 'message'); }
  ref() { if (!this.#counts && !this.#closed) { this.#counts = true; loop.hold(1); } }
  unref() { if (this.#counts) { this.#counts = false; loop.hold(-1); } }
  hasRef() { return this.#counts; }
}

function MessageChannel() {
  const { 0: port1, 1: port2 } = MessagePort.pair();
  this.port1 = port1;
  this.port2 = port2;
}

module.exports = {
  messaging: {
    DOMException, MessagePort, MessageChannel,
    exposeLazyDOMExceptionProperty,
    setDeserializerCreateObjectFunction() {},
    structuredClone: (value, options) => clone(value, options?.transfer ?? []),
    stopMessagePort: (port) => port.stop(),
    drainMessagePort: (port) => port.drain(),
    receiveMessageOnPort: (port) => port.take()?.[0] ?? isolateSymbols.no_message_symbol,
    moveMessagePortToContext: (port) => port,
  },
};
