// setTimeout and its kin. One list in order of time; the loop in guest.cc asks when the next is due.
'use strict';

const { ArrayPrototypeSplice, MathMax, MathMin, Number, ReflectApply, SafeMap, TypeError } = primordials;

const waiting = []; // in order: earliest first
const byId = new SafeMap();
let last = 0;

function schedule(timer, delay) {
  timer.due = native.now() + delay;
  let at = waiting.length;
  while (at > 0 && waiting[at - 1].due > timer.due) at--;
  ArrayPrototypeSplice(waiting, at, 0, timer);
}

function start(callback, delay, values, repeat) {
  if (typeof callback !== 'function') throw new TypeError('The "callback" argument must be of type function.');
  delay = MathMin(MathMax(Number(delay) || 1, 1), 2 ** 31 - 1);
  const timer = { id: ++last, callback, values, due: 0, repeat: repeat ? delay : 0 };
  byId.set(timer.id, timer);
  schedule(timer, delay);
  return timer.id;
}

function clear(id) {
  const timer = byId.get(typeof id === 'object' ? id : Number(id));
  if (timer === undefined) return;
  byId.delete(timer.id);
  for (let i = 0; i < waiting.length; i++) {
    if (waiting[i] === timer) return void ArrayPrototypeSplice(waiting, i, 1);
  }
}

module.exports = {
  globals: {
    setTimeout: function setTimeout(callback, delay, ...values) { return start(callback, delay, values, false); },
    setInterval: function setInterval(callback, delay, ...values) { return start(callback, delay, values, true); },
    setImmediate: function setImmediate(callback, ...values) { return start(callback, 0, values, false); },
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
    else byId.delete(timer.id);
    ReflectApply(timer.callback, undefined, timer.values);
  },
  reset() {
    waiting.length = 0;
    byId.clear();
  },
};
