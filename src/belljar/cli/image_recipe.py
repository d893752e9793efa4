"""A recipe for an image as TOML: where it begins, and its steps in order.

    name = "app"                     # optional: what the image is called
    from = "base"                    # optional: the name of an image; { oci = "python.tar", tag = "3.12" };
                                     # { debian = "bookworm", packages = ["gcc"] }; or { directory = "rootfs" }

    [[steps]]
    copy = { from = "./app", to = "/app" }

    [[steps]]
    run = "python3 -m compileall -q /app"

Each step has one key: files, copy, run, env, cwd, user, command, pip, npm, package or service. Paths are relative to
the recipe.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from belljar.abi.errors import ImageError

if TYPE_CHECKING:
    from belljar.api.image import Image
    from belljar.store.store import Store

_DEBIAN: Final = {"packages", "mirror", "keyring", "trusted", "configure"}


def parse_recipe(text: str, store: Store) -> tuple[Image, str | None]:
    """The recipe, and the name that it gives to the image. ImageError."""
    import tomllib

    try:
        recipe = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ImageError(f"this is no TOML: {error}") from None
    unknown = recipe.keys() - {"name", "from", "steps"}
    if unknown:
        raise ImageError(f"{min(unknown)!r} means nothing in a recipe: it has name, from and steps")
    name, steps = recipe.get("name"), recipe.get("steps", [])
    if not isinstance(name, str | None) or not isinstance(steps, list):
        raise ImageError("name is a text, and each step begins with [[steps]]")
    image = _begin(recipe.get("from", "base"), store)
    for number, step in enumerate(steps, 1):
        try:
            image = _add(image, step)
        except (TypeError, ValueError) as error:
            raise ImageError(f"step {number}: {error}") from None
    return image, name


def _begin(given: Any, store: Store) -> Image:
    from belljar.api.image import Image
    from belljar.api.settings import BASE

    match given:
        case str():
            return Image() if given == BASE else Image.find(given, store)
        case {"oci": str(path), "tag": str(tag)}:
            return Image.oci(path, tag)
        case {"oci": str(path)}:
            return Image.oci(path)
        case {"directory": str(path), **rest} if not rest:
            return Image.directory(path)
        case {"debian": str(), **more} if more.keys() <= _DEBIAN:
            options: dict[str, Any] = {"suite" if name == "debian" else name: value for name, value in given.items()}
            try:
                return Image.debian(**options)
            except (TypeError, ValueError) as error:
                raise ImageError(f"from: {error}") from None
    raise ImageError(
        'from is the name of an image, { oci = "FILE", tag = "TAG" }, { debian = "SUITE", packages = ["NAME"] } or '
        '{ directory = "DIRECTORY" }'
    )


def _add(image: Image, step: object) -> Image:
    if not isinstance(step, dict) or len(step) != 1:
        raise ValueError(f"a step has one key, such as run or copy, not {step!r}")
    ((kind, value),) = step.items()
    plain: dict[str, Callable[[Any], Image]] = {
        "files": image.files, "run": image.run, "env": image.env, "cwd": image.cwd, "user": image.user,
        "command": image.command,
    }  # fmt: skip
    match kind, value:
        case "copy", {"from": source, "to": target, **rest} if not rest:
            return image.copy(source, target)
        case "copy", _:
            raise ValueError('copy takes { from = "SOURCE", to = "/PATH" }')
        case "service", dict() if {"name", "command"} <= value.keys():
            return image.service(**value)
        case "service", _:
            raise ValueError('service takes { name = "NAME", command = "COMMAND" } and what Image.service() takes')
        case (("pip" | "npm"), _):
            words = [value] if isinstance(value, str) else value
            if not isinstance(words, list):
                raise ValueError(f"{kind} takes a list of packages")
            return image.pip(*words) if kind == "pip" else image.npm(*words)
        case "package", str() | list() | {"install": str() | list()}:
            options: dict[str, Any] = dict(value) if isinstance(value, dict) else {"install": value}
            names = options.pop("install")
            return image.package(*([names] if isinstance(names, str) else names), **options)
        case "package", _:
            raise ValueError(
                'package takes "NAME@RANGE", or { install = ["NAME@RANGE"], registry = "URL", key = "KEY" }'
            )
        case _ if kind in plain:
            return plain[kind](value)
    known = ", ".join([*plain, "copy", "pip", "npm", "package", "service"])
    raise ValueError(f"there is no step {kind!r}: choose from {known}")
