"""Host functions as shell commands: from a command line to a call by the function's signature, and back to text."""

from __future__ import annotations

import inspect
import json
import types
from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial, wraps
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from belljar.abi.values import check_size
from belljar.api.arguments import check_argument, check_value, checked, public_text
from belljar.api.await_host import call_async, is_being_cancelled, off_loop, run_awaitable

Answer = tuple[bytes, bytes, int]
"""stdout, stderr, exit code."""

_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


_INSIDE: Final = ("func", "coroutine", "function", "forward", "_run", "_arun")
"""Where frameworks keep a tool's function."""


def plain_function(name: str, tool: Any) -> Callable[..., Any]:
    """The function of a framework's tool: LangChain's, pydantic-ai's, smolagents'; a function is itself.

    What the framework would check and convert before a call, it still does. TypeError for a tool that needs its agent.
    """
    found = [inside for where in _INSIDE if inspect.isroutine(inside := getattr(tool, where, None))]
    if inspect.isroutine(tool) or isinstance(tool, partial) or not found:
        return tool  # type: ignore[no-any-return]
    convert = _converter(name, tool)
    return found[0] if convert is None else _converted(found[0], *convert)


def _converter(name: str, tool: Any) -> tuple[Callable[[dict[str, Any]], Any], list[str]] | None:
    """How a framework calls its tool with some arguments, and their names. None if it just calls it."""
    if hasattr(tool, "invoke") and hasattr(tool, "tool_call_schema"):  # LangChain
        shown, needed = _fields(tool.tool_call_schema), _fields(tool.get_input_schema())
        if set(needed) - set(shown):
            raise TypeError(_NEEDS_AGENT.format(name, ", ".join(sorted(set(needed) - set(shown)))))
        is_async = inspect.isroutine(getattr(tool, "coroutine", None)) and getattr(tool, "func", None) is None
        return (tool.ainvoke if is_async else tool.invoke), shown
    schema = getattr(tool, "function_schema", None)
    if schema is None:
        return None
    if tool.takes_ctx:
        raise TypeError(_NEEDS_AGENT.format(name, "ctx"))
    names = [key for key in inspect.signature(tool.function).parameters]
    return (lambda arguments: tool.function(**schema.validator.validate_python(arguments))), names


_NEEDS_AGENT: Final = "tool {!r} can't be a command: only its agent can give it {}"


def _fields(schema: Any) -> list[str]:
    return list(schema["properties"] if isinstance(schema, dict) else schema.model_fields)


def _converted(
    inner: Callable[..., Any], call: Callable[[dict[str, Any]], Any], names: list[str]
) -> Callable[..., Any]:
    whole = inspect.signature(inner)
    signature = whole.replace(parameters=[p for p in whole.parameters.values() if p.name in names])

    @wraps(inner)
    def function(*args: Any, **kwargs: Any) -> Any:
        return call(signature.bind(*args, **kwargs).arguments)

    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def load_json(text: str) -> Any:
    """Decode JSON that a guest wrote. ValueError, also for more values, or deeper ones, than an owner should hold."""
    check_size(text)
    return json.loads(text)


class Tool:
    """One host function, as a command.

    `search --query "bell jars"`, `search 'bell jars'` and `search '{"query": "bell jars"}'` are the same call. What
    follows `--` is no option. A function's `*rest` takes the arguments that are left, its `**options` any option.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        if not name or "/" in name or "\0" in name:
            raise ValueError(f"a tool can't be called {name!r}")
        function = plain_function(name, function)
        if not callable(function):
            raise TypeError(f"tool {name!r} is not callable")
        self.name = name
        self.function = function
        try:
            whole = inspect.signature(function).parameters
        except ValueError:
            raise TypeError(
                f"tool {name!r}: what {function!r} takes can't be told; write a function with named arguments around it"
            ) from None
        self.parameters = {key: parameter for key, parameter in whole.items() if parameter.kind not in _VARIADIC}
        self.rest = next((key for key, parameter in whole.items() if parameter.kind is parameter.VAR_POSITIONAL), None)
        self.any_option = any(parameter.kind is parameter.VAR_KEYWORD for parameter in whole.values())
        self.types = _types(function)
        self.checked = checked(function, {key: hint for key, hint in self.types.items() if key in whole})
        """The function for calls by values, its arguments checked against its annotations."""

    def run(self, args: list[str]) -> Answer:
        """Call it and wait. What it raises is its exit code 1 and a line on stderr; never an exception of ours."""
        values = self._prepare(args)
        if not isinstance(values, dict):
            return values
        try:
            positional, named = self._arguments(values)
            result = self.function(*positional, **named)
            return _render(run_awaitable(result) if inspect.isawaitable(result) else result), b"", 0
        except BaseException as error:  # noqa: BLE001 - the owner's own function: whatever it raises is its answer
            return self._raised(error, args)

    async def run_async(self, args: list[str], start: Callable[[Callable[[], None]], None]) -> Answer:
        """The same on an event loop: a plain function runs on a thread that `start` gives."""
        values = await off_loop(lambda: self._prepare(args), sum(map(len, args)), start)
        if not isinstance(values, dict):
            return values
        try:
            positional, named = self._arguments(values)
            return _render(await call_async(self.function, named, positional, start)), b"", 0
        except BaseException as error:  # as above: SystemExit, and a cancellation of its own, too
            if is_being_cancelled():
                raise
            return self._raised(error, args)

    def _arguments(self, values: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """How the function takes them: by position what comes before `*rest`, or has no name."""
        named = dict(values)
        rest = named.pop(self.rest, []) if self.rest is not None else []
        positional: list[Any] = []
        for key, parameter in self.parameters.items():
            if parameter.kind is parameter.KEYWORD_ONLY or not (rest or parameter.kind is parameter.POSITIONAL_ONLY):
                break
            if key not in named and parameter.default is parameter.empty:
                break
            positional.append(named.pop(key, parameter.default))
        return [*positional, *rest], named

    def _prepare(self, args: list[str]) -> dict[str, Any] | Answer:
        if args in (["--help"], ["-h"]):
            return self.help().encode(), b"", 0
        try:
            return self.parse(args)
        except ValueError as error:
            return b"", f"{self.name}: {error}\nTry '{self.name} --help'.\n".encode("utf-8", "surrogateescape"), 2

    def _raised(self, error: BaseException, args: list[str]) -> Answer:
        what = public_text(error, " ".join(args))
        if isinstance(error, SystemExit):
            what = f"it wanted to exit{f' ({what})' if what else ''}"
        return b"", f"{self.name}: {what or type(error).__name__}\n".encode("utf-8", "backslashreplace"), 1

    def parse(self, args: list[str]) -> dict[str, Any]:
        """Keyword arguments. ValueError, with what is wrong."""
        if len(args) == 1 and args[0].lstrip().startswith("{"):
            try:
                values = load_json(args[0])
            except ValueError as error:
                raise ValueError(f"bad JSON: {error}") from None
            unknown = set(values) - set(self.parameters) - {self.rest}
            if unknown and not self.any_option:
                raise ValueError(f"no such argument: {', '.join(sorted(unknown))}")
            values = {key: self._check(key, value) for key, value in values.items()}
        else:
            values = self._flags(args)
        missing = [k for k, p in self.parameters.items() if p.default is p.empty and k not in values]
        if missing:
            raise ValueError(f"missing argument: {', '.join(missing)}")
        return dict(values)

    def _check(self, key: str, value: Any) -> Any:
        """By the annotation of the parameter, as in a call by values. ValueError."""
        if key == self.rest:
            return check_value(list[self.types.get(key, Any)], value, key)  # type: ignore[misc]
        if key not in self.parameters:
            return value
        return check_argument(self.parameters[key], self.types.get(key, Any), value)

    def _flags(self, args: list[str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        rest: list[Any] = []
        position = (key for key, parameter in self.parameters.items() if self._by_position(parameter))
        options, todo = True, deque(args)
        while todo:
            arg = todo.popleft()
            if options and arg == "--":
                options = False
            elif options and arg.startswith("--"):
                key, equals, text = arg[2:].partition("=")
                key = key.replace("-", "_")
                if key not in self.parameters and not self.any_option:
                    raise ValueError(f"no such option: --{key}")
                wanted = _plain_type(self.types.get(key))
                if not equals and wanted is bool:
                    values[key] = True
                    continue
                if not equals and not todo:
                    raise ValueError(f"--{key} needs a value")
                values[key] = _convert(key, text if equals else todo.popleft(), wanted)
            elif key := next((name for name in position if name not in values), ""):
                values[key] = _convert(key, arg, _plain_type(self.types.get(key)))
            elif self.rest is not None:
                rest.append(_convert(self.rest, arg, _plain_type(self.types.get(self.rest))))
            else:
                raise ValueError(f"too many arguments: {arg!r}")
        return values | ({} if self.rest is None else {self.rest: rest})

    def _by_position(self, parameter: inspect.Parameter) -> bool:
        """An option may also be given by its place, unless that would be taken from `*rest`."""
        return self.rest is None or parameter.kind is not parameter.KEYWORD_ONLY

    def help(self) -> str:
        lines = [f"{self.name} - {(inspect.getdoc(self.function) or 'a tool of the host').strip()}", "", "Arguments:"]
        for key, parameter in self.parameters.items():
            wanted = _plain_type(self.types.get(key))
            kind = "|".join(_choices(wanted)) or getattr(wanted, "__name__", "text")
            usual = parameter.default.value if isinstance(parameter.default, Enum) else parameter.default
            default = "required" if parameter.default is parameter.empty else f"default {usual!r}"
            lines.append(f"  --{key.replace('_', '-')} {kind} ({default})")
        if self.rest is not None:
            lines.append(f"  {self.rest.upper()}... (any number)")
        if self.any_option:
            lines.append("  --NAME text (any other option)")
        return "\n".join(lines) + "\n"


def _types(function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations of its arguments; empty where they can't be evaluated."""
    inner = function.func if isinstance(function, partial) else function
    if not (inspect.isroutine(inner) or inspect.isclass(inner)):
        inner = getattr(inner, "__call__", inner)  # noqa: B004 - the method that a call of the object calls
    try:
        return get_type_hints(inner.__init__ if inspect.isclass(inner) else inner)
    except (NameError, TypeError):
        return {}


def _plain_type(hint: Any) -> Any:
    """`int` of `int | None`; a choice stays one."""
    if get_origin(hint) in (Union, types.UnionType):
        inner = [arg for arg in get_args(hint) if arg is not type(None)]
        return _plain_type(inner[0]) if len(inner) == 1 else None
    return hint if get_origin(hint) is Literal else get_origin(hint) or hint


def _convert(key: str, text: str, wanted: Any) -> Any:
    try:
        if wanted in (int, float):
            return wanted(text)
        if wanted is bool:
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
        if wanted in (list, dict):
            return load_json(text)
        if choices := _choices(wanted):
            return choices[text]
        if isinstance(wanted, type) and wanted is not str and text[:1] in ("{", "["):
            return load_json(text)  # a model of the tool's own
    except (ValueError, KeyError, RecursionError):
        choices = _choices(wanted)
        what = f"one of {', '.join(choices)}" if choices else f"a valid {wanted.__name__}"
        raise ValueError(f"--{key}: {text[:200]!r} is not {what}") from None
    return text


def _choices(wanted: Any) -> dict[str, Any]:
    """Values of a choice, by the text that stands for each."""
    if get_origin(wanted) is Literal:
        return {str(value): value for value in get_args(wanted)}
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return {str(member.value): member for member in wanted}
    return {}


def _render(result: Any) -> bytes:
    if result is None:
        return b""
    if isinstance(result, bytes):
        return result
    if isinstance(result, str):
        return (result if result.endswith("\n") else result + "\n").encode()
    return (json.dumps(result, ensure_ascii=False, default=str) + "\n").encode()
