"""The shortest way through everything: a sandbox reaches one loopback server by files, and no other."""

from __future__ import annotations

from belljar import Network, Sandbox
from tests.net.servers import HttpServer

GET = r"""
exec 3<>/mnt/web/clone
read -r n <&3
echo "url $1" >&3 && cat /mnt/web/$n/body 2>/dev/null || cat /mnt/web/$n/error
"""


def test_only_what_was_granted_is_reached() -> None:
    with HttpServer({"/": b"hello"}) as granted, HttpServer({"/": b"secret"}) as other:
        network = Network.allow(f"127.0.0.1:{granted.port}")
        with Sandbox(network=network, files={"/workspace/get": GET}) as sandbox:
            assert sandbox.exec(f"bash get http://127.0.0.1:{granted.port}/").stdout == "hello"
            said = sandbox.exec(f"bash get http://127.0.0.1:{other.port}/").stdout
            assert said == f"denied: 127.0.0.1:{other.port} is not open to this sandbox\n"
            assert not other.requests
            dialled = sandbox.exec(
                f"""exec 3<>/net/tcp/clone; read -r n <&3; echo 'connect 127.0.0.1!{granted.port}' >&3
                exec 4<>/net/tcp/$n/data
                printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&4; tail -n 1 <&4; cat /net/tcp/$n/remote"""
            )
            assert dialled.stdout == f"hello127.0.0.1!{granted.port}\n"


def test_without_a_grant_there_is_no_network() -> None:
    with HttpServer({"/": b"secret"}) as server, Sandbox(files={"/workspace/get": GET}) as sandbox:
        said = sandbox.exec("bash get http://192.0.2.1/").stdout
        assert said == "denied: this sandbox was granted no network\n"
        said = sandbox.exec(f"bash get http://127.0.0.1:{server.port}/").stdout
        assert said == f"connect: nothing listens on port {server.port}\n"
        assert not server.requests
