"""The module `_ssl` of a sandbox: TLS is spoken outside of it, by the broker of its owner, which verifies every server.

The standard library's `ssl` stands on this. A handshake asks the broker to speak TLS from there on and to verify the
server's name; what is sent and received in the sandbox is plain. So the settings of a context that say what to trust
have no effect: trusted is what the sandbox's owner trusts, whatever `verify_mode` says.
"""

import base64
import json
import weakref

from _belljar import dialling
from _belljar.sockets import PREFACE, socket

OPENSSL_VERSION = "OpenSSL 3.5.0 (spoken outside of this sandbox)"
OPENSSL_VERSION_INFO = _OPENSSL_API_VERSION = (3, 5, 0, 0, 0)
OPENSSL_VERSION_NUMBER = 0x30500000
_DEFAULT_CIPHERS = "@SECLEVEL=2:ECDH+AESGCM:ECDH+CHACHA20:ECDH+AES:DHE+AES:!aNULL:!eNULL:!aDSS:!SHA1:!AESCCM"
HAS_SNI = HAS_ECDH = HAS_ALPN = HAS_TLSv1_2 = HAS_TLSv1_3 = True
HAS_NPN = HAS_SSLv2 = HAS_SSLv3 = HAS_TLSv1 = HAS_TLSv1_1 = HAS_PSK = HAS_PSK_TLS13 = HAS_PHA = HAS_TLS_UNIQUE = False
PROTOCOL_SSLv23 = PROTOCOL_TLS = 2
PROTOCOL_TLSv1, PROTOCOL_TLSv1_1, PROTOCOL_TLSv1_2, PROTOCOL_TLS_CLIENT, PROTOCOL_TLS_SERVER = 3, 4, 5, 16, 17
PROTO_MINIMUM_SUPPORTED, PROTO_MAXIMUM_SUPPORTED = -2, -1
PROTO_SSLv3, PROTO_TLSv1, PROTO_TLSv1_1, PROTO_TLSv1_2, PROTO_TLSv1_3 = 768, 769, 770, 771, 772
CERT_NONE, CERT_OPTIONAL, CERT_REQUIRED = 0, 1, 2
OP_ALL, OP_NO_SSLv2, OP_NO_SSLv3, OP_NO_TLSv1 = 0x80000050, 0, 0x02000000, 0x04000000
OP_NO_TLSv1_1, OP_NO_TLSv1_2, OP_NO_TLSv1_3 = 0x10000000, 0x08000000, 0x20000000
OP_LEGACY_SERVER_CONNECT, OP_NO_TICKET, OP_NO_COMPRESSION, OP_NO_RENEGOTIATION = 4, 0x4000, 0x20000, 0x40000000
OP_CIPHER_SERVER_PREFERENCE, OP_SINGLE_DH_USE, OP_SINGLE_ECDH_USE = 0x400000, 0, 0
OP_ENABLE_MIDDLEBOX_COMPAT, OP_IGNORE_UNEXPECTED_EOF, OP_ENABLE_KTLS = 0x100000, 0x80, 8
VERIFY_DEFAULT, VERIFY_CRL_CHECK_LEAF, VERIFY_CRL_CHECK_CHAIN, VERIFY_X509_STRICT = 0, 4, 12, 32
VERIFY_ALLOW_PROXY_CERTS, VERIFY_X509_TRUSTED_FIRST, VERIFY_X509_PARTIAL_CHAIN = 64, 0x8000, 0x80000
HOSTFLAG_ALWAYS_CHECK_SUBJECT, HOSTFLAG_NO_WILDCARDS, HOSTFLAG_NEVER_CHECK_SUBJECT = 1, 2, 32
SSL_ERROR_SSL, SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE, SSL_ERROR_WANT_X509_LOOKUP = 1, 2, 3, 4
SSL_ERROR_SYSCALL, SSL_ERROR_ZERO_RETURN, SSL_ERROR_WANT_CONNECT, SSL_ERROR_EOF = 5, 6, 7, 8
SSL_ERROR_INVALID_ERROR_CODE = 10
ALERT_DESCRIPTION_CLOSE_NOTIFY, ALERT_DESCRIPTION_HANDSHAKE_FAILURE = 0, 40
ALERT_DESCRIPTION_BAD_CERTIFICATE, ALERT_DESCRIPTION_CERTIFICATE_EXPIRED = 42, 45
ALERT_DESCRIPTION_UNKNOWN_CA, ALERT_DESCRIPTION_PROTOCOL_VERSION, ALERT_DESCRIPTION_INTERNAL_ERROR = 48, 70, 80
ALERT_DESCRIPTION_UNRECOGNIZED_NAME = 112
ENCODING_PEM, ENCODING_DER = 1, 0x101
_OBJECTS = {
    "1.3.6.1.5.5.7.3.1": (129, "serverAuth", "TLS Web Server Authentication", "1.3.6.1.5.5.7.3.1"),
    "1.3.6.1.5.5.7.3.2": (130, "clientAuth", "TLS Web Client Authentication", "1.3.6.1.5.5.7.3.2"),
}
_ELSEWHERE = "TLS is spoken outside of this sandbox, by its owner's program"


class SSLError(OSError):
    """An error occurred in the SSL implementation."""

    library = reason = None

    def __str__(self):
        return self.strerror if isinstance(self.strerror, str) else str(self.args)


class SSLZeroReturnError(SSLError):
    """SSL/TLS session closed cleanly."""


class SSLWantReadError(SSLError):
    """Non-blocking SSL socket needs to read more data before the requested operation can be completed."""


class SSLWantWriteError(SSLError):
    """Non-blocking SSL socket needs to write more data before the requested operation can be completed."""


class SSLSyscallError(SSLError):
    """System error when attempting SSL operation."""


class SSLEOFError(SSLError):
    """SSL/TLS connection terminated abruptly."""


class SSLCertVerificationError(SSLError, ValueError):
    """A certificate could not be verified."""

    verify_code, verify_message = 0, ""


for _error in (
    SSLError, SSLZeroReturnError, SSLWantReadError, SSLWantWriteError, SSLSyscallError, SSLEOFError,
    SSLCertVerificationError,
):  # fmt: skip
    _error.__module__ = "ssl"


def _want_read():
    return SSLWantReadError(SSL_ERROR_WANT_READ, "The operation did not complete (read)")


def _want_write():
    return SSLWantWriteError(SSL_ERROR_WANT_WRITE, "The operation did not complete (write)")


class SSLSession:
    """A session is the broker's."""


class MemoryBIO:
    """Bytes between a connection and who speaks over it."""

    def __init__(self):
        self._data = bytearray()
        self._ended = False

    @property
    def pending(self):
        return len(self._data)

    @property
    def eof(self):
        return self._ended and not self._data

    def read(self, size=-1, /):
        size = len(self._data) if size < 0 else size
        data = bytes(self._data[:size])
        del self._data[:size]
        return data

    def write(self, data, /):
        if self._ended:
            raise SSLError(SSL_ERROR_SSL, "cannot write() after write_eof()")
        view = memoryview(data).cast("B")
        self._data += view
        return len(view)

    def write_eof(self):
        self._ended = True


class Certificate:
    """A certificate of a server."""

    def __init__(self, encoded):
        self._encoded = encoded

    def public_bytes(self, format=ENCODING_PEM):
        if format == ENCODING_DER:
            return self._encoded
        import ssl

        return ssl.DER_cert_to_PEM_cert(self._encoded)


class _Connection:
    """An SSL object of `ssl`: over a socket, or between two MemoryBIOs."""

    session = None
    session_reused = False

    def __init__(self, context, server_side, server_hostname, owner):
        if server_side:
            raise SSLError(SSL_ERROR_SSL, "TLS is spoken by the sandbox's owner: a server inside is a plain one (http)")
        if context.check_hostname and not server_hostname:
            raise ValueError("check_hostname requires server_hostname")
        self.context = context
        self.server_side = False
        self.server_hostname = server_hostname
        self._owner = None if owner is None else weakref.ref(owner)
        self._info = None

    @property
    def owner(self):
        return self._owner() if self._owner is not None else None

    def read(self, size=1024, buffer=None, /):
        if self._info is None:
            self.do_handshake()
        if buffer is None:
            return self._receive(size)
        view = memoryview(buffer).cast("B")
        data = self._receive(min(size, len(view)) if size > 0 else len(view))
        view[: len(data)] = data
        return len(data)

    def write(self, data, /):
        if self._info is None:
            self.do_handshake()
        return self._send(data)

    def getpeercert(self, binary_form=False, /):
        if self._info is None:
            raise ValueError("handshake not done yet")
        if binary_form:
            return base64.b64decode(self._info.get("certificate", "")) or None
        if self.context.verify_mode == CERT_NONE:
            return {}
        return {key: _tuples(value) for key, value in json.loads(self._info.get("peer", "{}")).items()}

    def get_verified_chain(self):
        encoded = self.getpeercert(True) if self._info is not None else None
        return [Certificate(encoded)] if encoded else []

    get_unverified_chain = get_verified_chain

    def cipher(self):
        if self._info is None:
            return None
        return tuple(json.loads(self._info.get("cipher", '["TLS_AES_256_GCM_SHA384", "TLSv1.3", 256]')))

    def version(self):
        return None if self._info is None else self._info.get("version", "TLSv1.3")

    def selected_alpn_protocol(self):
        return None if self._info is None else self._info.get("protocol") or None

    def shared_ciphers(self):
        return None

    def compression(self):
        return None

    def group(self):
        return None

    def get_channel_binding(self, cb_type="tls-unique"):
        return None

    def verify_client_post_handshake(self):
        raise SSLError(SSL_ERROR_SSL, _ELSEWHERE)


class _SocketConnection(_Connection):
    """TLS over a socket."""

    def __init__(self, context, sock, server_hostname, owner):
        super().__init__(context, False, server_hostname, owner)
        self._sock = weakref.ref(sock)
        self._begun = False

    def _socket(self):
        found = self._sock()
        if found is None:
            raise SSLError(SSL_ERROR_SSL, "Underlying socket connection gone")
        return found

    def do_handshake(self):
        sock = self._socket()
        if not self._begun:
            sock._secure(self.server_hostname, self.context._protocols)
            self._begun = True
        try:
            self._info = sock._secured()
        except BlockingIOError:
            raise _want_read() from None
        except TimeoutError:
            raise TimeoutError("_ssl.c: The handshake operation timed out") from None

    def _receive(self, size):
        try:
            return socket.recv(self._socket(), size)
        except BlockingIOError:
            raise _want_read() from None
        except TimeoutError:
            raise TimeoutError("The read operation timed out") from None

    def _send(self, data):
        try:
            return socket.send(self._socket(), data)
        except BlockingIOError:
            raise _want_write() from None
        except TimeoutError:
            raise TimeoutError("The write operation timed out") from None

    def pending(self):
        return 0

    def shutdown(self):
        """Do not wait for close_notify: the connection ends with its socket."""
        return self._socket()


class _BufferedConnection(_Connection):
    """TLS of an event loop: the hello is a line that the socket below understands, and so is what comes back."""

    def __init__(self, context, incoming, outgoing, server_hostname, owner):
        super().__init__(context, False, server_hostname, owner)
        self._incoming, self._outgoing = incoming, outgoing
        self._begun = False

    def do_handshake(self):
        if not self._begun:
            words = [self.server_hostname or "-", *self.context._protocols]
            self._outgoing.write(PREFACE + " ".join(words).encode())
            self._begun = True
        line, end, _ = bytes(self._incoming._data).partition(b"\n")
        if not end:
            if self._incoming.eof:
                raise SSLEOFError(SSL_ERROR_EOF, "EOF occurred in violation of protocol")
            raise _want_read()
        self._incoming.read(len(line) + 1)
        self._info = dialling.tls(int(line.removeprefix(dialling.SECURED)))

    def _receive(self, size):
        if not self._incoming.pending and not self._incoming.eof:
            raise _want_read()
        return self._incoming.read(size)

    def _send(self, data):
        return self._outgoing.write(data)

    def pending(self):
        return self._incoming.pending

    def shutdown(self):
        return None


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _setting(name, doc):
    """A setting of a context that is kept, and changes nothing."""

    def get(self):
        return self._settings[name]

    def put(self, value):
        self._settings[name] = value

    return property(get, put, doc=doc)


class _SSLContext:
    """A program's TLS settings; trust is decided by the sandbox's owner."""

    def __new__(cls, protocol, /):
        self = super().__new__(cls)
        client = protocol == PROTOCOL_TLS_CLIENT
        self._settings = {
            "options": OP_ALL | OP_NO_SSLv3 | OP_CIPHER_SERVER_PREFERENCE | OP_NO_COMPRESSION
            | OP_ENABLE_MIDDLEBOX_COMPAT | OP_IGNORE_UNEXPECTED_EOF,
            "verify_flags": VERIFY_X509_TRUSTED_FIRST,
            "minimum_version": PROTO_TLSv1_2,
            "maximum_version": PROTO_MAXIMUM_SUPPORTED,
            "_host_flags": HOSTFLAG_NO_WILDCARDS,
            "_msg_callback": None,
            "keylog_filename": None,
            "sni_callback": None,
            "post_handshake_auth": False,
            "num_tickets": 2,
        }  # fmt: skip
        self._protocol = protocol
        self._verify_mode = CERT_REQUIRED if client else CERT_NONE
        self._check_hostname = client
        self._protocols = []
        return self

    options = _setting("options", "Options of a context.")
    verify_flags = _setting("verify_flags", "How certificates are verified.")
    minimum_version = _setting("minimum_version", "The lowest version of TLS.")
    maximum_version = _setting("maximum_version", "The highest version of TLS.")
    _host_flags = _setting("_host_flags", "How names are compared.")
    _msg_callback = _setting("_msg_callback", "Called for messages; there are none.")
    keylog_filename = _setting("keylog_filename", "Where keys would be written; there are none.")
    sni_callback = _setting("sni_callback", "Of servers.")
    post_handshake_auth = _setting("post_handshake_auth", "Of clients with certificates.")
    num_tickets = _setting("num_tickets", "Of servers.")

    @property
    def protocol(self):
        return self._protocol

    @property
    def security_level(self):
        return 2

    @property
    def verify_mode(self):
        return self._verify_mode

    @verify_mode.setter
    def verify_mode(self, value):
        if value not in (CERT_NONE, CERT_OPTIONAL, CERT_REQUIRED):
            raise ValueError("invalid value for verify_mode")
        if value == CERT_NONE and self._check_hostname:
            raise ValueError("Cannot set verify_mode to CERT_NONE when check_hostname is enabled.")
        self._verify_mode = int(value)

    @property
    def check_hostname(self):
        return self._check_hostname

    @check_hostname.setter
    def check_hostname(self, value):
        self._check_hostname = bool(value)
        if value and self._verify_mode == CERT_NONE:
            self._verify_mode = CERT_REQUIRED

    def _wrap_socket(self, sock, server_side, server_hostname=None, *, owner=None, session=None):
        if server_side:
            return _Connection(self, True, server_hostname, owner)
        return _SocketConnection(self, sock, server_hostname, owner)

    def _wrap_bio(self, incoming, outgoing, server_side, server_hostname=None, *, owner=None, session=None):
        if server_side:
            return _Connection(self, True, server_hostname, owner)
        return _BufferedConnection(self, incoming, outgoing, server_hostname, owner)

    def _set_alpn_protocols(self, encoded):
        protocols, at = [], 0
        while at < len(encoded):
            protocols.append(bytes(encoded[at + 1 : at + 1 + encoded[at]]).decode("ascii"))
            at += 1 + encoded[at]
        self._protocols = protocols

    def load_verify_locations(self, cafile=None, capath=None, cadata=None):
        if cafile is None and capath is None and cadata is None:
            raise TypeError("cafile, capath and cadata cannot be all omitted")
        if cafile is not None:
            with open(cafile, "rb"):
                pass

    def load_cert_chain(self, certfile, keyfile=None, password=None):
        raise SSLError(SSL_ERROR_SSL, f"there are no client certificates here: {_ELSEWHERE}")

    def set_default_verify_paths(self):
        """Trusted is what the sandbox's owner trusts."""

    def set_ciphers(self, ciphers, /):
        """Chosen by the broker and the server."""

    set_ciphersuites = set_groups = set_ecdh_curve = set_client_sigalgs = set_server_sigalgs = set_ciphers

    def load_dh_params(self, path, /):
        """Of servers."""

    def get_ciphers(self):
        return []

    def get_groups(self, *, include_aliases=False):
        return []

    def get_ca_certs(self, binary_form=False):
        return []

    def cert_store_stats(self):
        return {"x509": 0, "crl": 0, "x509_ca": 0}

    def session_stats(self):
        return dict.fromkeys(
            "number connect connect_good connect_renegotiate accept accept_good accept_renegotiate hits misses "
            "timeouts cache_full".split(),
            0,
        )


def txt2obj(txt, name=False):
    for found in _OBJECTS.values():
        if txt == found[3] or (name and txt in found[1:3]):
            return found
    raise ValueError(f"unknown object '{txt[:100]}'")


def nid2obj(nid, /):
    for found in _OBJECTS.values():
        if nid == found[0]:
            return found
    raise ValueError(f"unknown NID {nid}")


def get_default_verify_paths():
    return "SSL_CERT_FILE", "/etc/ssl/cert.pem", "SSL_CERT_DIR", "/etc/ssl/certs"


def get_sigalgs():
    return []


def RAND_status():
    return True


def RAND_add(string, entropy, /):
    """The sandbox has entropy enough."""


def RAND_bytes(n, /):
    import os

    return os.urandom(n)
