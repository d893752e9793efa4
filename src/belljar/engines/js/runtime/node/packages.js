// package.json files: what Node's C++ side reads of them for the loaders.
'use strict';

const { JSONParse, JSONStringify, SafeMap } = primordials;
const kernel = require('belljar/kernel');
const { encode } = native;

const AT_FDCWD = -100, UTF8 = 1, END = 2 ** 53;
const known = new SafeMap();

// A target of `exports` or `imports`: JSON for what is no string.
const plain = (value) => (value === undefined ? undefined : typeof value === 'string' ? value : JSONStringify(value));

// [name, main, type, imports, exports, path] or undefined.
function readFile(path, isESM, base, specifier) {
  if (known.has(path)) return known.get(path);
  let text, made;
  try {
    text = encode(kernel.call('read_file', AT_FDCWD, path), UTF8, 0, END);
  } catch {
    known.set(path, undefined);
    return undefined;
  }
  let json;
  try {
    json = JSONParse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
  } catch (error) {
    const { ERR_INVALID_PACKAGE_CONFIG } = require('internal/errors').codes;
    const from = base === undefined ? undefined
      : specifier === undefined ? base : `"${specifier}" from ${base.startsWith('file:') ? require('internal/url').fileURLToPath(base) : base}`;
    throw new ERR_INVALID_PACKAGE_CONFIG(path, from, error.message);
  }
  if (typeof json === 'object' && json !== null) {
    const { name, main, type, imports, exports } = json;
    made = [typeof name === 'string' ? name : undefined, typeof main === 'string' ? main : undefined,
      type === 'module' || type === 'commonjs' ? type : 'none', imports === null ? undefined : plain(imports),
      exports === null ? undefined : plain(exports), path];
  }
  known.set(path, made);
  return made;
}

function nearest(file) {
  const { dirname } = require('path');
  for (let at = dirname(file); ; at = dirname(at)) {
    if (!at.endsWith('/node_modules')) {
      const found = readFile(at === '/' ? '/package.json' : `${at}/package.json`);
      if (found !== undefined) return found;
    }
    if (at === '/' || at === '.') return undefined;
  }
}

const withNulls = (found) => found && [found[0], found[1], found[2], found[3] ?? null, found[4] ?? null, found[5]];

// Of a URL: the package it is in, or the path of the package.json that there is not.
function scopeOf(url) {
  const { fileURLToPath, URL } = require('internal/url');
  for (let at = new URL('./package.json', url); ;) {
    if (at.pathname.endsWith('node_modules/package.json')) return fileURLToPath(at);
    const found = readFile(fileURLToPath(at));
    if (found !== undefined) return found;
    const above = new URL('../package.json', at);
    if (above.pathname === at.pathname) return fileURLToPath(at);
    at = above;
  }
}

module.exports = {
  modules: {
    readPackageJSON: (path, ...where) => withNulls(readFile(path, ...where)),
    getNearestParentPackageJSON: (path) => withNulls(nearest(path)),
    getNearestParentPackageJSONType: (path) => nearest(path)?.[2] ?? 'none',
    getPackageScopeConfig(url) {
      const found = scopeOf(url);
      return typeof found === 'string' ? found : withNulls(found);
    },
    getPackageType(url) {
      const found = scopeOf(url);
      return typeof found === 'string' || found[2] === 'none' ? undefined : found[2];
    },
    enableCompileCache: () => [3],
    getCompileCacheDir() {},
    flushCompileCache() {},
    getCompileCacheEntry() {},
    saveCompileCacheEntry() {},
    setLazyPathHelpers(meta, url) {
      const { dirname } = require('path');
      const { fileURLToPath } = require('internal/url');
      const filename = fileURLToPath(url);
      meta.dirname = dirname(filename);
      meta.filename = filename;
    },
  },
};
