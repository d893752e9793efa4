// Says what is wrong with code in the words that people (and what they have learnt from) know: V8's, as far as acorn can tell.
'use strict';

const { RegExpPrototypeExec, StringPrototypeReplace, StringPrototypeSlice, StringPrototypeTrimEnd } = primordials;
const { parse } = require('internal/deps/acorn/acorn/dist/acorn');

const LONG = 16 << 10; // acorn takes milliseconds for a thousand characters

function unexpected(token) {
  if (RegExpPrototypeExec(/^[\p{ID_Start}$_#]/u, token) !== null) return `Unexpected identifier '${token}'`;
  if (RegExpPrototypeExec(/^["'`]/, token) !== null) return 'Unexpected string';
  if (RegExpPrototypeExec(/^\d/, token) !== null) return 'Unexpected number';
  return token === '' ? 'Invalid or unexpected token' : `Unexpected token '${token}'`;
}

// { said, line, column }; nothing if acorn finds nothing wrong with it.
module.exports = function explain(code, sourceType) {
  if (code.length > LONG) return undefined;
  try {
    parse(code, { ecmaVersion: 'latest', sourceType, allowHashBang: true, allowReturnOutsideFunction: false });
  } catch (error) {
    if (typeof error.pos !== 'number') return undefined;
    const { line, column } = error.loc;
    let said = StringPrototypeReplace(error.message, / \(\d+:\d+\)$/, '');
    if (error.pos >= StringPrototypeTrimEnd(code).length) said = 'Unexpected end of input';
    else if (said === 'Unexpected token') said = unexpected(StringPrototypeSlice(code, error.pos, error.raisedAt));
    return { said, line, column: column + 1 };
  }
  return undefined;
};
