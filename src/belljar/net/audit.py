"""The network's own record: what was asked, what was decided, what passed. Never the value of a secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from belljar.net.hosts import BadHost, Url, parse_url
from belljar.net.policy import AcceptDns, AcceptHttp, Conn, Denied, Verdict

Emit: TypeAlias = Callable[[dict[str, Any]], None]
"""Takes one event: a flat dict of plain data with an `action`."""

_QUERY_SHOWN = 200


def decision(conn: Conn, verdict: Verdict) -> dict[str, Any]:
    """One question and its verdict."""
    event: dict[str, Any] = {"action": "dns" if conn.protocol == "dns" else "connect", "protocol": conn.protocol}
    if question := conn.match_dns():
        event |= {"name": question.name, "type": question.type}
    else:
        event |= {"ip": conn.dst.ip, "port": conn.dst.port, "hostname": conn.hostname}
    match verdict:
        case Denied(reason=reason):
            event |= {"verdict": "denied", "reason": reason}
        case AcceptHttp(middleware=middleware, websocket=websocket):
            event |= {"verdict": "accepted", "as": "http", "middleware": middleware is not None, "websocket": websocket}
        case AcceptDns():
            event |= {"verdict": "accepted", "as": "dns"}
        case _:
            event |= {"verdict": "accepted", "as": "raw"}
    return event


def failure(error: BaseException) -> dict[str, Any]:
    """An exception of the owner's code: its type and where it was raised. Its text may have a secret in it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = {} if trace is None else {"where": f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"}
    return {"error": type(error).__name__, **where}


def shown_target(text: str) -> str:
    """A URL as a guest wrote it, for the record: "" if it is none."""
    try:
        return shown_url(parse_url(text))
    except BadHost:
        return ""


def shown_url(url: Url) -> str:
    """A URL for the record: its path, and of a query only that there is one. Queries carry tokens."""
    path, mark, query = url.target.partition("?")
    return f"{url.scheme}://{url.authority}{path[:_QUERY_SHOWN]}" + (f"?({len(query)} characters)" if mark else "")
