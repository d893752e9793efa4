// TCP: to the sandbox's network by the files of /net/tcp; from one end of this program to another by pipes.
'use strict';

const { SafeMap, StringPrototypeStartsWith } = primordials;
const kernel = require('belljar/kernel');
const { Request, later } = require('belljar/node/loop');
const { Stream } = require('belljar/node/streams');
const { encode } = native;

const AT_FDCWD = -100, O_RDWR = 2, UTF8 = 1, END = 2 ** 53;
const EADDRINUSE = -98, ECONNREFUSED = -111, EACCES = -13, EINVAL = -22, ENOTCONN = -107;
const FIRST_PORT = 32768, PORTS = 28000;
const SERVER = 1;

const listening = new SafeMap(); // by port: what this program serves
let lastPort = FIRST_PORT;

const isLoopback = (address) => StringPrototypeStartsWith(address, '127.') || address === '::1' || address === '0.0.0.0' || address === '::';
const familyOf = (address) => (address.includes(':') ? 'IPv6' : 'IPv4');

function freePort() {
  do lastPort = FIRST_PORT + (lastPort + 1 - FIRST_PORT) % PORTS; while (listening.has(lastPort));
  return lastPort;
}

class TCP extends Stream {
  #local;
  #peer;
  #control = -1;

  constructor(type) {
    super();
    this.type = type;
    this.isStreamBase = false; // HTTP's parser reads from sockets, not from their handles
  }

  bind(address, port) {
    if (port !== 0 && listening.has(port)) return EADDRINUSE;
    this.#local = { address, port: port === 0 ? freePort() : port, family: familyOf(address) };
    return 0;
  }
  bind6(address, port) { return this.bind(address, port); }

  listen() {
    if (this.#local === undefined) return EINVAL;
    if (listening.has(this.#local.port)) return EADDRINUSE;
    listening.set(this.#local.port, this);
    this.busy = true;
    return 0;
  }

  connect(request, address, port) {
    const server = isLoopback(address) ? listening.get(port) : undefined;
    if (server !== undefined) this.#join(request, server, address, port);
    else if (isLoopback(address)) later(() => request.oncomplete(ECONNREFUSED, this, request, true, true));
    else this.#dial(request, address, port);
    return 0;
  }
  connect6(request, address, port) { return this.connect(request, address, port); }

  // Another end of this program.
  #join(request, server, address, port) {
    const other = new TCP(0);
    const { 0: reader, 1: theirs } = kernel.call('pipe', 1), { 0: taken, 1: writer } = kernel.call('pipe', 1);
    this.attach(reader, writer);
    other.attach(taken, theirs);
    this.#local = other.#peer = { address, port: freePort(), family: familyOf(address) };
    this.#peer = other.#local = { address, port, family: familyOf(address) };
    later(() => {
      request.oncomplete(0, this, request, true, true);
      if (!server.closed) server.onconnection(0, other);
      else other.close();
    });
  }

  #dial(request, address, port) {
    let number;
    try {
      this.#control = kernel.call('open', AT_FDCWD, '/net/tcp/clone', O_RDWR, 0)[0];
      number = encode(kernel.call('read', this.#control, 64), UTF8, 0, END).trim();
    } catch (error) {
      later(() => request.oncomplete(error.errno === 2 ? EACCES : -error.errno, this, request, true, true));
      return;
    }
    new Request('write', [this.#control, `connect ${address}!${port}\n`], (error) => {
      if (error !== null) return request.oncomplete(-error.errno, this, request, true, true);
      const data = kernel.call('open', AT_FDCWD, `/net/tcp/${number}/data`, O_RDWR, 0)[0];
      this.attach(data, data);
      this.#local = this.#address(number, 'local');
      this.#peer = this.#address(number, 'remote');
      request.oncomplete(0, this, request, true, true);
    });
  }

  #address(number, name) {
    const text = encode(kernel.call('read_file', AT_FDCWD, `/net/tcp/${number}/${name}`), UTF8, 0, END).trim();
    const at = text.lastIndexOf('!');
    return { address: text.slice(0, at), port: Number(text.slice(at + 1)), family: familyOf(text.slice(0, at)) };
  }

  shutdown(request) {
    if (this.#control < 0) return super.shutdown(request);
    try { kernel.call('write', this.#control, 'shutdown\n'); } catch { /* the other end is gone */ }
    later(() => request.oncomplete(0));
    return 0;
  }

  getsockname(out) { return this.#tell(out, this.#local); }
  getpeername(out) { return this.#tell(out, this.#peer); }
  #tell(out, address) {
    if (address === undefined) return ENOTCONN;
    primordials.ObjectAssign(out, address);
    return 0;
  }

  setNoDelay() { return 0; }
  setKeepAlive() { return 0; }
  setTypeOfService() { return 0; }
  getTypeOfService() { return 0; }
  setSimultaneousAccepts() { return 0; }
  open(fd) { this.attach(fd, fd); return 0; }
  reset(callback) { this.close(callback); return 0; }

  _close() {
    super._close();
    if (this.#control >= 0) kernel.call('close', this.#control);
    if (this.type === SERVER && listening.get(this.#local?.port) === this) listening.delete(this.#local.port);
  }
}

module.exports = {
  // Whether a server of this program is what these words mean.
  serves: (host, port) => (host === 'localhost' || isLoopback(host.replace(/^\[|\]$/g, ''))) && listening.has(Number(port)),
  tcp_wrap: { TCP, TCPConnectWrap: class TCPConnectWrap {} },
};
