"""A guest in a network namespace of its own, run as a program by test_proxy.py: makes the sockets, then does as told.

With ports as arguments it listens on these; with `redirect` it is set up as the native tier does it, and every
connection and question is redirected to its sockets. Its first message has the sockets; from then on each line of JSON
is a job, and each gets a line back.
"""

from __future__ import annotations

import ctypes
import fcntl
import http.client
import json
import os
import socket
import ssl
import struct
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from h2.exceptions import H2Error

from belljar.native.network import redirected
from tests.net.http2_client import speak, take_back
from tests.net.redirection import execute

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def enter() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if not libc.unshare(CLONE_NEWUSER | CLONE_NEWNET):
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    elif libc.unshare(CLONE_NEWNET):  # root may do that without a user namespace
        raise OSError(ctypes.get_errno(), "unshare")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def dial(address: str, port: int) -> socket.socket:
    return socket.create_connection((address, port), timeout=20)


OPEN: list[socket.socket] = []


def http2(job: dict[str, Any]) -> Any:
    context = ssl.create_default_context(cadata=job["ca"])
    context.set_alpn_protocols(["h2"])
    with context.wrap_socket(dial(job["address"], job["port"]), server_hostname=job["name"]) as connection:
        return [connection.selected_alpn_protocol(), speak(connection, job["requests"])]


def do(job: dict[str, Any]) -> Any:
    match job["do"]:
        case "raw":
            with dial(job["address"], job["port"]) as connection:
                connection.sendall(job["send"].encode("latin-1"))
                data = b""
                while piece := connection.recv(65536):
                    data += piece
                return data.decode("latin-1")
        case "dns":
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.settimeout(20)
                client.connect((job.get("address", "127.0.0.1"), job["port"]))
                client.send(bytes.fromhex(job["send"]))
                return client.recv(65536).hex()
        case "datagram":
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.settimeout(0.5)
                client.connect((job["address"], job["port"]))
                client.send(b"x")
                return client.recv(10).hex()
        case "open":  # a connection that stays, for talking step by step
            plain = dial(job["address"], job["port"])
            if "ca" in job:
                context = ssl.create_default_context(cadata=job["ca"])
                plain = context.wrap_socket(plain, server_hostname=job["name"])
            OPEN.append(plain)
            return len(OPEN) - 1
        case "say":
            OPEN[job["on"]].sendall(job["send"].encode("latin-1"))
            return None
        case "hear":
            return OPEN[job["on"]].recv(65536).decode("latin-1")
        case "http2":
            return http2(job)
        case "resets":
            context = ssl.create_default_context(cadata=job["ca"])
            context.set_alpn_protocols(["h2"])
            with context.wrap_socket(dial(job["address"], job["port"]), server_hostname=job["name"]) as connection:
                return take_back(connection, job["request"], job["count"])
        case "https":
            context = ssl.create_default_context(cadata=job["ca"])
            plain = dial(job["address"], job["port"])
            with context.wrap_socket(plain, server_hostname=job["name"]) as connection:
                host = job.get("host", f"{job['name']}:{job['port']}")
                web = http.client.HTTPSConnection(host)
                web.sock = connection
                web.request(
                    job.get("method", "GET"), job.get("path", "/"), body=job.get("body"), headers={"Host": host}
                )
                response = web.getresponse()
                issuer = dict(pair[0] for pair in connection.getpeercert()["issuer"])  # type: ignore[index,misc]
                return [response.status, response.read().decode("latin-1"), issuer.get("commonName")]
    raise ValueError(job)


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    try:
        enter()
    except OSError as error:
        channel.sendall(f"no {error}".encode())
        return
    if sys.argv[2:] == ["redirect"]:
        try:
            sockets = execute(redirected((4, 6)))
        except OSError as error:
            channel.sendall(f"no redirection: {error}".encode())
            return
    else:
        names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        names.bind(("127.0.0.1", 0))
        sockets = [names, *(socket.create_server(("0.0.0.0", int(port))) for port in sys.argv[2:])]
    socket.send_fds(channel, [f"ok {sockets[0].getsockname()[1]}".encode()], [each.fileno() for each in sockets])
    with channel.makefile("rw") as lines:
        for line in lines:
            try:
                result: Any = ["ok", do(json.loads(line))]
            except (OSError, H2Error) as error:
                result = ["failed", type(error).__name__]
            lines.write(json.dumps(result) + "\n")
            lines.flush()


if __name__ == "__main__":
    main()
