// Code typed into a session: declarations stay, top-level `await` works, the value is that of the last expression.
'use strict';

const { ArrayPrototypeJoin, ArrayPrototypePush, PromisePrototypeThen, StringPrototypePadEnd, StringPrototypeSlice } = primordials;

const { Parser } = require('internal/deps/acorn/acorn/dist/acorn');
const { script } = require('belljar/code');
const { processTopLevelAwait } = require('internal/repl/await');

// `let`, `const` and `class` at the top become `var`, so that they may be declared again later, as in any console.
function loosen(code) {
  let tree;
  try {
    tree = Parser.parse(code, { ecmaVersion: 'latest', sourceType: 'script', allowAwaitOutsideFunction: true });
  } catch {
    return code; // the engine says what is wrong with it
  }
  const parts = [];
  let at = 0;
  for (let i = 0; i < tree.body.length; i++) {
    const node = tree.body[i];
    if (node.type === 'VariableDeclaration' && (node.kind === 'const' || node.kind === 'let')) {
      ArrayPrototypePush(parts, StringPrototypeSlice(code, at, node.start), StringPrototypePadEnd('var', node.kind.length));
      at = node.start + node.kind.length;
    } else if (node.type === 'ClassDeclaration') {
      ArrayPrototypePush(parts, StringPrototypeSlice(code, at, node.start), `var ${node.id.name}=`);
      ArrayPrototypePush(parts, StringPrototypeSlice(code, node.start, node.end), ';');
      at = node.end;
    }
  }
  ArrayPrototypePush(parts, StringPrototypeSlice(code, at));
  return ArrayPrototypeJoin(parts, '');
}

module.exports = {
  loosen,
  start(code, file, compiled) {
    const awaited = processTopLevelAwait(code);
    if (awaited === null) return script(loosen(code), file, compiled);
    const promise = script(loosen(awaited), file, compiled);
    return PromisePrototypeThen(promise, (result) => result?.value);
  },
};
