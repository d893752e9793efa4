// Stacks for Python's fibers: several suspended calls into one Pyodide, switched in any order by JSPI.
//
// Pyodide's run_sync() suspends too, but through asyncio: 60 to 150 us a switch. Here Python calls a WebAssembly function as
// a builtin, so that no JavaScript frame is on the stack (JSPI forbids one), and each stack has a region of memory of its
// own, so that a switch copies nothing. This relies on Pyodide's internals: its version is pinned.

// What SWITCH is, in WebAssembly's text format. METH_O: switch(self, arg).
//   (module
//     (import "e" "save" (func $save (result externref)))
//     (import "e" "wait" (func $wait (param i32)))
//     (import "e" "restore" (func $restore (param externref)))
//     (global $none (import "e" "none") i32)
//     (func (export "switch") (param i32 i32) (result i32) (local $state externref)
//       (local.set $state (call $save)) (call $wait (local.get 1)) (call $restore (local.get $state)) (global.get $none)))
const SWITCH =
  "AGFzbQEAAAABEwRgAAFvYAF/AGABbwBgAn9/AX8CKQQBZQRzYXZlAAABZQR3YWl0AAEBZQdyZXN0b3JlAAIBZQRub25lA38AAwIBAwcKAQZzd2l0Y2gA" +
  "AwoUARIBAW8QACECIAEQASACEAIjAAs=";
const STACK_BYTES = 256 << 10;
const PYTHON_BYTES = 96 << 10; // of each stack: more is a RecursionError; the rest is for C code that does not look
const METH_O = 8;

/**
 * Give Python the module `_stacks`, which belljar/browser/inside/greenlet.py is made of.
 *
 * @param py     Pyodide's API
 * @param sleep  (ms | null) => Promise: resolves when something came from outside, or after so long
 * @param failed (text) => void: a stack ended by an exception, which is a bug
 */
export function installStacks(py, sleep, failed) {
  const M = py._module;
  const regions = []; // by number of the stack: its memory
  const resume = []; // by number: what lets it go on
  const base = M._emscripten_stack_get_base();
  let current = 0; // the stack that runs; 0: the event loop's own
  let leaving = 0; // the stack that ran last
  let home = M.stackSave(); // stack pointer of the event loop's own
  let outside = null; // a promise that the next switch waits for instead of another stack
  let successor = 0; // who goes on when the current stack has ended

  function enter(pointer, number) {
    const was = M.stackSave();
    if (was <= base) home = was; // else a stack has just ended, and the pointer is still in its region
    M.stackRestore(pointer);
    leaving = current = number;
  }

  function save() {
    const state = { thread: M._captureThreadState(), pointer: M.stackSave(), number: current };
    M.stackRestore(home);
    current = 0;
    return state;
  }

  function restore(state) {
    enter(state.pointer, state.number);
    M._restoreThreadState(state.thread);
    M.validSuspender.value = true;
  }

  const wait = new WebAssembly.Suspending((arg) => {
    if (outside !== null) {
      const promise = outside;
      outside = null;
      return promise;
    }
    const to = M._PyLong_AsLong(arg);
    const from = leaving;
    return new Promise((resolve) => {
      resume[from] = resolve;
      wake(to);
    });
  });

  function wake(number) {
    const go = resume[number];
    resume[number] = undefined;
    go();
  }

  // A stack for a callable that must not raise. It starts when it is woken or switched to.
  function begin(number, callable) {
    const kept = callable.copy();
    const pointer = M.PyProxy_getPtr(kept);
    regions[number] ??= M._malloc(STACK_BYTES);
    resume[number] = () => queueMicrotask(async () => {
      const error = M._malloc(4);
      enter((regions[number] + STACK_BYTES) & ~15, number);
      const [result] = await M.promisingApply(pointer, [], 0, [], 0, error);
      M.stackRestore(home);
      if (result === M.error) failed(M.pyproxy_new(M.HEAPU32[error >> 2]).toString());
      M._free(error);
      kept.destroy();
      if (successor) {
        const next = successor;
        successor = 0;
        wake(next);
      }
    });
  }

  const module = new WebAssembly.Module(Uint8Array.from(atob(SWITCH), (c) => c.charCodeAt(0)));
  const { exports } = new WebAssembly.Instance(module, { e: { save, restore, wait, none: M.__Py_NoneStruct } });
  const def = M._malloc(16); // PyMethodDef: name, function, flags, doc; for the interpreter's life
  M.HEAP32.set([M.stringToNewUTF8("switch"), M.addFunction(exports.switch, "iii"), METH_O, 0], def >> 2);
  py.registerJsModule("_stacks", {
    switch: M.pyproxy_new(M._PyCMethod_New(def, 0, 0, 0)), // the builtin itself, where Python imports it
    begin,
    wake,
    ends(to) { successor = to; },
    expect(ms) { outside = sleep(ms ?? null); },
    guard() {
      const top = regions[current] + STACK_BYTES;
      M._PyUnstable_ThreadState_SetStackProtection(M._PyThreadState_Get(), top - PYTHON_BYTES, PYTHON_BYTES);
    },
  });
}
