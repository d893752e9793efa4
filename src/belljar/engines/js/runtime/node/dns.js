// Names: asked of the sandbox's network, by its file /net/dns.
'use strict';

const { ArrayPrototypeFilter, ArrayPrototypeMap, ArrayPrototypePush, Number, StringPrototypeSplit } = primordials;
const ask = require('belljar/ask');
const kernel = require('belljar/kernel');
const { Request, later } = require('belljar/node/loop');
const { encode } = native;

const UTF8 = 1, END = 2 ** 53, AT_FDCWD = -100, O_RDWR = 2, ENOENT = 2, EACCES = 13;
const NO_NAME = -3008, TRY_AGAIN = -3001, DENIED = -13; // as libuv numbers them
const IPV6_FIRST = 2;

class RequestWrap {}

// One question: `done(errno, records)`, a record is { type, ttl, data }.
function resolve(name, type, done) {
  let fd;
  try {
    fd = kernel.call('open', AT_FDCWD, '/net/dns', O_RDWR, 0)[0];
  } catch {
    return void later(() => done(EACCES));
  }
  const finish = (errno) => {
    const lines = encode(kernel.call('read', fd, 1 << 16), UTF8, 0, END);
    kernel.call('close', fd);
    if (errno !== 0) return done(errno, []);
    const records = [];
    for (const line of StringPrototypeSplit(lines, '\n')) {
      const { 1: ttl, 2: kind, ...rest } = StringPrototypeSplit(line, ' ');
      if (kind !== undefined) ArrayPrototypePush(records, { type: kind, ttl: Number(ttl), data: primordials.ObjectValues(rest).slice(1).join(' ') });
    }
    done(0, ArrayPrototypeFilter(records, (record) => record.type === type));
  };
  return void new Request('write', [fd, `${name} ${type}`], (error) => finish(error === null ? 0 : error.errno));
}

const isLocal = (name) => name === 'localhost' || name.endsWith('.localhost');

function getaddrinfo(request, name, family, _flags, order) {
  if (isLocal(name)) {
    later(() => request.oncomplete(null, family === 6 ? ['::1'] : ['127.0.0.1']));
    return 0;
  }
  const types = family === 4 ? ['A'] : family === 6 ? ['AAAA'] : order === IPV6_FIRST ? ['AAAA', 'A'] : ['A', 'AAAA'];
  const found = [];
  let failed = 0, left = types.length;
  types.forEach((type, index) => resolve(name, type, (errno, records) => {
    if (errno !== 0) failed = errno;
    else found[index] = ArrayPrototypeMap(records, (record) => record.data);
    if (--left > 0) return;
    const addresses = found.flat().filter((address) => address !== undefined);
    if (addresses.length > 0) request.oncomplete(null, addresses);
    else request.oncomplete(failed === EACCES ? DENIED : failed === ENOENT || failed === 0 ? NO_NAME : TRY_AGAIN);
  }));
  return 0;
}

// What a record of each type says, as Node gives it.
const unquote = (text) => [...text.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map((match) => (match[1] ?? match[2]).replace(/\\(.)/g, '$1'));
const bare = (name) => name.replace(/\.$/, '');
const READ = {
  __proto__: null,
  A: (data) => data, AAAA: (data) => data, CNAME: bare, NS: bare, PTR: bare, TXT: unquote,
  MX(data) { const { 0: priority, 1: exchange } = data.split(' '); return { exchange: bare(exchange), priority: Number(priority) }; },
  SRV(data) {
    const { 0: priority, 1: weight, 2: port, 3: name } = data.split(' ');
    return { name: bare(name), port: Number(port), priority: Number(priority), weight: Number(weight) };
  },
  CAA(data) { const { 0: critical, 1: tag, 2: value } = data.split(' '); return { critical: Number(critical), [tag]: unquote(value ?? '')[0] }; },
  SOA(data) {
    const { 0: nsname, 1: hostmaster, 2: serial, 3: refresh, 4: retry, 5: expire, 6: minttl } = data.split(' ');
    return { nsname: bare(nsname), hostmaster: bare(hostmaster), serial: +serial, refresh: +refresh, retry: +retry, expire: +expire, minttl: +minttl };
  },
};

class ChannelWrap {
  getServers() { return []; }
  setServers() { return 0; }
  setLocalAddress() {}
  cancel() {}
  #query(type, request, name) {
    resolve(name, type, (errno, records) => {
      if (errno !== 0) return request.oncomplete(errno === ENOENT ? 'ENOTFOUND' : errno === EACCES ? 'EREFUSED' : 'ESERVFAIL');
      if (records.length === 0) return request.oncomplete('ENODATA');
      const values = ArrayPrototypeMap(records, ({ data }) => READ[type](data));
      request.oncomplete(null, type === 'SOA' ? values[0] : values, ArrayPrototypeMap(records, ({ ttl }) => ttl));
    });
    return 0;
  }
  queryA(request, name) { return this.#query('A', request, name); }
  queryAaaa(request, name) { return this.#query('AAAA', request, name); }
  queryCaa(request, name) { return this.#query('CAA', request, name); }
  queryCname(request, name) { return this.#query('CNAME', request, name); }
  queryMx(request, name) { return this.#query('MX', request, name); }
  queryNs(request, name) { return this.#query('NS', request, name); }
  queryPtr(request, name) { return this.#query('PTR', request, name); }
  querySoa(request, name) { return this.#query('SOA', request, name); }
  querySrv(request, name) { return this.#query('SRV', request, name); }
  queryTxt(request, name) { return this.#query('TXT', request, name); }
  getHostByAddr(request, address) { return this.#query('PTR', request, `${address.split('.').reverse().join('.')}.in-addr.arpa`); }
}

module.exports = {
  cares_wrap: {
    ChannelWrap, getaddrinfo,
    getnameinfo: () => NO_NAME,
    GetAddrInfoReqWrap: RequestWrap, GetNameInfoReqWrap: class extends RequestWrap {}, QueryReqWrap: class extends RequestWrap {},
    canonicalizeIP: (address) => ask('call', 'cares_wrap', 'canonicalizeIP', address),
    convertIpv6StringToBuffer: (address) => ask('call', 'cares_wrap', 'convertIpv6StringToBuffer', address),
    strerror: (code) => ask('call', 'cares_wrap', 'strerror', code),
  },
};
