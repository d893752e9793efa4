"""tsort - topological sort

Usage: tsort [OPTION] [FILE]

Write a totally ordered list consistent with the partial ordering in FILE: pairs of items, the first before the second.
With no FILE, or when FILE is -, read standard input.
"""

from __future__ import annotations

from collections import deque

from belljar.abi.dataclass import dataclass, field
from belljar.abi.paths import fsdecode
from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.quoting import quote, quote_if_odd
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    pass


@dataclass(slots=True)
class Item:
    name: bytes
    before: int = 0
    """How many items must come first."""
    after: list[Item] = field(default_factory=list)
    done: bool = False


@utility("tsort", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if len(operands) > 1:
        raise UsageError(f"extra operand {quote(operands[1], process.env)}")
    name = operands[0] if operands else "-"
    words = process.read_file(name).split()
    process.budget.charge(len(words) // 8 + 1)
    process.budget.charge_size(len(words) * 200)
    if len(words) % 2:
        raise UsageError(f"{quote_if_odd(name)}: input contains an odd number of tokens", hint=False)
    items = {word: Item(word) for word in sorted(set(words))}
    for first, second in zip(words[::2], words[1::2], strict=True):
        if first != second:
            items[first].after.append(items[second])
            items[second].before += 1
    # The latest relation of an item is followed first, as GNU does.
    for item in items.values():
        item.after.reverse()
    status = 0
    left = len(items)
    while left:
        queue = deque(item for item in items.values() if item.before == 0 and not item.done)
        while queue:
            item = queue.popleft()
            process.budget.charge()
            process.stdout.write(item.name + b"\n")
            item.done = True
            left -= 1
            for other in item.after:
                other.before -= 1
                if other.before == 0:
                    queue.append(other)
        if left:
            process.stdout.flush()
            process.warn(f"{quote_if_odd(name)}: input contains a loop:")
            break_loop(process, list(items.values()))
            status = 1
    return status


def break_loop(process: Process, items: list[Item]) -> None:
    """Go back from item to item until one comes up again; name the loop and forget one of its relations."""
    waiting = [item for item in items if item.before > 0]
    chain: dict[int, Item] = {}
    current: Item | None = None
    while True:
        for item in waiting:
            process.budget.charge()
            if current is None:
                current = item
            elif any(other is current for other in item.after):
                if id(item) in chain:
                    _report(process, chain, current, item)
                    return
                chain[id(item)] = current
                current = item


def _report(process: Process, chain: dict[int, Item], current: Item, item: Item) -> None:
    at = current
    while True:
        process.warn(fsdecode(at.name))
        if at is item:
            index = next(i for i, other in enumerate(item.after) if other is current)
            del item.after[index]
            current.before -= 1
            return
        at = chain[id(at)]
