"""Definitions of templates, as the SDKs send them, turned into recipes of images."""

from __future__ import annotations

import re
from collections.abc import Callable
from posixpath import join, normpath
from shlex import quote
from typing import Any, Final

from msgspec import Struct

from belljar.api.image import Image
from belljar.server.guest import HOME, USER

_USERS: Final = (USER, "root")
_OWNER: Final = re.compile(r"[a-z_][a-z0-9_-]{0,31}(:[a-z_][a-z0-9_-]{0,31})?")
_MODE: Final = re.compile(r"[0-7]{3,4}")
_ARCHIVE: Final = "/tmp/.belljar-copy.tar"
STEPS_MAX: Final = 1000

_COPY: Final = """set -e
shopt -s dotglob nullglob
unpacked=$(mktemp -d)
tar -xf {archive} -C "$unpacked"
rm -f {archive}
cd "$unpacked"
IFS=
pattern={source}
sources=($pattern)
if [ ${{#sources[@]}} = 0 ] || ! [ -e "${{sources[0]}}" -o -L "${{sources[0]}}" ]; then
    echo "COPY: nothing matches $pattern" >&2
    exit 1
fi
chown -hR {owner} "${{sources[@]}}"
{chmod}
fresh=
if ! [ -d {target} ]; then fresh=yes; fi
if [ ${{#sources[@]}} = 1 ] && [ -d "${{sources[0]}}" ] && ! [ -L "${{sources[0]}}" ]; then
    mkdir -p {target}
    cp -a "${{sources[0]}}/." {target}
elif [ {folder} = no ] && [ ${{#sources[@]}} = 1 ] && ! [ -d {target} ]; then
    mkdir -p "$(dirname {target})"
    mv "${{sources[0]}}" {target}
else
    mkdir -p {target}
    mv "${{sources[@]}}" {target}
fi
if [ -n "$fresh" ]; then chown -h {owner} {target}; fi
cd /
rm -rf "$unpacked"
"""
"""Unpacked inside a sandbox: whatever is in the archive, it reaches nothing else."""


class Step(Struct, rename="camel"):
    type: str
    args: list[str] = []
    files_hash: str | None = None
    force: bool = False


class Definition(Struct, rename="camel"):
    from_image: str | None = None
    from_template: str | None = None
    from_image_registry: dict[str, Any] | None = None
    force: bool = False
    steps: list[Step] = []
    start_cmd: str | None = None
    ready_cmd: str | None = None


class BadStep(Exception):
    """A step of a definition that can't be made."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


def recipe(
    definition: Definition, base: Image, upload: Callable[[str], str | None], again: str
) -> tuple[Image, list[int], tuple[str, str]]:
    """The recipe, for each of its steps the number of the client's, and who commands run as, and where. BadStep.

    `upload` gives the host's path of an archive that was uploaded; `again` is what makes a forced step differ from
    all that were made before.
    """
    if len(definition.steps) > STEPS_MAX:
        raise BadStep(STEPS_MAX, f"more than {STEPS_MAX} steps")
    image = base.user(USER).cwd(HOME)
    numbers = [0, 0]
    user, work = USER, HOME
    forced = definition.force

    def account(name: str) -> str:
        if name not in _USERS:
            raise BadStep(number, f"there is no user '{name[:40]}': sandboxes have {' and '.join(_USERS)}")
        return name

    for number, step in enumerate(definition.steps, 1):
        forced = forced or step.force
        mark = f"\n# {again}" if forced else ""
        args = [*step.args, "", "", "", ""]
        before = len(image.steps)
        try:
            match step.type:
                case "RUN":
                    who = args[1] or user
                    if who not in _USERS:  # in the words of the protocol's own server
                        why = f"command failed: unauthenticated: invalid username: '{who[:40]}'"
                        raise BadStep(number, f"failed to run command '{args[0][:200]}': {why}")
                    image = image.user(who).run(args[0] + mark).user(user)
                case "ENV":
                    image = image.env(dict(zip(step.args[::2], step.args[1::2], strict=True)))
                case "WORKDIR":
                    work = normpath(join(work, args[0]))
                    image = image.cwd(work)
                case "USER":
                    user = account(args[0])
                    image = image.user(user)
                case "COPY":
                    archive = upload(step.files_hash or "")
                    if archive is None:
                        raise BadStep(number, f"the files of COPY {args[0][:200]} were not uploaded")
                    script = _copy_script(args[0], join(work, args[1]), args[2] or user, args[3]) + mark
                    image = image.user("root").copy(archive, _ARCHIVE).run(script).user(user)
                case _:
                    raise BadStep(number, f"there is no step {step.type[:40]!r}")
        except (TypeError, ValueError) as error:
            raise BadStep(number, f"{step.type}: {error}") from None
        numbers += [number] * (len(image.steps) - before)
    return image, numbers, (user, work)


def _copy_script(source: str, target: str, owner: str, mode: str) -> str:
    if not _OWNER.fullmatch(owner):
        raise ValueError(f"no owner: {owner[:40]!r}")
    owner = owner if ":" in owner else f"{owner}:{owner}"
    if mode and not _MODE.fullmatch(mode):
        raise ValueError(f"no mode: {mode[:40]!r}")
    if not source or source.startswith("/") or ".." in source.split("/"):
        raise ValueError(f"files to copy have relative paths, not {source[:200]!r}")
    return _COPY.format(
        archive=_ARCHIVE,
        source=quote(source.removeprefix("./").rstrip("/") or "."),
        owner=quote(owner),
        chmod=f'chmod -R {mode} "${{sources[@]}}"' if mode else "",
        target=quote(target),
        folder="yes" if target.endswith("/") or any(sign in source for sign in "*?[") else "no",
    )
