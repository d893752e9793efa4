// ES modules as functions: `import` and `export` become calls of the loader, every line stays where it was.
'use strict';

const { ArrayIsArray, ArrayPrototypePush, JSONStringify, ObjectKeys } = primordials;
const acorn = require('internal/deps/acorn/acorn/dist/acorn');

const OPTIONS = { ecmaVersion: 'latest', allowHashBang: true };
const FUNCTIONS = { __proto__: null, FunctionDeclaration: true, FunctionExpression: true, ArrowFunctionExpression: true };

const DYNAMIC = /\bimport\s*[.(]/;
const { braceL, braceR, dollarBraceL, eof } = acorn.tokTypes;

// Functions are only read to their end, and names are not kept: what is wrong in there, the engine says. An interpreter
// takes long to parse.
const Skimmer = acorn.Parser.extend((Base) => class extends Base {
  parseFunctionBody(node, isArrow, isMethod, forInit) {
    if (this.type !== braceL) return super.parseFunctionBody(node, isArrow, isMethod, forInit);
    const body = this.startNode();
    let depth = 0;
    do {
      if (this.type === braceL || this.type === dollarBraceL) depth++;
      else if (this.type === braceR) depth--;
      else if (this.type === eof) this.unexpected();
      this.next();
    } while (depth > 0);
    body.body = [];
    node.body = this.finishNode(body, 'BlockStatement');
    node.expression = false;
    this.exitScope();
  }
  declareName() {}
  checkLocalExport() {}
});

// The tree of a module. Where something inside of functions matters, with them.
function parseModule(code) {
  const options = { ...OPTIONS, sourceType: 'module' };
  if (DYNAMIC.test(code)) return acorn.parse(code, options);
  try {
    return Skimmer.parse(code, options);
  } catch {
    return acorn.parse(code, options);
  }
}

// Whether code that is no script is a module.
function looksLikeModule(code) {
  if (!/\b(?:import|export|await)\b/.test(code)) return false;
  if (native.isFunctionBody(code.startsWith('#!') ? `//${code}` : code)) return false;
  try {
    parseModule(code);
    return true;
  } catch {
    return false;
  }
}

function walk(node, visit, inFunction = false) {
  visit(node, inFunction);
  const inside = inFunction || FUNCTIONS[node.type] === true || node.type === 'PropertyDefinition';
  for (const key of ObjectKeys(node)) {
    const value = node[key];
    if (ArrayIsArray(value)) {
      for (const item of value) if (typeof item?.type === 'string') walk(item, visit, inside);
    } else if (typeof value?.type === 'string') {
      walk(value, visit, inside);
    }
  }
}

function bound(pattern, names) {
  switch (pattern?.type) {
    case 'Identifier': ArrayPrototypePush(names, pattern.name); break;
    case 'ObjectPattern': for (const property of pattern.properties) bound(property.value ?? property.argument, names); break;
    case 'ArrayPattern': for (const element of pattern.elements) bound(element, names); break;
    case 'AssignmentPattern': bound(pattern.left, names); break;
    case 'RestElement': bound(pattern.argument, names); break;
  }
}

class Edits {
  constructor(code) { this.code = code; this.list = []; }
  replace(start, end, text) { ArrayPrototypePush(this.list, { start, end, text }); }
  // Out with it, but for its line ends.
  blank(start, end) { this.replace(start, end, this.code.slice(start, end).replace(/[^\n]+/g, ' ')); }
  apply() {
    let made = '', at = 0;
    for (const { start, end, text } of this.list.sort((a, b) => a.start - b.start)) {
      made += this.code.slice(at, start) + text;
      at = end;
    }
    return made + this.code.slice(at);
  }
}

function replaceDynamic(ast, edits) {
  let waits = false;
  walk(ast, (node, inFunction) => {
    if (node.type === 'ImportExpression') edits.replace(node.start, node.start + 6, '__import');
    else if (node.type === 'MetaProperty' && node.meta.name === 'import') edits.replace(node.start, node.end, '__meta');
    else if (!inFunction && (node.type === 'AwaitExpression' || (node.type === 'ForOfStatement' && node.await))) waits = true;
  });
  return waits;
}

const name = (node) => node.name ?? node.value;

// { head, source, requests, waits }: the body of a function of (__imports, __get, __export, __star, __import, __meta).
function transform(code) {
  const ast = parseModule(code);
  const edits = new Edits(code);
  const requests = [], exported = [];
  let head = '';
  const request = (source) => {
    let at = requests.indexOf(source.value);
    if (at === -1) at = ArrayPrototypePush(requests, source.value) - 1;
    return at;
  };
  const give = (as, expression) => ArrayPrototypePush(exported, `${JSONStringify(as)}: () => ${expression}`);
  const waits = /\bimport\s*[.(]|\bawait\b/.test(code) && replaceDynamic(ast, edits);
  for (const node of ast.body) {
    switch (node.type) {
      case 'ImportDeclaration': {
        const from = request(node.source);
        for (const item of node.specifiers) {
          const what = item.type === 'ImportNamespaceSpecifier' ? `__imports[${from}]`
            : `__get(${from}, ${JSONStringify(item.type === 'ImportDefaultSpecifier' ? 'default' : name(item.imported))})`;
          head += `const ${item.local.name} = ${what};`;
        }
        edits.blank(node.start, node.end);
        break;
      }
      case 'ExportNamedDeclaration':
        if (node.declaration) {
          const names = [];
          if (node.declaration.id) ArrayPrototypePush(names, node.declaration.id.name);
          else for (const one of node.declaration.declarations) bound(one.id, names);
          for (const one of names) give(one, one);
          edits.blank(node.start, node.declaration.start);
        } else {
          const from = node.source ? request(node.source) : -1;
          for (const item of node.specifiers) {
            give(name(item.exported), from < 0 ? name(item.local) : `__get(${from}, ${JSONStringify(name(item.local))})`);
          }
          edits.blank(node.start, node.end);
        }
        break;
      case 'ExportDefaultDeclaration': {
        const { declaration } = node;
        const declares = declaration.type === 'FunctionDeclaration' || declaration.type === 'ClassDeclaration';
        if (declares && declaration.id) {
          give('default', declaration.id.name);
          edits.blank(node.start, declaration.start);
        } else {
          give('default', '__default');
          edits.replace(node.start, declaration.start, 'const __default = ');
        }
        break;
      }
      case 'ExportAllDeclaration': {
        const from = request(node.source);
        if (node.exported) give(name(node.exported), `__imports[${from}]`);
        else head += `__star(${from});`;
        edits.blank(node.start, node.end);
        break;
      }
    }
  }
  exported.sort(); // as a namespace lists them
  return { head: `'use strict';__export({${exported.join(', ')}});${head}`, source: edits.apply(), requests, waits };
}

// The same for a script, whose `import()` is the only thing to replace.
function transformScript(code) {
  if (!/\bimport\s*\(/.test(code)) return code;
  try {
    const edits = new Edits(code);
    replaceDynamic(acorn.parse(code, { ...OPTIONS, sourceType: 'script', allowReturnOutsideFunction: true }), edits);
    return edits.apply();
  } catch {
    return code; // V8 says better what is wrong with it
  }
}

module.exports = { looksLikeModule, transform, transformScript };
