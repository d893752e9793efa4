// What a session's programs say of their functions: whether one means the same wherever its text is evaluated again.
//
// A function at the top of a program does: all it uses is global. One inside another function or a block may use
// names of those, which its text alone does not give back; then they are its `captures`.
'use strict';

const { ArrayIsArray, ArrayPrototypePush, ObjectKeys, SafeMap, SafeSet, StringPrototypeSlice } = primordials;
const { Parser } = require('internal/deps/acorn/acorn/dist/acorn');

const OPTIONS = { ecmaVersion: 'latest', sourceType: 'script', allowAwaitOutsideFunction: true, allowReturnOutsideFunction: true };
const FUNCTIONS = new SafeSet(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);
const CLASSES = new SafeSet(['ClassDeclaration', 'ClassExpression']);
const BLOCKS = new SafeSet(['BlockStatement', 'ForStatement', 'ForInStatement', 'ForOfStatement', 'CatchClause', 'SwitchStatement']);
// What an arrow function has from around it.
const LEXICAL = new SafeSet(['this', 'arguments', 'super', 'new.target']);

const known = new SafeMap(); // by source text: { captures: SafeSet, members: SafeSet, needs: SafeSet, isClass, isPrivate }
const read = new SafeSet();
let unread = [];

function eachChild(node, visit) {
  const keys = ObjectKeys(node);
  for (let i = 0; i < keys.length; i++) {
    const held = node[keys[i]];
    if (ArrayIsArray(held)) {
      for (let j = 0; j < held.length; j++) if (typeof held[j]?.type === 'string') visit(held[j], keys[i]);
    } else if (typeof held?.type === 'string') {
      visit(held, keys[i]);
    }
  }
}

const isMethod = (node) => node.type === 'MethodDefinition' || node.type === 'Property' && (node.method || node.kind !== 'init');

// The names a pattern binds.
function bound(pattern, names) {
  if (pattern === null) return;
  switch (pattern.type) {
    case 'Identifier': names.add(pattern.name); break;
    case 'MemberExpression': break;
    case 'Property': bound(pattern.value, names); break;
    case 'AssignmentPattern': bound(pattern.left, names); break;
    default: eachChild(pattern, (child) => bound(child, names));
  }
}

// Every name declared somewhere in a function; or, in a block of a program's top, those that stay in the block.
function declared(node, names, isBlock) {
  eachChild(node, (child, key) => {
    if (child.type === 'VariableDeclaration' && !(isBlock && child.kind === 'var')) {
      for (let i = 0; i < child.declarations.length; i++) bound(child.declarations[i].id, names);
    }
    if ((FUNCTIONS.has(child.type) || CLASSES.has(child.type)) && child.id) names.add(child.id.name);
    if (key === 'param' || key === 'params') bound(child, names);
    if (!(isBlock && FUNCTIONS.has(child.type))) declared(child, names, isBlock);
  });
  return names;
}

// Every name that occurs in some code, but as the name of a property.
function used(node, names) {
  eachChild(node, (child, key) => {
    const isKey = (key === 'property' || key === 'key') && !node.computed && !node.shorthand;
    if (child.type === 'Identifier') {
      if (!isKey) names.add(child.name);
      return;
    }
    if (child.type === 'ThisExpression') names.add('this');
    if (child.type === 'Super') names.add('super');
    if (child.type === 'MetaProperty') names.add('new.target');
    used(child, names);
  });
  return names;
}

function note(code, node, scopes) {
  const isClass = CLASSES.has(node.type);
  const names = used(node, new SafeSet());
  const info = { captures: new SafeSet(), members: new SafeSet(), needs: new SafeSet(), isClass, isPrivate: false };
  for (let i = 0; i < scopes.length; i++) {
    const scope = scopes[i];
    names.forEach((name) => {
      const lexical = LEXICAL.has(name) && (node.type === 'ArrowFunctionExpression' && scope.isFunction);
      if (lexical || name === 'eval' || scope.names.has(name)) info.captures.add(name);
    });
  }
  if (isMethod(node) && names.has('super')) info.captures.add('super');
  if (isClass) {
    if (node.superClass) used({ type: '', superClass: node.superClass }, info.needs);
    for (let i = 0; i < node.body.body.length; i++) {
      const member = node.body.body[i];
      if (member.key?.type === 'PrivateIdentifier') info.isPrivate = true;
      else if (member.type === 'MethodDefinition') info.members.add(text(code, member));
      if (member.computed) used({ type: '', key: member.key, computed: true }, info.needs);
      if (member.static || member.type === 'StaticBlock') used(member, info.needs);
    }
  }
  const source = text(code, node);
  const before = known.get(source);
  if (before !== undefined) before.captures.forEach((name) => info.captures.add(name));
  known.set(source, info);
}

// As Function.prototype.toString gives it.
function text(code, node) {
  const source = StringPrototypeSlice(code, node.start, node.end);
  return node.type === 'MethodDefinition' && node.static ? StringPrototypeSlice(source, 6).trimStart() : source;
}

function visit(code, node, scopes) {
  const isFunction = FUNCTIONS.has(node.type);
  if (isFunction || CLASSES.has(node.type) || isMethod(node)) note(code, node, scopes);
  let inner = scopes;
  if (isFunction || node.type === 'StaticBlock') {
    const names = declared(node, new SafeSet());
    if (node.id && node.type === 'FunctionExpression') names.add(node.id.name);
    inner = [...scopes, { names, isFunction: node.type !== 'ArrowFunctionExpression' }];
  } else if (node.type === 'ClassExpression' && node.id) {
    inner = [...scopes, { names: new SafeSet([node.id.name]), isFunction: false }];
  } else if (BLOCKS.has(node.type) && scopes.length === 0) {
    const names = declared(node, new SafeSet(), true);
    if (names.size > 0) inner = [{ names, isFunction: false }];
  } else if (node.type === 'PropertyDefinition') {
    inner = [...scopes, { names: new SafeSet(), isFunction: true }]; // whose `this` is the object
  }
  eachChild(node, (child) => visit(code, child, inner));
}

module.exports = {
  // A program that is about to run.
  remember(code) {
    if (read.has(code)) return;
    read.add(code);
    ArrayPrototypePush(unread, code);
  },
  // What is known of a function by its source; undefined if no program had it.
  find(source) {
    for (let i = 0; i < unread.length; i++) {
      try {
        visit(unread[i], Parser.parse(unread[i], OPTIONS), []);
      } catch {
        continue; // it did not run either, or nests deeper than can be followed: nothing is known of its functions
      }
    }
    unread = [];
    return known.get(source);
  },
};
