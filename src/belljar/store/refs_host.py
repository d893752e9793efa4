"""Refs as numbered files, which are only ever created or deleted: the value with the highest number holds.

A ref is changed by creating the file with the next number, which only one writer can. Values that were replaced stay
until a collection finds them so for longer than any writer takes: nobody can create a number that was used already. The
last value of a deleted ref stays for good.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from belljar.store.condemned_host import Marks
from belljar.store.errors import RefConflict, StoreError
from belljar.store.files_host import Files
from belljar.store.objects import DIGEST_BYTES, Digest, digest_of

_DIGITS: Final = 12
_TOKEN_BYTES: Final = 16
_VALUE_BYTES: Final = DIGEST_BYTES + 2 * _TOKEN_BYTES
_DELETED: Final = bytes(DIGEST_BYTES)


class NumberedRefs:
    """The files refs/NAME.NUMBER: the digest, 16 random bytes that tell writers apart, 16 bytes of a checksum."""

    def __init__(self, files: Files, store: str) -> None:
        self._files = files
        self._store = store

    def get(self, name: str) -> Digest | None:
        return self._newest({name: self._numbers(name)})[name][1]

    def all(self) -> dict[str, Digest]:
        newest = self._newest(self._all_numbers())
        return {name: digest for name, (_, digest) in newest.items() if digest is not None}

    def change(self, name: str, digest: Digest | None, expected: Digest | None) -> None:
        """Make a ref name an object, or delete it, if it names `expected`. RefConflict."""
        numbers = self._numbers(name)
        number, current = self._newest({name: numbers})[name]
        if current != expected:
            raise RefConflict(name)
        path = _path(name, max({number} | numbers) + 1)
        signed = _sign(path, digest or _DELETED)
        try:
            self._files.create(path, signed)
        except FileExistsError:
            # It is ours if the request was sent again because its first answer was lost.
            if self._files.read([path]).get(path) != signed:
                raise RefConflict(name) from None

    def sweep(self, marks: Marks) -> set[str]:
        """Remove values that were replaced long ago. The marks of refs that have others.

        A mark NAME.NUMBER says since when at least that value holds, and so all before it are old.
        """
        all_numbers = self._all_numbers()
        kept: set[str] = set()
        for name, (newest, _) in self._newest(all_numbers).items():
            numbers = all_numbers[name]
            due = max((number for number in numbers if marks.is_due(_file(name, number))), default=0)
            for number in numbers:
                if number < min(due, newest):
                    self._files.remove(_path(name, number))
            waiting = {_file(name, number) for number in numbers if number > due and _file(name, number) in marks}
            if not waiting and min(numbers) < newest > due:
                marks.add(_file(name, newest))
                waiting = {_file(name, newest)}
            kept |= waiting
        return kept

    def _all_numbers(self) -> dict[str, set[int]]:
        """Numbers of the values of each ref."""
        found: dict[str, set[int]] = {}
        for file in self._files.names("refs"):
            name, _, number = file.rpartition(".")
            with suppress(ValueError):  # a file that is not ours
                found.setdefault(bytes.fromhex(name).decode(), set()).add(int(number))
        return found

    def _numbers(self, name: str) -> set[int]:
        return self._all_numbers().get(name, set())

    def _newest(self, numbers: Mapping[str, set[int]]) -> dict[str, tuple[int, Digest | None]]:
        """For each ref the number of the value that holds, 0 if there is none, and the value, None if it was deleted.

        They are read together, and again for those that were replaced meanwhile.
        """
        newest: dict[str, tuple[int, Digest | None]] = {name: (0, None) for name, them in numbers.items() if not them}
        waiting = {name: set(them) for name, them in numbers.items() if them}
        while waiting:
            paths = {name: _path(name, max(them)) for name, them in waiting.items()}
            read = self._files.read(list(paths.values()))
            for name, path in paths.items():
                if path not in read:
                    waiting[name] = self._numbers(name)
                elif (value := self._value(path, read[path])) is None:
                    waiting[name].remove(max(waiting[name]))
                else:
                    newest[name] = max(waiting.pop(name)), None if value == _DELETED else value
                    continue
                if not waiting[name]:
                    del waiting[name]
                    newest[name] = 0, None
        return newest

    def _value(self, path: str, signed: bytes) -> bytes | None:
        """The digest in the value of a ref; None if its writer ended midway. StoreError if it is damaged."""
        value, token, check = signed[:DIGEST_BYTES], signed[DIGEST_BYTES:-_TOKEN_BYTES], signed[-_TOKEN_BYTES:]
        if len(signed) < _VALUE_BYTES or not any(signed):
            return None
        if check != _check(path, value, token):
            raise StoreError(f"the store {self._store}: {path} is damaged: delete it to go back to the value before")
        return value


def _file(name: str, number: int) -> str:
    return f"{name.encode().hex()}.{number:0{_DIGITS}d}"


def _path(name: str, number: int) -> str:
    return f"refs/{_file(name, number)}"


def _sign(path: str, value: bytes) -> bytes:
    token = secrets.token_bytes(_TOKEN_BYTES)
    return value + token + _check(path, value, token)


def _check(path: str, value: bytes, token: bytes) -> bytes:
    return digest_of(path.encode() + value + token)[:_TOKEN_BYTES]
