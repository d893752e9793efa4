"""`Image`: a recipe for the files and settings of sandboxes, and what building it makes."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, structs

from belljar.abi.base import AGENT_NAME, TAKEN_NAMES
from belljar.abi.errors import ImageError
from belljar.abi.paths import fsdecode
from belljar.api.errors import NotOnThisTier
from belljar.api.request import (
    AnyPath,
    FileContents,
    check_command,
    check_contents,
    check_environment,
    check_mapping,
    check_path,
)
from belljar.api.settings import BASE, SandboxOptions, Settings, check_store
from belljar.image.recipe import (
    Command,
    Copy,
    Cwd,
    Debian,
    Env,
    Files,
    Run,
    Service,
    Step,
    User,
    forget_steps,
    keep_steps,
)
from belljar.image.record import (
    ImageRecord,
    check_image_name,
    config_of,
    environment_of,
    find_image,
    is_image_name,
    read_image_record,
    save_image,
)
from belljar.kernel.loader import program_file
from belljar.store.default_host import default_store
from belljar.store.objects import Digest, digest_of
from belljar.store.snapshot import IMAGE, SHA256, encode_snapshot, ref_of
from belljar.store.store import Objects, Store
from belljar.store.tree import Kind

if TYPE_CHECKING:
    from belljar.abi.limits import Limits
    from belljar.api.state import State
    from belljar.native.roots import RootSource
    from belljar.net.network import Network

_ENDING: Final = re.compile(r"\.(tar|tgz|tar\.[a-z0-9]+)$")
_SUITE: Final = re.compile(r"[a-z][a-z0-9.-]*")
_PACKAGE: Final = re.compile(r"[a-z0-9][a-z0-9+.-]*(=[A-Za-z0-9.+:~-]+)?")
_USER: Final = re.compile(r"[a-z_][a-z0-9_-]{0,31}")


class Progress(Struct, frozen=True):
    """What is told of a build as it goes on: of each step that it begins, then what it says, then how it ended."""

    number: int
    """Of the step, from 1."""
    count: int
    """Steps of the whole recipe."""
    step: str
    state: Literal["started", "output", "done", "cached", "failed"]
    output: bytes = b""
    seconds: float = 0.0


class _Archive(Struct, frozen=True):
    """An image to be read from an archive or a layout of the host's."""

    path: str
    tag: str | None


class _Directory(Struct, frozen=True):
    """A directory of the host's that is a root file system."""

    path: str


class _Host(Struct, frozen=True):
    """The host's own programs, and further directories of it."""

    also: tuple[str, ...]


class Built(Struct, frozen=True):
    """An image in a store."""

    store: Store
    digest: Digest
    record: ImageRecord
    name: str = ""


class Image:
    """A recipe: each method gives a new one with a further step, and `build` runs it. The same recipe gives the same
    digest on any machine.

    >>> recipe = Image().files({"/app/hello.py": "print('hello')"}).run("python3 -m compileall -q /app")
    >>> image = recipe.build(name="app")
    >>> Sandbox(image="app").exec("python3 /app/hello.py").stdout
    'hello\\n'
    """

    __slots__ = ("_origin", "_steps")

    def __init__(self) -> None:
        self._origin: _Origin | None = None
        self._steps: tuple[Step, ...] = ()

    @classmethod
    def oci(cls, path: AnyPath, tag: str | None = None) -> Image:
        """Begin with an image of another tool's: an OCI layout (a directory or a tar archive), or an archive of `docker
        save`. `tag` chooses one if there are several.
        """
        return _image(_Archive(check_path(path, "a path"), tag))

    @classmethod
    def directory(cls, path: AnyPath) -> Image:
        """Begin with a directory of this machine's that is a root file system. `build` reads it into the store;
        `Sandbox(tier="native")` takes it as it is, too, and never writes to it.
        """
        return _image(_Directory(check_path(path, "a path")))

    @classmethod
    def debian(
        cls,
        suite: str,
        packages: Iterable[str] = (),
        *,
        mirror: str | None = None,
        keyring: AnyPath | None = None,
        trusted: bool = False,
        configure: bool = True,
    ) -> Image:
        """Begin with a Debian system, made of packages: those that every system has, those that are named ("gcc", or
        "gcc=4:12.2.0-3"), what these recommend, and everything that is needed for them. `build` fetches them.

        Without a mirror they are Debian's, with updates and security fixes. Its signature is checked by gpgv with the
        keys of `keyring`, else of this machine's package debian-archive-keyring; `trusted` takes any. With
        `configure`, the packages' own scripts are run in a sandbox of the native tier, without network.
        """
        if not _SUITE.fullmatch(suite):
            raise ValueError(f"a suite of Debian is a name such as 'bookworm', not {suite!r}")
        names = (packages,) if isinstance(packages, str) else tuple(packages)
        for name in names:
            if not _PACKAGE.fullmatch(name):
                raise ValueError(f"a Debian package is named like 'gcc' or 'gcc=4:12.2.0-3', not {name!r}")
        place = "" if keyring is None else check_path(keyring, "a path")
        step = Debian(suite, tuple(sorted(set(names))), mirror or "", place, trusted, configure)
        return _image(None, (step,))

    @classmethod
    def host(cls, also: Iterable[AnyPath] = ()) -> Image:
        """This machine's own programs, read-only, for the native tier: `/usr`, and of `/etc` what programs need to run.
        Nothing of `/home`, `/root`, `/var`, `/run`, `/srv` or `/opt`, and no accounts or secrets.

        `also` names further directories, such as `/opt/tool`. It needs no `build`, and no store can have it.
        """
        if isinstance(also, str | bytes):
            raise TypeError(f"also= takes a list of paths, not {also!r}")
        return _image(_Host(tuple(check_path(path, "a path") for path in also)))

    @classmethod
    def find(cls, name: str, store: Store | None = None) -> Image:
        """An image that was built, by its name or digest. ImageError if there is none."""
        return _image(find_built(name, store))

    # Steps.

    def files(self, files: Mapping[str, FileContents]) -> Image:
        """Write files: contents, or (contents, mode), by their absolute paths."""
        checked = []
        for path, value in sorted(check_mapping("files", files).items()):
            data, mode = check_contents(path, value)
            checked.append((_absolute(path), data, 0o644 if mode is None else mode))
        paths = {PurePosixPath(path): path for path, _, _ in checked}
        for inner in paths:
            for outer in paths.keys() & set(inner.parents):
                raise ValueError(f"{paths[outer]!r} can't be a file: {paths[inner]!r} is below it")
        return self._with(Files(tuple(checked)))

    def copy(self, source: AnyPath, target: AnyPath) -> Image:
        """Copy a file or the contents of a directory of this machine's to an absolute path. It is read by `build`.

        Owners, times and modes become the image's own, but for whether a file may be run.
        """
        return self._with(Copy(check_path(source, "a path"), _absolute(target)))

    def run(self, command: str | list[str]) -> Image:
        """Run a command, in a sandbox of its own with what the steps before made. It must succeed."""
        argv = check_command(command)
        return self._with(Run(command if isinstance(command, str) else tuple(argv)))

    def env(self, variables: Mapping[str, str] | None = None, /, **more: str) -> Image:
        """Set environment variables, for the steps that follow and for sandboxes."""
        given = check_environment({**check_mapping("env", variables), **more})
        return self._with(Env(tuple(sorted(given.items()))))

    def cwd(self, path: AnyPath) -> Image:
        """Set the working directory, for the steps that follow and for sandboxes. It is made if it is missing."""
        return self._with(Cwd(_absolute(path)))

    def user(self, name: str) -> Image:
        """Run the steps that follow, and commands in sandboxes, as "root", or under a name for the agent's account."""
        if not isinstance(name, str):
            raise TypeError(f"a user is a str, not {name!r}")
        return self._with(User(name))

    def command(self, command: str | list[str]) -> Image:
        """Set what `belljar image run` runs if it is told nothing else."""
        return self._with(Command(tuple(check_command(command))))

    def pip(self, *packages: str) -> Image:
        """Install Python packages by `pip`, through the network that `build` is given."""
        return self.run("pip install --no-cache-dir " + shlex.join(_words(packages)))

    def npm(self, *packages: str) -> Image:
        """Install packages by `npm`, in the working directory, through the network that `build` is given."""
        return self.run("npm install " + shlex.join(_words(packages)))

    def service(
        self,
        name: str,
        command: str | list[str],
        *,
        needs: Iterable[str] = (),
        restart: Literal["always", "on-failure", "never"] = "on-failure",
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        ready: str | None = None,
        cwd: AnyPath = "/",
        description: str = "",
        stop_seconds: float = 5.0,
    ) -> Image:
        """Have sandboxes keep a program running: it is started with them, after the services it `needs` are ready, and
        again, with growing pauses, when it fails.

        `ready` tells when it can be used: "port:8000", "file:/run/name", "command:...", or "done" (it is a job, and
        has ended well); else as soon as it was started. `user` is the sandbox's own unless told. See docs/services.md.
        """
        from belljar.kernel.services.unit import make_unit, render_unit

        check_command(command)
        given: dict[str, Any] = {"command": command, "restart": restart, "ready": ready, "stop_seconds": stop_seconds}
        given |= {"needs": [needs] if isinstance(needs, str) else list(needs), "cwd": _absolute(cwd)}
        given |= {"user": user} if user is not None else {}
        given |= {"env": check_environment(env), **({"description": description} if description else {})}
        return self._with(Service(name, render_unit(make_unit(name, given))))

    def package(self, *packages: AnyPath, registry: str | None = None, key: str | None = None) -> Image:
        """Install packages: by name and range ("hello@^1"), or a directory or archive of this machine's, which has a
        slash in its path. `registry` is the URL to get them from, `key` what its catalog must be signed by; without it
        they come from the registries of the steps before. ImageError if a package of this machine's is none.
        """
        words = _words([check_path(package, "a package") for package in packages])
        image, local = self, []
        for number, word in enumerate(words):
            if "/" in word or word.endswith(".tar.gz"):
                words[number], data = _pack(word)
                image = image.files({words[number]: data})
                local.append(words[number])
        commands = [["pkg", "install", "--no-start", *words]]
        if registry is not None:
            added = ["pkg", "registry", "add", registry, *(["--key", key] if key else [])]
            commands = [added, ["pkg", "update"], *commands]
        elif key is not None:
            raise ValueError("a key is of use with a registry only")
        if local:
            commands.append(["rm", *local])
        return image.run(" && ".join(map(shlex.join, commands)))

    def use(self, extension: Callable[[Image], Image] | AnyPath) -> Image:
        """Add what an extension adds: a function from recipe to recipe, or a package, as `package` takes it."""
        if isinstance(extension, str | PurePath):
            return self.package(extension)
        if not callable(extension):
            raise TypeError(f"use() takes a function from Image to Image, not {extension!r}")
        made = extension(self)
        if not isinstance(made, Image):
            raise TypeError(f"an extension gives an Image, not {type(made).__name__}: end it with `return image`")
        return made

    def _with(self, step: Step) -> Image:
        return _image(self._origin, (*self._steps, step))

    @property
    def steps(self) -> list[str]:
        """The steps that are not built yet, as text."""
        return [str(step) for step in self._steps]

    # Building, and what was built.

    def build(
        self,
        store: Store | None = None,
        name: str | None = None,
        network: Network | None = None,
        on_progress: Callable[[Progress], object] | None = None,
        *,
        limits: Limits | None = None,
        tier: Literal["virtual", "native"] | None = None,
    ) -> Image:
        """Run the steps, those whose result the store does not have yet; gives the image that was made.

        It is kept in the store (the user's own unless told) under its name, or else its digest. Steps see a clock that
        stands still and randomness that is always the same. A step that fails raises ImageError, with its output.

        `tier` says where commands run: on the native tier those of a recipe that begins with `Image.debian()`, and on
        the virtual tier all others, unless told.
        """
        if tier not in (None, "virtual", "native"):
            raise ValueError(f"steps can't be run on tier {tier!r}: choose 'virtual' or 'native'")
        from belljar.api.build import build  # few programs do

        place = _place(store)
        if name is not None:
            check_image_name(name)
        objects = Objects(place)
        record, used = build(objects, self._start(objects), self._steps, network, on_progress, limits, tier)
        digest = save_image(objects, record, name)
        keep_steps(objects, digest, used)
        return _image(Built(place, digest, record, name or ""))

    def _start(self, objects: Objects) -> ImageRecord | None:
        """The image that the steps begin with; None: the base files."""
        match self._origin:
            case _Archive(path=path, tag=tag):
                return _read_archive(path, objects, tag)[0]
            case _Directory(path=path):
                if sys.platform != "linux":
                    raise ImageError("Image.directory() can be built on Linux only")
                from belljar.native.roots_host import read_directory

                return read_directory(path, objects)
            case _Host():
                raise ImageError("Image.host() can't be built: it is this machine's own. Use it as it is")
            case Built(store=store, record=record):
                if store is not objects.backend:
                    from belljar.api.state import copy_trees

                    copy_trees(Objects(store), objects, [tree.digest for tree in record.trees])
                return record
        return None

    @property
    def built(self) -> Built:
        """ImageError if it was not built."""
        if isinstance(self._origin, _Host):
            raise NotOnThisTier("Image.host()", "virtual", "native")
        if not isinstance(self._origin, Built) or self._steps:
            raise ImageError("the image is only a recipe so far: use what image.build(store) gives")
        return self._origin

    @property
    def digest(self) -> str:
        """ "sha256:" and the digits. ImageError if it was not built."""
        return ref_of(self.built.digest)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return self.built.record.size

    def to_oci(self, path: AnyPath, name: str | None = None) -> None:
        """Write the image for other tools: an archive that Docker and skopeo take if the path ends with ".tar" (or
        ".tar.gz" or ".tgz": compressed), else an OCI layout in a new directory. It has the image's name, unless
        another is given. The same image gives the same bytes. ImageError.
        """
        from belljar.image.layout_host import write_layout
        from belljar.image.oci_write import layout_files

        built = self.built
        files = layout_files(Objects(built.store), built.record, name or built.name)
        write_layout(check_path(path, "a path"), files)

    def __repr__(self) -> str:
        if isinstance(self._origin, Built) and not self._steps:
            return f"<Image {self._origin.name or self.digest}>"
        return f"<Image: a recipe of {len(self._steps)} steps>"


_Origin = _Archive | _Directory | _Host | Built


def _image(origin: _Origin | None, steps: tuple[Step, ...] = ()) -> Image:
    image = Image()
    image._origin, image._steps = origin, steps
    return image


def _place(store: Store | None) -> Store:
    """The store that is given, or the user's own. TypeError."""
    return check_store(store) or default_store()


def _read_archive(path: str, objects: Objects, tag: str | None) -> tuple[ImageRecord, str]:
    """Store the files of an image of another tool's; its record, and the name it has there. ImageError."""
    from belljar.image.layout_host import open_layout  # it takes all kinds of archives: not to be loaded for nothing
    from belljar.image.oci import read_image

    with open_layout(path) as layout:
        return read_image(layout, objects, tag)


def _pack(path: str) -> tuple[str, bytes]:
    """A package of this machine's: where its archive goes in an image, and the archive. ImageError."""
    from belljar.packages.archive import compress, file_name
    from belljar.packages.errors import PackageError
    from belljar.packages.owner.source_host import read_package

    try:
        package = read_package(path)
    except PackageError as error:
        raise ImageError(str(error)) from None
    return f"/tmp/{file_name(package.manifest.name, package.manifest.version)}", compress(package.tar)


def _absolute(path: object) -> str:
    found = check_path(path)
    if not found.startswith("/") or "\0" in found or ".." in found.split("/"):
        raise ValueError(f"{found!r}: a path in an image is absolute and has no '..'")
    return found


def _words(packages: Iterable[object]) -> list[str]:
    found = [word for word in packages if isinstance(word, str) and word and not word.startswith("-")]
    if not found or len(found) != len(list(packages)):
        raise ValueError("give the names of packages, each as a str")
    return found


def find_built(name: str, store: Store | None = None) -> Built:
    """The image of a name or digest. ImageError."""
    place = _place(store)
    digest = find_image(place, name)
    record = read_image_record(Objects(place), digest)
    return Built(place, digest, record, name if not name.startswith(SHA256) and place.get(IMAGE + name) else "")


def from_image(options: SandboxOptions) -> tuple[Settings, State]:
    """What a sandbox from an image starts with: the image's settings unless they are given. ImageError, TypeError."""
    from belljar.api.state import Origin, State

    image = options.get("image")
    if isinstance(image, Image):
        built = image.built
    elif isinstance(image, str):
        built = find_built(image, options.get("store"))
    else:
        raise TypeError(f"image= takes an Image that was built, its name or its digest, not {image!r}")
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None and name != "image"}
    user = account_of(built.record)
    settings: dict[str, Any] = {"cwd": fsdecode(built.record.cwd), "user": user, **given}
    settings["files"] = {**shell_file(Objects(built.store), built.record), **given.get("files", {})}
    settings["env"] = {**environment_of(built.record), **check_environment(given.get("env"))}
    state = State(Origin(Objects(built.store), built.digest, structs.replace(built.record, user=user)))
    state.parent = b""  # an image is no snapshot
    checked = Settings.check(settings)  # type: ignore[arg-type]
    return structs.replace(checked, image=built.name or ref_of(built.digest)), state


def is_stored(image: Image | str | None) -> bool:
    """Whether a virtual sandbox can begin with its files: not those of a machine's directories."""
    return not (isinstance(image, Image) and isinstance(image._origin, _Host | _Directory))


def root_source(image: Image | str | None, store: Store | None = None) -> RootSource:
    """The root of a native sandbox: of an image, its name or digest, or a recipe, which is built into the store first;
    without one, this machine's own programs. ImageError, TypeError.
    """
    from belljar.native.roots import RootSource

    match image:
        case None:
            return root_source(Image.host())
        case str() if image != BASE:
            built = find_built(image, store)
        case Image(_origin=_Host() | _Directory() as origin, _steps=steps):
            return _with_settings(origin, steps)
        case str():
            return root_source(Image())
        case Image(_origin=None, _steps=steps) if not steps or not isinstance(steps[0], Debian):
            raise ImageError("Image() has no programs that Linux can run: begin with Image.host(), .debian() or .oci()")
        case Image(_origin=Built() as built, _steps=()):
            pass
        case Image():
            built = image.build(store).built
        case _:
            raise TypeError(f"image= takes an Image, its name or its digest, not {image!r}")
    return RootSource(Objects(built.store), built.record)


def _with_settings(origin: _Host | _Directory, steps: tuple[Step, ...]) -> RootSource:
    """A root that is in no store, with the steps of its recipe that only write files or change settings."""
    from belljar.native.host_image_host import host_source
    from belljar.native.roots_host import directory_source

    source = host_source(origin.also) if isinstance(origin, _Host) else directory_source(origin.path)
    if not steps:
        return source
    from belljar.api.build import build

    for step in steps:
        if isinstance(step, Run) or (isinstance(step, User) and step.name not in ("root", AGENT_NAME)):
            what = "Image.host()" if isinstance(origin, _Host) else "Image.directory() that is not built"
            raise ImageError(f"{what} can't have the step `{step}`: only files and settings can be added to it")
    record, _ = build(source.objects, source.record, steps, None, None, None)
    if record.trees == source.record.trees:
        return structs.replace(source, record=record)
    named = digest_of(source.digest.encode() + record.trees[0].digest).hex()
    return structs.replace(source, record=record, digest=f"{source.digest.partition(':')[0]}:{named}")


def shell_file(objects: Objects, record: ImageRecord) -> dict[str, FileContents]:
    """Our bash, for an image of another system that has none: commands run in it."""
    from belljar.store.reader_host import Reader
    from belljar.store.stored_tree import LISTINGS

    reader = Reader(objects)
    for place in ("usr/bin", "bin", "usr/local/bin"):
        digest = record.trees[0].digest
        for name in place.split("/"):
            entry = reader.get(LISTINGS, digest).get(name)
            if entry is None or entry.kind is not Kind.DIRECTORY:
                break
            digest = entry.parts[0]
        else:
            if "bash" in reader.get(LISTINGS, digest):
                return {}
    return {"/usr/bin/bash": (program_file("bash"), 0o755)}


def account_of(record: ImageRecord) -> str:
    """Who commands run as: root, or the one other account that a sandbox has."""
    name = record.user.partition(":")[0]
    if name in ("", "0", "root"):
        return "root"
    return name if _USER.fullmatch(name) and name not in TAKEN_NAMES else AGENT_NAME


def list_images(store: Store | None = None) -> list[Image]:
    """Every image that a store keeps, by name; then those that were built without a name. ImageError."""
    place = _place(store)
    refs = place.list(IMAGE)
    named = {ref: digest for ref, digest in refs.items() if not ref.startswith(IMAGE + SHA256)}
    others = {ref for ref, digest in refs.items() if digest not in named.values()}
    return [_image(find_built(ref.removeprefix(IMAGE), place)) for ref in [*sorted(named), *sorted(others)]]


def load_image(path: AnyPath, store: Store | None = None, tag: str | None = None, name: str | None = None) -> Image:
    """Keep an image of another tool's, under the name that is given, which then means this one; else that which its
    archive says, else that of the file. ImageError if the archive's or the file's is the name of another image.
    """
    place = _place(store)
    if name is not None:
        check_image_name(name)
    file = check_path(path, "a path")
    record, found = _read_archive(file, Objects(place), tag)
    stem = _ENDING.sub("", PurePath(file).name)
    called = name or next((each for each in (found, stem) if is_image_name(each)), None)
    if called != name and place.get(IMAGE + str(called)) not in (None, digest_of(encode_snapshot(record, "image"))):
        raise ImageError(f"there is another image {called!r}: give a name (--name {called} replaces that one)")
    return _image(Built(place, save_image(Objects(place), record, called), record, called or ""))


def remove_images(names: Iterable[str], store: Store | None = None) -> list[str]:
    """Forget images, each by a name, or by a digest with all its names; and the cached steps that only they used. Gives
    the names. ImageError, with nothing removed, if one of them is not there.
    """
    place = _place(store)
    refs, gone = place.list(IMAGE), dict[str, Digest]()
    for name in names:
        digest = find_image(place, name)
        found = [IMAGE + name] if IMAGE + name in refs else [ref for ref, other in refs.items() if other == digest]
        if not found:
            raise ImageError(f"there is no image {name[:200]!r}: `belljar image ls` lists those there are")
        gone |= dict.fromkeys(found, digest)
    for ref, digest in gone.items():
        place.delete(ref, digest)
    forget_steps(Objects(place))
    return [ref.removeprefix(IMAGE) for ref in gone]


def describe(built: Built) -> dict[str, Any]:
    """What there is to say of an image."""
    record, config = built.record, config_of(built.record)
    return {
        "digest": ref_of(built.digest),
        "name": built.name,
        "size": record.size,
        "env": environment_of(record),
        "cwd": fsdecode(record.cwd),
        "user": record.user,
        "command": config.command,
        "history": config.history,
    }
