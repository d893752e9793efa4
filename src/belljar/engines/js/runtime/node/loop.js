// The event loop: timers, immediates, ticks, and calls on the sandbox's kernel that take their time.
'use strict';

const {
  ArrayPrototypePush, FunctionPrototypeCall, Int32Array, MathCeil, MathFloor, MathMax, MathMin, ReflectApply, Uint32Array,
  Uint8Array,
} = primordials;
const kernel = require('belljar/kernel');
const { hooks } = require('belljar/node/hooks');

const HAS_TICK = 0, HAS_REJECTION = 1; // of tickInfo
const COUNT = 0, REFERENCED = 1, OUTSTANDING = 2; // of immediateInfo

const tickInfo = new Uint8Array(2);
const immediateInfo = new Uint32Array(3);
const timerInfo = new Int32Array(1);

let runTicks, runImmediates, runTimers, rejected;
let origin = 0;
let due = Infinity; // when the next timer is
let timersCount = true; // whether the loop waits for them
let active = 0; // what else it waits for
let soon = []; // what is to be run in the next turn
let fatal; // (error, where, fromPromise): nobody caught it

const now = () => MathFloor(native.now() - origin);

function drain() {
  if (tickInfo[HAS_TICK] === 0 && tickInfo[HAS_REJECTION] === 0) native.runMicrotasks();
  if (tickInfo[HAS_TICK] !== 0 || tickInfo[HAS_REJECTION] !== 0) FunctionPrototypeCall(runTicks, process);
}

// Runs something from outside, as Node's C++ side does: then whatever it left to be done at once.
function enter(run) {
  let outcome = native.attempt(run);
  if (outcome.length > 1) fatal(outcome[0], outcome[1]);
  while ((outcome = native.attempt(drain)).length > 1) fatal(outcome[0], outcome[1]);
}

// A call on the kernel that takes its time: `done(error, ...values)` when it is over. The loop waits for it unless it is
// said that it should not.
class Request {
  #counts = true;
  #over = false;

  constructor(name, values, done) {
    active++;
    kernel.background(name, values, (error, ...given) => {
      this.#over = true;
      if (this.#counts) active--;
      enter(() => done(error, ...given));
    });
  }

  count(counts) {
    if (this.#over || counts === this.#counts) return;
    this.#counts = counts;
    active += counts ? 1 : -1;
  }
}

function later(run) {
  ArrayPrototypePush(soon, run);
}

function fireSoon() {
  const due = soon;
  soon = [];
  for (let i = 0; i < due.length; i++) enter(due[i]);
}

function runDueTimers() {
  due = Infinity; // what they start from here on is told by `scheduleTimer`
  const next = ReflectApply(runTimers, process, [now()]);
  if (next === 0) return;
  due = MathMax(next < 0 ? -next : next, now() + 1);
  timersCount = next > 0;
}

function fireTimers() {
  if (due > now()) return;
  enter(() => {
    for (let outcome; (outcome = native.attempt(runDueTimers)).length > 1;) fatal(outcome[0], outcome[1]);
  });
}

function fireImmediates() {
  if (immediateInfo[COUNT] === 0) return;
  do {
    enter(() => FunctionPrototypeCall(runImmediates, process));
  } while (immediateInfo[OUTSTANDING] !== 0);
}

const alive = () => active > 0 || soon.length > 0 || immediateInfo[REFERENCED] > 0 || (due !== Infinity && timersCount);

// One turn. Gives false when there is nothing left to wait for.
function turn() {
  fireTimers();
  if (!alive()) return false;
  const wait = immediateInfo[COUNT] > 0 || soon.length > 0 ? 0 : due === Infinity ? Infinity : MathMax(0, due - (native.now() - origin));
  if (kernel.wait(wait === Infinity ? Infinity : MathCeil(MathMin(wait, 2 ** 30)))) while (kernel.wait(0));
  fireSoon();
  fireImmediates();
  return true;
}

hooks.rejection = (event, promise, value) => rejected?.(event, promise, value);

module.exports = {
  enter, later, now, turn, alive, Request,
  handlers: { set fatal(handler) { fatal = handler; } },
  start() { origin = MathFloor(native.now()); },
  // What keeps the loop waiting without a call of its own: a child process, a signal.
  hold(count) { active += count; },
  task_queue: {
    tickInfo,
    promiseRejectEvents: {
      kPromiseRejectWithNoHandler: 0, kPromiseHandlerAddedAfterReject: 1, kPromiseRejectAfterResolved: 2,
      kPromiseResolveAfterResolved: 3,
    },
    runMicrotasks: native.runMicrotasks,
    setTickCallback(callback) { runTicks = callback; },
    setPromiseRejectCallback(callback) { rejected = callback; },
    enqueueMicrotask(callback) {
      native.enqueueMicrotask(() => {
        const outcome = native.attempt(callback);
        if (outcome.length > 1) fatal(outcome[0]);
      });
    },
  },
  timers: {
    immediateInfo,
    timerInfo,
    setupTimers(immediates, timers) {
      runImmediates = immediates;
      runTimers = timers;
    },
    getLibuvNow: now,
    scheduleTimer(delay) { due = now() + MathMax(1, delay); },
    toggleTimerRef(counts) { timersCount = counts; },
    toggleImmediateRef() {},
  },
};
