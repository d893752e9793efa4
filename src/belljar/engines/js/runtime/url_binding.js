// URLs: parsed by Node's own realm, whose parser is native code.
'use strict';

const { TypedArrayPrototypeSet, Uint32Array } = primordials;
const ask = require('belljar/ask');

const urlComponents = new Uint32Array(9);

function fill(answer) {
  if (answer === undefined) return undefined;
  TypedArrayPrototypeSet(urlComponents, answer[1]);
  return answer[0];
}

function invalid(input, base) {
  const { ERR_INVALID_URL } = require('internal/errors').codes;
  throw base === undefined ? new ERR_INVALID_URL(input) : new ERR_INVALID_URL(input, base);
}

module.exports = {
  urlComponents,
  parse(input, base, raise) {
    const href = fill(ask('parseUrl', input, base));
    if (href === undefined && raise) invalid(input, base);
    return href;
  },
  canParse: (input, base) => ask('call', 'url', 'canParse', input, ...(base === undefined ? [] : [base])),
  update(href, action, value) {
    return fill(ask('updateUrl', href, action, value)) ?? false;
  },
  domainToASCII: (domain) => ask('call', 'url', 'domainToASCII', domain),
  domainToUnicode: (domain) => ask('call', 'url', 'domainToUnicode', domain),
  getOrigin: (url) => new (require('internal/url').URL)(url).origin,
  pathToFileURL: (path, windows, base) => fill(ask('fileUrl', path, windows, base)),
  format: (href, hash, unicode, search, auth) => ask('call', 'url', 'format', href, hash, unicode, search, auth),
};
