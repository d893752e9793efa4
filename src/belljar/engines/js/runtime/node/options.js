// Command-line options, by Node's own table of them.
'use strict';

const { MathMax, ObjectAssign, RegExpPrototypeExec, SafeMap } = primordials;
const ask = require('belljar/ask');

const { values: { types, envSettings }, info, defaults } = ask('options');
const options = new SafeMap(info.options), aliases = new SafeMap(info.aliases);
let values = { __proto__: null, ...defaults };

// Flags that V8 would take: what they ask for is not ours to change, but nobody is turned away for it.
const ENGINE = /^--(?:no-)?(?:max-|stack-|harmony|expose-gc|trace-|abort-|perf-|interpreted-|jitless|turbo|optimize|allow-natives|single-threaded|huge-|enable-|disable-|use-|predictable|random-seed|gc-|semi-space|min-semi|initial-|always-|lite-mode|v8-|js-|experimental-)/;

class BadOption extends primordials.Error {}

function set(name, negated, text, made, next) {
  const option = options.get(name);
  if (option === undefined) {
    if (RegExpPrototypeExec(ENGINE, name) !== null) return;
    throw new BadOption(`bad option: ${negated ? `--no-${name.slice(2)}` : name}${text === undefined ? '' : `=${text}`}`);
  }
  const take = () => {
    const value = text ?? next();
    if (value === undefined || (text === undefined && value.length > 1 && value[0] === '-')) throw new BadOption(`${name} requires an argument`);
    return value;
  };
  switch (option.type) {
    case types.kBoolean: made[name] = !negated; made[`--no-${name.slice(2)}`] = negated; break;
    case types.kInteger: made[name] = Number(take()); break;
    case types.kUInteger: made[name] = MathMax(0, Number(take())); break;
    case types.kString: made[name] = take(); break;
    case types.kStringList: made[name] = [...made[name], take()]; break;
    case types.kHostPort: take(); break;
  }
  if (name === '--eval') made['[has_eval_string]'] = true;
}

// Takes the options from the front of the words, and gives how many those were.
function parse(words, made) {
  const left = [...words];
  let count = 0, inserted = 0; // how many at the front an alias stands for
  const next = () => {
    if (inserted > 0) inserted--;
    else count++;
    return left.shift();
  };
  while (left.length > 0) {
    if (inserted === 0 && (left[0].length <= 1 || left[0][0] !== '-')) break;
    const word = next();
    if (word === '--') break;
    const at = word.startsWith('--') ? word.indexOf('=') : -1;
    const text = at < 0 ? undefined : word.slice(at + 1);
    let name = at < 0 ? word : word.slice(0, at);
    if (name.startsWith('--')) name = `--${name.slice(2).replaceAll('_', '-')}`;
    if (name === '--print' && text === undefined && left.length > 0 && !(left[0].length > 1 && left[0][0] === '-')) {
      set('--print', false, undefined, made, next);
      set('--eval', false, undefined, made, next);
      continue;
    }
    const alias = aliases.get(name) ?? (text === undefined ? undefined : aliases.get(`${name}=`));
    if (alias !== undefined && alias[0] !== name) {
      const words = [...alias];
      if (text !== undefined) words[words.length - 1] += `=${text}`;
      left.unshift(...words);
      inserted += words.length;
      continue;
    }
    const negated = name.startsWith('--no-') && !options.has(name);
    set(negated ? `--${name.slice(5)}` : name, negated, text, made, next);
  }
  return count;
}

module.exports = {
  BadOption,
  // The words of a command line: { flags, rest }. NODE_OPTIONS come first.
  read(words, environment) {
    values = { __proto__: null, ...defaults };
    const extra = (environment ?? '').split(/\s+/).filter((word) => word !== '');
    if (parse(extra, values) < extra.length) throw new BadOption(`${extra.find((word) => word[0] !== '-')} is not allowed in NODE_OPTIONS`);
    const count = parse(words, values);
    const flags = words.slice(0, count);
    if (values['--print'] && values['[has_eval_string]'] === undefined) values['[has_eval_string]'] = false;
    return { flags, rest: words.slice(count), values };
  },
  options: {
    getCLIOptionsValues: () => values,
    getCLIOptionsInfo: () => ({ options, aliases }),
    getOptionsAsFlags: () => [],
    getEmbedderOptions: () => ({
      __proto__: null, shouldNotRegisterESMLoader: false, noGlobalSearchPaths: false, noBrowserGlobals: false, hasEmbedderPreload: false,
    }),
    types,
    envSettings,
  },
};
