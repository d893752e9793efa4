// Stacks, and what is shown of an error that nobody caught.
'use strict';

const {
  ArrayPrototypeFilter, ArrayPrototypeMap, ArrayPrototypeSlice, Error, ErrorCaptureStackTrace, MathMax, ReflectApply, StringPrototypeIncludes,
  StringPrototypeRepeat, StringPrototypeReplace, StringPrototypeSlice, StringPrototypeStartsWith,
} = primordials;
const { privateSymbols } = native.realm;
const { hooks } = require('belljar/node/hooks');
const loop = require('belljar/node/loop');

const OURS_MOST = 8; // frames of ours above a guest's

let prepare, before, after;
let mapsEnabled = false, sourceOfMap;
let exit; // ends the process

const ours = (name) => typeof name === 'string' && StringPrototypeStartsWith(name, 'node:belljar/');
const withoutOurs = (sites) => ArrayPrototypeFilter(sites, (site) => !ours(site.getFileName()));

hooks.trace = (error, sites) => {
  const { stackTraceLimit: limit } = Error;
  const seen = withoutOurs(sites);
  return prepare(globalThis, error, typeof limit === 'number' && limit >= 0 ? ArrayPrototypeSlice(seen, 0, limit) : seen);
};

// Runs what may make an error in the midst of our own calls: that those are not seen costs none of the others.
function deeply(run) {
  const { stackTraceLimit: limit } = Error;
  if (typeof limit !== 'number' || !(limit > 0)) return run();
  Error.stackTraceLimit = limit + OURS_MOST;
  try {
    return run();
  } finally {
    Error.stackTraceLimit = limit;
  }
}

// The places the code that asks is called from, as `util.getCallSites` gives them.
function callSites(count) {
  const limit = Error.stackTraceLimit, { overrideStackTrace } = require('internal/errors');
  Error.stackTraceLimit = count + 16;
  const holder = {};
  let sites = [];
  overrideStackTrace.set(holder, (_error, trace) => { sites = trace; return ''; });
  ErrorCaptureStackTrace(holder, callSites);
  void holder.stack;
  Error.stackTraceLimit = limit;
  return ArrayPrototypeMap(sites.slice(0, count), (site) => ({
    functionName: site.getFunctionName() ?? '', scriptId: `${site.getScriptHash?.() ?? ''}`, scriptName: site.getFileName() ?? site.getEvalOrigin() ?? '',
    lineNumber: site.getLineNumber() ?? 0, columnNumber: site.getColumnNumber() ?? 0, column: site.getColumnNumber() ?? 0,
  }));
}

// The line of source an error is from, and where in it: "file:line\nsource\n  ^^^\n".
function arrowOf(where) {
  if (where === undefined) return '';
  const { 0: name, 1: line, 2: text, 3: start, 4: end } = where;
  const file = name ?? '<anonymous_script>';
  if (typeof file !== 'string' || ours(file) || StringPrototypeIncludes(text, 'node-do-not-add-exception-line')) return '';
  if (mapsEnabled && sourceOfMap !== undefined) {
    const mapped = sourceOfMap(file, line, start);
    if (mapped) return mapped;
  }
  const before = StringPrototypeReplace(StringPrototypeSlice(text, 0, start), /[^\t]/g, ' ');
  return `${file}:${line}\n${text}\n${before}${StringPrototypeRepeat('^', MathMax(end - start, 1))}\n`;
}

const isError = (value) => native.typeOf(value) === 'NativeError';

// An error is told once where it is from, for whoever shows it.
function decorate(error, where = native.where(error)) {
  if (isError(error)) error[privateSymbols.arrow_message_private_symbol] ??= arrowOf(where);
}

// Runs what links code: what is wrong with that is shown with the line it is in.
function explained(run) {
  try {
    return run();
  } catch (error) {
    decorate(error);
    throw error;
  }
}

// Runs what compiles code: that line is part of the error's stack.
function compiling(run) {
  try {
    return deeply(() => explained(run));
  } catch (error) {
    const { arrow_message_private_symbol: arrow, decorated_private_symbol: decorated } = privateSymbols;
    if (isError(error) && error[arrow] && !error[decorated] && typeof error.stack === 'string') {
      error.stack = `${error[arrow]}\n${error.stack}`;
      error[decorated] = true;
    }
    throw error;
  }
}

function show(error, where) {
  const { inspect } = require('internal/util/inspect');
  if (isError(error)) {
    decorate(error, where);
    let stack;
    try {
      before(error);
      stack = after(error);
    } catch { /* its own code throws again */ }
    stack ??= error.stack;
    const arrow = error[privateSymbols.decorated_private_symbol] ? '' : error[privateSymbols.arrow_message_private_symbol];
    return `${arrow === '' ? '' : `${arrow}\n`}${stack}\n`;
  }
  const isObject = (typeof error === 'object' && error !== null) || typeof error === 'function';
  let shown;
  try {
    shown = isObject ? inspect(error) : String(error);
  } catch {
    shown = 'an exception that can not be shown';
  }
  const hint = isObject ? '' : '(Use `node --trace-uncaught ...` to show where the exception was thrown)\n';
  return `\n${arrowOf(where)}${shown}\n${hint}`;
}

// As Node's C++ side: JavaScript may handle it; else it is shown, and the process ends.
function triggerUncaughtException(error, fromPromise, where) {
  where ??= isError(error) ? native.where(error) : undefined;
  decorate(error, where);
  let handled = false;
  const outcome = native.attempt(() => { handled = ReflectApply(process._fatalException, process, [error, fromPromise === true]); });
  if (outcome.length > 1) return exit(7, show(outcome[0], outcome[1]));
  if (handled) return undefined;
  const { 1: code, 2: isSet } = process[privateSymbols.exit_info_private_symbol];
  return exit(isSet ? code : 1, `${show(error, where)}\nNode.js ${process.version}\n`);
}
loop.handlers.fatal = (error, where) => triggerUncaughtException(error, false, where);

// Of a main module that waits for what never comes: where.
function stalled(number) {
  const where = native.stalled(number);
  return where === undefined ? '' : `Warning: Detected unsettled top-level await at ${arrowOf(where)}\n\n\n`;
}

module.exports = {
  callSites, compiling, deeply, explained, stalled,
  setExit(handler) { exit = handler; },
  errors: {
    setPrepareStackTraceCallback(callback) { prepare = callback; native.formatTraces(); },
    setEnhanceStackForFatalException(first, second) { before = first; after = second; },
    setGetSourceMapErrorSource(callback) { sourceOfMap = callback; },
    setSourceMapsEnabled(enabled) { mapsEnabled = enabled; },
    setMaybeCacheGeneratedSourceMap() {},
    noSideEffectsToString(value) {
      try {
        return isError(value) ? `${value.name}: ${value.message}` : typeof value === 'object' && value !== null ? `#<${native.constructorName(value)}>` : String(value);
      } catch {
        return '[object]';
      }
    },
    triggerUncaughtException,
    getErrorSourcePositions(error) {
      const { 0: file, 1: line, 2: source, 3: start } = native.where(error);
      return { sourceLine: source, scriptResourceName: file, lineNumber: line, startColumn: start };
    },
  },
};
