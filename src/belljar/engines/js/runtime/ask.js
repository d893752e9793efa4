// Questions to Node's own realm in this process (answer.cjs), which runs what Node's library has in C++.
'use strict';

const { Error, ObjectAssign } = primordials;

const errors = { __proto__: null };
for (const name of ['TypeError', 'RangeError', 'SyntaxError']) errors[name] = primordials[name];

function rebuild({ type, message, ...rest }) {
  return ObjectAssign(new (errors[type] ?? Error)(message), rest);
}

module.exports = function ask(...question) {
  const { 0: value, 1: error } = native.ask(question);
  if (error !== undefined) throw rebuild(error);
  return value;
};
module.exports.rebuild = rebuild;
