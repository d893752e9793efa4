// TCP by the files of /net/tcp: to programs of the sandbox, and to the network as far as it is granted.
'use strict';

const { SafeMap, StringPrototypeStartsWith } = primordials;
const kernel = require('belljar/kernel');
const { Request, later } = require('belljar/node/loop');
const { Stream } = require('belljar/node/streams');
const { encode } = native;

const AT_FDCWD = -100, O_RDWR = 2, UTF8 = 1, END = 2 ** 53;
const EACCES = -13, EINVAL = -22, ENOTCONN = -107;
const SERVER = 1;

const listening = new SafeMap(); // by port: what this program serves

const isLoopback = (address) => StringPrototypeStartsWith(address, '127.') || address === '::1' || address === '0.0.0.0' || address === '::';
const familyOf = (address) => (address.includes(':') ? 'IPv6' : 'IPv4');

class TCP extends Stream {
  #local;
  #peer;
  #control = -1;
  #number;

  constructor(type) {
    super();
    this.type = type;
    this.isStreamBase = false; // HTTP's parser reads from sockets, not from their handles
  }

  #clone() {
    this.#hold(kernel.call('open', AT_FDCWD, '/net/tcp/clone', O_RDWR, 0)[0]);
  }
  #hold(control) {
    this.#control = control;
    this.#number = encode(kernel.call('read', control, 64), UTF8, 0, END).trim();
  }

  bind(address, port) {
    try {
      this.#clone();
      kernel.call('write', this.#control, `bind ${address}!${port}\n`);
      this.#local = this.#address('local');
    } catch (error) {
      return -error.errno;
    }
    return 0;
  }
  bind6(address, port) { return this.bind(address, port); }

  listen() {
    if (this.#local === undefined) return EINVAL;
    try { kernel.call('write', this.#control, 'listen\n'); } catch (error) { return -error.errno; }
    listening.set(this.#local.port, this);
    this.busy = true;
    this.#accept();
    return 0;
  }

  #accept() {
    new Request('open', [AT_FDCWD, `/net/tcp/${this.#number}/listen`, O_RDWR, 0], (error, control) => {
      if (this.closed || error !== null) {
        if (error === null) kernel.call('close', control);
        return;
      }
      const other = new TCP(0);
      try {
        other.#hold(control);
        other.#attach();
      } catch {
        other.close(); // its client is gone already
        return this.#accept();
      }
      this.#accept();
      this.onconnection(0, other);
    });
  }

  connect(request, address, port) {
    try {
      this.#clone();
    } catch (error) {
      later(() => request.oncomplete(error.errno === 2 ? EACCES : -error.errno, this, request, true, true));
      return 0;
    }
    new Request('write', [this.#control, `connect ${address}!${port}\n`], (error) => {
      if (error !== null) return request.oncomplete(-error.errno, this, request, true, true);
      this.#attach();
      request.oncomplete(0, this, request, true, true);
    });
    return 0;
  }
  connect6(request, address, port) { return this.connect(request, address, port); }

  #attach() {
    const data = kernel.call('open', AT_FDCWD, `/net/tcp/${this.#number}/data`, O_RDWR, 0)[0];
    this.attach(data, data);
  }

  #address(name) {
    const text = encode(kernel.call('read_file', AT_FDCWD, `/net/tcp/${this.#number}/${name}`), UTF8, 0, END).trim();
    const at = text.lastIndexOf('!');
    return { address: text.slice(0, at), port: Number(text.slice(at + 1)), family: familyOf(text.slice(0, at)) };
  }

  shutdown(request) {
    if (this.#control < 0) return super.shutdown(request);
    new Request('write', [this.#control, 'shutdown\n'], () => request.oncomplete(0)); // or the other end is gone
    return 0;
  }

  // Looked up when they are asked for: most servers never ask.
  getsockname(out) { return this.#tell(out, () => (this.#local ??= this.#address('local'))); }
  getpeername(out) { return this.#tell(out, () => (this.#peer ??= this.#address('remote'))); }
  #tell(out, find) {
    if (this.#number === undefined) return ENOTCONN;
    try {
      primordials.ObjectAssign(out, find());
    } catch {
      return ENOTCONN; // it is closed
    }
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
    if (this.#control >= 0) this._release(this.#control);
    if (this.type === SERVER && listening.get(this.#local?.port) === this) listening.delete(this.#local.port);
  }

  // Only who closes a server may want its port again at once.
  _release(fd) {
    if (this.type === SERVER) super._release(fd);
    else kernel.background('close', [fd], () => {});
  }
}

module.exports = {
  // Whether a server of this program is what these words mean.
  serves: (host, port) => (host === 'localhost' || isLoopback(host.replace(/^\[|\]$/g, ''))) && listening.has(Number(port)),
  tcp_wrap: { TCP, TCPConnectWrap: class TCPConnectWrap {} },
};
