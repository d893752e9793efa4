"""Compiles calls of awk's built-in functions: arrays, types, streams and time, on top of the text and number ones."""

from __future__ import annotations

import math
from collections.abc import Callable

from belljar.bin.awk import nodes as n
from belljar.bin.awk import times
from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.matching import Matching
from belljar.bin.awk.operators import type_name
from belljar.bin.awk.scope import NUM, STR, TEST, VAL, Compiled, Frame
from belljar.bin.awk.values import UNINIT, Untyped, Value


class Builtins(Matching):
    """One method a function, `call_NAME`."""

    def expr_builtin(self, node: n.Builtin, want: str) -> Compiled:
        method = getattr(self, "call_" + node.name)
        compiled: Compiled = method(node)
        return compiled

    # -- arrays and types ---------------------------------------------------------------------------------------

    def _sorting(self, node: n.Builtin) -> Compiled:
        source = self.array(node.arguments[0])
        destination = self.array(node.arguments[1]) if len(node.arguments) > 1 else None
        how = self.string(node.arguments[2]) if len(node.arguments) > 2 else None
        by_index = node.name == "asorti"
        runtime, line = self.runtime, node.line

        def sort(frame: Frame) -> float:
            held = source(frame)
            rule = how(frame) if how is not None else ("@ind_str_asc" if by_index else "@val_type_asc")
            keys = runtime.sorted_keys(held, rule, line)
            values: list[Value] = list(keys) if by_index else [held[key] for key in keys]
            target = held if destination is None else destination(frame)
            target.clear()
            for number, value in enumerate(values, 1):
                target[str(number)] = value
            return float(len(values))

        return NUM, sort

    call_asort = _sorting
    call_asorti = _sorting

    def _raw(self, node: n.Expr) -> Callable[[Frame], Value]:
        """The value of an argument that may well be an array or untyped, without creating anything."""
        while isinstance(node, n.Group):
            node = node.inner
        if isinstance(node, n.Var):
            if node.name in self.locals:
                index = self.locals[node.name]
                return lambda frame: frame[index]
            if self.is_array(node.name) or node.name in self.tree.functions:
                array = self.runtime.array(node.name)
                return lambda frame: array
            if node.name in ("NR", "NF", "FNR"):
                return self.value(node)
            cell = self.runtime.cell(node.name)
            return lambda frame: cell[0]
        if isinstance(node, n.Index):
            container = self.array(node.array)
            key = self.subscript_key(node.subscripts)
            return lambda frame: container(frame).setdefault(key(frame), UNINIT)
        return self.value(node)

    def call_isarray(self, node: n.Builtin) -> Compiled:
        raw = self._raw(node.arguments[0])
        return TEST, lambda frame: type(raw(frame)) is dict

    def call_typeof(self, node: n.Builtin) -> Compiled:
        raw = self._raw(node.arguments[0])
        is_name = isinstance(node.arguments[0], (n.Var, n.Index))
        record = self.record
        beyond = self.num(node.arguments[0].index) if isinstance(node.arguments[0], n.Field) else None

        def name(frame: Frame) -> str:
            value = raw(frame)
            if beyond is not None and value == "" and beyond(frame) > record.get_nf():
                return "unassigned"
            if type(value) is dict:
                return "array"
            if value is UNINIT or type(value) is Untyped:
                return "untyped" if is_name else "unassigned"
            return type_name(value)

        return STR, name

    # -- input, output, time ------------------------------------------------------------------------------------

    def call_close(self, node: n.Builtin) -> Compiled:
        name = self.string(node.arguments[0])
        how = self.string(node.arguments[1]) if len(node.arguments) > 1 else None
        streams, line = self.runtime.streams, node.line

        def close(frame: Frame) -> float:
            which = name(frame)
            part = how(frame) if how is not None else ""
            if how is not None and part not in ("to", "from"):
                raise AwkFatal("close: second argument must be `to' or `from'", line)
            return streams.close(which, part, line)

        return NUM, close

    def call_fflush(self, node: n.Builtin) -> Compiled:
        streams = self.runtime.streams
        name = self.string(node.arguments[0]) if node.arguments else None

        warn, line = self.runtime.warn, node.line

        def flush(frame: Frame) -> float:
            which = "" if name is None else name(frame)
            result = streams.flush(which)
            if result < 0:
                warn(f"fflush: `{which}' is not an open file, pipe or co-process", line)
            return result

        return NUM, flush

    def call_system(self, node: n.Builtin) -> Compiled:
        command = self.string(node.arguments[0])
        streams, line = self.runtime.streams, node.line
        return NUM, lambda frame: streams.system(command(frame), line)

    def call_systime(self, node: n.Builtin) -> Compiled:
        world = self.runtime.world
        return NUM, lambda frame: float(math.floor(world.now()))

    def call_mktime(self, node: n.Builtin) -> Compiled:
        text = self.string(node.arguments[0])
        utc = self.test(node.arguments[1]) if len(node.arguments) > 1 else None
        world = self.runtime.world
        return NUM, lambda frame: times.mktime(text(frame), "UTC0" if utc and utc(frame) else world.timezone())

    def call_strftime(self, node: n.Builtin) -> Compiled:
        arguments = node.arguments
        runtime = self.runtime
        form = self.string(arguments[0]) if arguments else None
        stamp = self.num(arguments[1]) if len(arguments) > 1 else None
        utc = self.test(arguments[2]) if len(arguments) > 2 else None

        def render(frame: Frame) -> str:
            layout = form(frame) if form is not None else runtime.default_time_format()
            moment = math.floor(runtime.world.now()) if stamp is None else stamp(frame)
            zone = "UTC0" if utc and utc(frame) else runtime.world.timezone()
            text = times.strftime(layout, moment, zone)
            runtime.charge_size(len(text))
            return text

        return STR, render

    # -- messages in other languages: there is only one ----------------------------------------------------------

    def call_dcgettext(self, node: n.Builtin) -> Compiled:
        return VAL, self.value(node.arguments[0])

    def call_dcngettext(self, node: n.Builtin) -> Compiled:
        one, many, count = (self.value(node.arguments[0]), self.value(node.arguments[1]), self.num(node.arguments[2]))
        return VAL, lambda frame: one(frame) if count(frame) == 1 else many(frame)

    def call_bindtextdomain(self, node: n.Builtin) -> Compiled:
        text = self.string(node.arguments[0])
        return STR, text
