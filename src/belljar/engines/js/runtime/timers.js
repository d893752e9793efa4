// setTimeout and its kin. One list in order of time; the loop in guest.cc asks when the next is due.
'use strict';

const { ArrayPrototypeSplice, MathMax, MathMin, Number, ReflectApply, SafeMap, SymbolDispose, SymbolToPrimitive, TypeError } = primordials;

const waiting = []; // in order: earliest first
const byId = new SafeMap();
let last = 0;
let referenced = 0; // how many of them a program waits for before it ends

function schedule(timer, delay) {
  timer.due = native.now() + delay;
  let at = waiting.length;
  while (at > 0 && waiting[at - 1].due > timer.due) at--;
  ArrayPrototypeSplice(waiting, at, 0, timer);
}

function start(callback, delay, values, repeat) {
  if (typeof callback !== 'function') throw new TypeError('The "callback" argument must be of type function.');
  delay = MathMin(MathMax(Number(delay) || 1, 1), 2 ** 31 - 1);
  const timer = { id: ++last, callback, values, due: 0, delay, repeat: repeat ? delay : 0, counts: true };
  referenced++;
  byId.set(timer.id, timer);
  schedule(timer, delay);
  return timer;
}

function count(timer, counts) {
  if (timer.counts === counts) return;
  timer.counts = counts;
  referenced += counts ? 1 : -1;
}

function forget(timer) {
  if (byId.delete(timer.id)) count(timer, false);
}

function clear(id) {
  const timer = byId.get(Number(id));
  if (timer === undefined) return;
  forget(timer);
  for (let i = 0; i < waiting.length; i++) {
    if (waiting[i] === timer) return void ArrayPrototypeSplice(waiting, i, 1);
  }
}

// What Node's own library starts: it may say that nobody waits for it.
class Timeout {
  #timer;
  constructor(timer) { this.#timer = timer; }
  ref() { return this.#count(true); }
  unref() { return this.#count(false); }
  valueOf() { return this.#timer.id; }
  hasRef() { return this.#timer.counts; }
  refresh() {
    const timer = this.#timer;
    if (!byId.has(timer.id)) return this;
    for (let i = 0; i < waiting.length; i++) if (waiting[i] === timer) { ArrayPrototypeSplice(waiting, i, 1); break; }
    schedule(timer, timer.delay);
    return this;
  }
  close() { clear(this.#timer.id); return this; }
  [SymbolDispose]() { clear(this.#timer.id); }
  [SymbolToPrimitive]() { return this.#timer.id; }
  #count(counts) {
    if (byId.has(this.#timer.id)) count(this.#timer, counts);
    return this;
  }
}

module.exports = {
  node: {
    setTimeout: function setTimeout(callback, delay, ...values) { return new Timeout(start(callback, delay, values, false)); },
    setInterval: function setInterval(callback, delay, ...values) { return new Timeout(start(callback, delay, values, true)); },
    setImmediate: function setImmediate(callback, ...values) { return new Timeout(start(callback, 0, values, false)); },
    clearTimeout: function clearTimeout(timer) { clear(timer); },
    clearInterval: function clearInterval(timer) { clear(timer); },
    clearImmediate: function clearImmediate(timer) { clear(timer); },
  },
  globals: {
    setTimeout: function setTimeout(callback, delay, ...values) { return start(callback, delay, values, false).id; },
    setInterval: function setInterval(callback, delay, ...values) { return start(callback, delay, values, true).id; },
    setImmediate: function setImmediate(callback, ...values) { return start(callback, 0, values, false).id; },
    clearTimeout: function clearTimeout(id) { clear(id); },
    clearInterval: function clearInterval(id) { clear(id); },
    clearImmediate: function clearImmediate(id) { clear(id); },
  },
  // Milliseconds until the next one; infinity when there is none.
  next: () => (waiting.length === 0 ? Infinity : MathMax(waiting[0].due - native.now(), 0)),
  // Runs the next one, which is due.
  fire() {
    const timer = ArrayPrototypeSplice(waiting, 0, 1)[0];
    if (timer.repeat > 0) schedule(timer, timer.repeat);
    else forget(timer);
    ReflectApply(timer.callback, undefined, timer.values);
  },
  get referenced() { return referenced; },
  reset() {
    waiting.length = referenced = 0;
    byId.clear();
  },
};
