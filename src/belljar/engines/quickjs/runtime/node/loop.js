// What files shared with V8's programs use of their event loop.
'use strict';

const kernel = require('belljar/kernel');
const { globals: { setImmediate } } = require('belljar/timers');

class Request {
  constructor(name, values, done) {
    kernel.background(name, values, done);
  }
}

module.exports = { later: setImmediate, Request };
