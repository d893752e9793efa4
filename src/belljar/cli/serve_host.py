"""`belljar serve`: sandboxes over HTTP; `belljar serve key`: who may use them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from belljar.abi.install import install_hint
from belljar.cli.parser import count
from belljar.cli.screen_host import colour, complain, say

if TYPE_CHECKING:
    import argparse

    from belljar.server.database_host import Database

QUOTAS = (
    "sandboxes", "kept", "execs-per-minute", "streams", "memory-mb", "cpu-seconds-per-hour", "disk-mb", "volume-mb",
    "egress-mb-per-hour",
)  # fmt: skip
_MISSING = "belljar: {} is missing; " + install_hint("server")


def add_to(subcommands: Any) -> None:
    parser = subcommands.add_parser(
        "serve",
        help="serve sandboxes over HTTP (the E2B protocol)",
        description="Serve sandboxes over HTTP to clients of the E2B protocol: the e2b SDKs, and what uses them. "
        "See docs/server.md.",
    )
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="listen here (default %(default)s)")
    parser.add_argument("--port", type=_port, default=3000, metavar="N", help="0: any (default %(default)s)")
    parser.add_argument("--config", metavar="FILE", help="a TOML file with these options by name, [limits] and [quota]")
    parser.add_argument("--tier", default="virtual", help="virtual (default) or native")
    _add_data(parser)
    parser.add_argument("--tls-cert", metavar="FILE", help="a certificate (PEM), with --tls-key")
    parser.add_argument("--tls-key", metavar="FILE")
    parser.add_argument(
        "--domain",
        metavar="NAME",
        help="previews are at PORT-ID.NAME: names below it lead here (default: localhost, on this machine only)",
    )
    parser.add_argument("--insecure", action="store_true", help="listen beyond this machine without TLS")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="what sandboxes may reach (default: nothing)"
    )
    parser.add_argument("--max-timeout", type=count, default=86400, metavar="S", help="longest time of a sandbox")
    parser.add_argument("--idle", type=count, metavar="S", help="pause or end sandboxes that nobody used for so long")
    parser.add_argument(
        "--checkpoint", type=count, metavar="S", help="keep running sandboxes this often, for a crash of the server"
    )
    help = "time that a client of ours may be without a connection"
    parser.add_argument("--session", type=count, default=60, metavar="S", help=help)
    parser.add_argument("--drain", type=count, default=30, metavar="S", help="time to pause what runs on SIGTERM")
    parser.add_argument("--log", choices=("text", "json"), help="form of the log (default: json unless on a terminal)")
    parser.set_defaults(run=lambda arguments: _serve(parser, arguments))
    actions = parser.add_subparsers(dest="action", metavar="")
    key = actions.add_parser("key", help="make, list and revoke API keys", description="Manage API keys.")
    steps = key.add_subparsers(dest="step", metavar="ACTION", required=True)
    create = steps.add_parser("create", help="make a key, and print it", description="Make a key, and print it: once.")
    create.add_argument("--tenant", default="default", metavar="NAME", help="whose it is (default: default)")
    create.add_argument("--name", default="", metavar="TEXT", help="what it is for")
    scope = create.add_mutually_exclusive_group()
    scope.add_argument("--operator", action="store_true", help="it may also read /metrics from elsewhere")
    scope.add_argument("--read-only", action="store_true", help="it may look at things, and change nothing")
    create.set_defaults(run=_create_key)
    listed = steps.add_parser("list", help="list the keys", description="List the keys: not their secrets.")
    listed.add_argument("--json", action="store_true")
    listed.set_defaults(run=_list_keys)
    revoke = steps.add_parser("revoke", help="have a key be refused", description="Have a key be refused from now on.")
    revoke.add_argument("id", metavar="ID", help="as `key list` shows it")
    revoke.set_defaults(run=_revoke_key)
    quota = steps.add_parser(
        "quota", help="set what a tenant may use", description="Set what a tenant may use at a time."
    )
    quota.add_argument("tenant", metavar="TENANT")
    for name in QUOTAS:
        quota.add_argument(f"--{name}", type=count, metavar="N")
    quota.set_defaults(run=_set_quota)
    usage = actions.add_parser("usage", help="what tenants used, by the hour", description="Show what tenants used.")
    usage.add_argument("--tenant", metavar="NAME", help="only this one")
    usage.add_argument("--json", action="store_true")
    usage.set_defaults(run=_show_usage)
    for step in (create, listed, revoke, quota, usage):
        _add_data(step)


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--store",
        metavar="LOCATION",
        help="keep paused sandboxes and snapshots here: a path, or a URL (default: nowhere)",
    )
    parser.add_argument(
        "--data",
        metavar="FILE",
        help="the server's own file: keys, sandboxes, usage (default: beside the store; without one, memory)",
    )


def _port(text: str) -> int:
    from argparse import ArgumentTypeError

    if not (text.isascii() and text.isdecimal() and int(text) < 1 << 16):
        raise ArgumentTypeError(f"{text!r} is no port")
    return int(text)


def _serve(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    try:
        from belljar.server.serve_host import data_path, is_loopback, serve
    except ModuleNotFoundError as error:
        if (error.name or "belljar").startswith("belljar"):
            raise
        complain(_MISSING.format(error.name))
        return 125
    from dataclasses import replace

    from belljar.server.config import Config

    tables: dict[str, dict[str, Any]] = {"limits": {}, "quota": {}}
    if arguments.config is not None:
        from belljar.abi.limits import Limits
        from belljar.cli.mcp_host import merge_config
        from belljar.server.config import Quota

        arguments, tables = merge_config(parser, arguments, {"limits": Limits, "quota": Quota})
    usual = Config()
    try:
        config = Config(
            host=arguments.host,
            port=arguments.port,
            tier=arguments.tier,
            store=arguments.store,
            data=data_path(arguments.data, arguments.store),
            tls_cert=arguments.tls_cert,
            tls_key=arguments.tls_key,
            domain=arguments.domain or ("localhost" if is_loopback(arguments.host) else None),
            insecure=arguments.insecure,
            allow_hosts=tuple(arguments.allow_host),
            log=arguments.log or ("text" if sys.stderr.isatty() else "json"),
            limits=replace(usual.limits, **tables["limits"]),
            quota=replace(usual.quota, **tables["quota"]),
            timeout_max=arguments.max_timeout,
            idle_seconds=arguments.idle,
            checkpoint_seconds=arguments.checkpoint,
            drain_seconds=arguments.drain,
            session_seconds=arguments.session,
        )
    except (TypeError, ValueError) as error:
        parser.error(str(error))
    return serve(config, lambda url, key, token: announce(url, key, token, stored=config.data is not None))


def announce(url: str, key: str | None, token: str | None, *, stored: bool) -> None:
    """Say where the server is, and how to use it."""
    bold, plain = ("\x1b[1m", "\x1b[0m") if colour() else ("", "")
    shown = key or "bj_..."
    say(f"belljar serves at {bold}{url}{plain}")
    if key is not None:
        say(f"API key: {bold}{key}{plain}" + ("   (shown only now)" if stored else "   (until the server ends)"))
    else:
        say("API keys: as before; `belljar serve key create` makes another")
    if token is not None and (key is not None or sys.stdout.isatty()):  # not into the log of a service
        say(f"Console: {bold}{url}/#sign-in={token}{plain}   (signs in once, within an hour)")
    else:
        say(f"Console: {bold}{url}/{plain}")
    say("")
    say("Use it with RemoteSandbox:")
    say(f"  export BELLJAR_URL={url} BELLJAR_KEY={shown}")
    say("  python -c 'from belljar import RemoteSandbox; print(RemoteSandbox().exec(\"echo hello\").stdout)'")
    say("or with the e2b SDK:")
    say(f"  export E2B_API_KEY={shown} E2B_API_URL={url} E2B_SANDBOX_URL={url}")
    say("  python -c 'from e2b import Sandbox; print(Sandbox.create().commands.run(\"echo hello\").stdout)'")
    say("")
    say(
        "Stop it with ^C"
        + ("; paused sandboxes stay." if stored else "; nothing stays (--store PATH keeps sandboxes).")
    )
    sys.stdout.flush()


def _open(arguments: argparse.Namespace) -> Database | None:
    from belljar.server.database_host import Database, DataError

    if arguments.data is None and arguments.store is None:
        raise DataError("say which server's keys: --data FILE or --store PATH, as for `belljar serve`")
    try:
        from belljar.server.serve_host import data_path
    except ModuleNotFoundError as error:
        complain(_MISSING.format(error.name))
        return None
    return Database(data_path(arguments.data, arguments.store))


def _create_key(arguments: argparse.Namespace) -> int:
    database = _open(arguments)
    if database is None:
        return 125
    from belljar.server.keys_host import create_key

    say(create_key(database, arguments.tenant, arguments.name, _scope(arguments)))
    return 0


def _scope(arguments: argparse.Namespace) -> str:
    return "operator" if arguments.operator else "read" if arguments.read_only else "tenant"


def _show_usage(arguments: argparse.Namespace) -> int:
    database = _open(arguments)
    if database is None:
        return 125
    from datetime import datetime

    from belljar.cli.snapshot import say_json

    rows = [
        (datetime.fromtimestamp(hour * 3600).isoformat(timespec="minutes"), tenant, name, round(amount, 3))
        for tenant, hour, name, amount in database.usage(arguments.tenant)
    ]
    if arguments.json:
        say_json([dict(zip(("hour", "tenant", "name", "amount"), row, strict=True)) for row in rows])
        return 0
    for hour, tenant, name, amount in rows:
        say(f"{hour}  {tenant}  {name:20} {amount:14,.1f}")
    return 0


def _list_keys(arguments: argparse.Namespace) -> int:
    database = _open(arguments)
    if database is None:
        return 125
    from datetime import datetime

    from belljar.cli.snapshot import say_json

    keys = database.list_keys()
    if arguments.json:
        shown = ("id", "tenant", "name", "scope", "created", "revoked")
        say_json([{name: getattr(key, name) for name in shown} for key in keys])
        return 0
    for key in keys:
        made = datetime.fromtimestamp(key.created).strftime("%Y-%m-%d %H:%M")
        state = "revoked" if key.revoked is not None else key.scope
        say(f"{key.id}  {made}  {state:8}  {key.tenant}  {key.name}".rstrip())
    return 0


def _revoke_key(arguments: argparse.Namespace) -> int:
    database = _open(arguments)
    if database is None:
        return 125
    from belljar.api.clock_host import wall_time
    from belljar.server.keys_host import PREFIX

    if not database.revoke(arguments.id.removeprefix(PREFIX)[:10], wall_time()):
        complain(f"belljar: there is no valid key {arguments.id}")
        return 1
    return 0


def _set_quota(arguments: argparse.Namespace) -> int:
    database = _open(arguments)
    if database is None:
        return 125
    import json

    from belljar.api.clock_host import wall_time

    quota = json.loads(database.quota(arguments.tenant))
    given = {name: getattr(arguments, name) for name in (each.replace("-", "_") for each in QUOTAS)}
    quota |= {name: value for name, value in given.items() if value is not None}
    database.add_tenant(arguments.tenant, wall_time(), json.dumps(quota))
    return 0
