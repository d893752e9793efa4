// URLs, by the parser that the host has.
'use strict';

const urlComponents = new Uint32Array(9);
const invalid = (input, base) => {
  const { ERR_INVALID_URL } = require('internal/errors').codes;
  throw base === undefined ? new ERR_INVALID_URL(input) : new ERR_INVALID_URL(input, base);
};
module.exports = {
  urlComponents,
  parse(input, base, raise) {
    const href = native.parseUrl(urlComponents, input, base);
    if (href === undefined && raise) invalid(input, base);
    return href;
  },
  canParse: (input, base) => native.parseUrl(new Uint32Array(9), input, base) !== undefined,
  update: (href, action, value) => native.updateUrl(urlComponents, href, action, value) ?? false,
  domainToASCII(domain) {
    return native.parseUrl(new Uint32Array(9), `ws://${domain}`, undefined) === undefined ? '' : new (require('internal/url').URL)(`ws://${domain}`).hostname;
  },
  domainToUnicode: (domain) => domain,
  getOrigin: (url) => new (require('internal/url').URL)(url).origin,
  pathToFileURL(path) {
    const href = native.parseUrl(urlComponents, 'file://', undefined);
    return native.updateUrl(urlComponents, href, 6, path);
  },
  format(href, hash, unicode, search, auth) {
    const url = new (require('internal/url').URL)(href);
    if (!hash) url.hash = '';
    if (!search) url.search = '';
    if (!auth) url.username = url.password = '';
    return url.href;
  },
};
