"""Walks an awk tree and finds out which names are arrays, before anything is compiled."""

from __future__ import annotations

from collections.abc import Iterator

from belljar.abi.dataclass import fields, is_dataclass
from belljar.bin.awk import nodes as n


def walk(node: object) -> Iterator[object]:
    """Every node below and including `node`."""
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(reversed(item))
        elif is_dataclass(item):
            yield item
            stack.extend(getattr(item, part.name) for part in reversed(fields(item)))


def walk_program(tree: n.Program) -> Iterator[object]:
    yield from walk([tree.begin, tree.end, tree.begin_file, tree.end_file, tree.rules])
    yield from walk(list(tree.functions.values()))


class Names:
    """The names of a program: arrays (global and by function) and everything mentioned."""

    def __init__(self, tree: n.Program) -> None:
        self.arrays: set[str] = {"ENVIRON", "ARGV", "PROCINFO", "SYMTAB", "FUNCTAB"}
        self.mentioned: set[str] = set()
        self.nested = False
        """Some element may be an array itself."""
        self.array_parameters: dict[str, set[str]] = {name: set() for name in tree.functions}
        self.scalar_parameters: dict[str, set[str]] = {name: set() for name in tree.functions}
        self.functions = tree.functions
        self._calls: list[tuple[n.Function | None, n.Call]] = []
        self._scan(None, walk([tree.begin, tree.end, tree.begin_file, tree.end_file, tree.rules]))
        for function in tree.functions.values():
            self._scan(function, walk(function.body))
        self._propagate_arrays()

    def _scan(self, function: n.Function | None, found: Iterator[object]) -> None:
        for node in found:
            if isinstance(node, n.Var):
                self.mentioned.add(node.name)
            elif isinstance(node, (n.Index, n.In, n.ForIn, n.Delete)):
                self._mark(function, node.array)
                self.nested |= isinstance(node.array, n.Index)
            elif isinstance(node, n.Builtin):
                for position in n.ARRAY_ARGUMENTS.get(node.name, ()):
                    if position < len(node.arguments):
                        self._mark(function, node.arguments[position])
                        self.nested |= isinstance(node.arguments[position], n.Index)
            elif isinstance(node, n.Call):
                self._calls.append((function, node))
            if isinstance(node, (n.Call, n.IndirectCall)):
                self.nested |= any(isinstance(argument, n.Index) for argument in node.arguments)
            if isinstance(node, (n.Assign, n.AugAssign, n.Incr)) and isinstance(node.target, n.Var):
                self._mark_scalar(function, node.target.name)

    def _mark(self, function: n.Function | None, node: object) -> bool:
        while isinstance(node, (n.Index, n.Group)):
            node = node.array if isinstance(node, n.Index) else node.inner
        if not isinstance(node, n.Var):
            return False
        known = self.arrays
        if function is not None and node.name in function.parameters:
            known = self.array_parameters[function.name]
        if node.name in known:
            return False
        known.add(node.name)
        return True

    def _mark_scalar(self, function: n.Function | None, name: str) -> None:
        if function is not None and name in function.parameters:
            self.scalar_parameters[function.name].add(name)

    def _propagate_arrays(self) -> None:
        """Mark names passed to array parameters as arrays, until nothing changes."""
        changed = True
        while changed:
            changed = False
            for function, call in self._calls:
                callee = self.functions.get(call.name)
                if callee is None:
                    continue
                wanted = self.array_parameters[call.name]
                for parameter, argument in zip(callee.parameters, call.arguments, strict=False):
                    if parameter in wanted and isinstance(argument, n.Var) and self._mark(function, argument):
                        changed = True
