// Puts what a program expects on the guest's global object, and nothing else.
'use strict';

const { ObjectDefineProperty, ObjectKeys, globalThis } = primordials;
const { Console } = require('internal/console/constructor');
const { print } = require('belljar/output');

function define(name, value, enumerable = false) {
  ObjectDefineProperty(globalThis, name, { __proto__: null, value, writable: true, enumerable, configurable: true });
}

function stream(number) {
  return { write(text) { print(number, text); return true; }, on() {}, once() {}, removeListener() {}, listenerCount: () => 0 };
}

define('console', new Console({ stdout: stream(1), stderr: stream(2), ignoreErrors: true, colorMode: false }));

const web = require('belljar/web');
for (const name of ObjectKeys(web)) define(name, web[name], typeof web[name] === 'function' && name[0] >= 'a');

const { setTransport, ...fetch } = require('belljar/fetch');
for (const name of ObjectKeys(fetch)) define(name, fetch[name], name === 'fetch');
define('global', globalThis);
