// What the engine calls: by the names that the addon has for them. Each is set by the file it belongs to.
'use strict';

const hooks = {
  __proto__: null,
  program() {}, // run a program to the end of its main script
  turn: () => -1, // one turn of its event loop
  rejection() {}, // of a promise that nobody handles, or that somebody does now
  reseed() {}, // in a new process
  import() {}, // a dynamic import
  importMeta() {},
  resolve() {}, // the number of the module that another asks for
  evaluate() {}, // of a synthetic module
  trace() {}, // the text of a stack
};

module.exports = { hooks };
