"""`pip install` and `pip download`: from what was asked for to files in place."""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from belljar.abi.dataclass import dataclass, field
from belljar.bin._kit import count, flag, many, value
from belljar.bin.pip import site
from belljar.bin.pip.config import read_settings
from belljar.bin.pip.environment import Distribution, Environment, applies, find_environment, installed, read_site
from belljar.bin.pip.finder import IndexFinder
from belljar.bin.pip.index import Link, Offer, offer_of_file
from belljar.bin.pip.problems import PipError, Unbuildable
from belljar.bin.pip.requirements import Asked, Wanted, parse_wanted, read_file
from belljar.bin.pip.resolve import Candidate, Need, Provider, resolve
from belljar.bin.pip.sources import open_source
from belljar.bin.pip.store import Store
from belljar.bin.pip.wheel import Package, open_wheel, write_wheel
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    requirements: tuple[str, ...] = many("-r", "--requirement", "install from a requirements file", metavar="file")
    constraints: tuple[str, ...] = many("-c", "--constraint", "constrain versions by a file", metavar="file")
    editable: tuple[str, ...] = many("-e", "--editable", "install a local project in editable mode", metavar="path")
    index_url: str | None = value("-i", "--index-url", "base URL of the package index", metavar="url")
    extra_index_urls: tuple[str, ...] = many("--extra-index-url", "a further index", metavar="url")
    find_links: tuple[str, ...] = many("-f", "--find-links", "look for archives in a directory or page", metavar="url")
    no_index: bool = flag("--no-index", "ignore package indexes")
    no_deps: bool = flag("--no-deps", "don't install dependencies")
    target: str | None = value("-t", "--target", "install packages into a directory", metavar="dir")
    upgrade: bool = flag("-U", "--upgrade", "upgrade the named packages to the newest version")
    force: bool = flag("--force-reinstall", "install again what is installed already")
    ignore_installed: bool = flag("-I", "--ignore-installed", "overwrite installed packages")
    user: bool = flag("--user", "accepted: there is one site-packages, and it is yours")
    pre: bool = flag("--pre", "include pre-releases")
    require_hashes: bool = flag("--require-hashes", "require a hash for each requirement")
    dry_run: bool = flag("--dry-run", "only say what would be installed")
    quiet: int = count("-q", "--quiet", "say less")
    verbose: int = count("-v", "--verbose", "(accepted)")
    destination: str = value("-d", "--dest", "-w", "--wheel-dir", "where to download to", metavar="dir", default=".")
    upgrade_strategy: str | None = value("--upgrade-strategy", "only-if-needed", metavar="how")
    ignored: tuple[str, ...] = many(
        "--trusted-host", "--timeout", "--retries", "--progress-bar", "--cache-dir", "--root-user-action", "--log",
        "--only-binary", "--no-binary", "--use-feature", "--config-settings", "--python-version", "--platform",
        "(accepted)", metavar="value",
    )  # fmt: skip
    accepted: int = count(
        "--no-cache-dir", "--disable-pip-version-check", "--no-input", "--no-color", "--prefer-binary", "--no-compile",
        "--compile", "--break-system-packages", "--no-build-isolation", "--use-pep517", "--no-warn-script-location",
        "--isolated", "--require-virtualenv", "--no-warn-conflicts", "--no-clean", "(accepted)",
    )  # fmt: skip


@dataclass
class Plan:
    """The packages to install, in order, and the file of each."""

    chosen: list[Candidate]
    kept: list[Candidate]
    requested: set[NormalizedName]
    local: dict[NormalizedName, Package] = field(default_factory=dict)


class Installer:
    def __init__(self, process: Process, options: Options, operands: list[str], command: str) -> None:
        self.process = process
        self.options = options
        self.environment: Environment = find_environment(process)
        self.store = Store(process)
        self.asked = self._asked(operands, command)
        self.finder = IndexFinder(process, self.store, self.asked, options.quiet)
        self._packages: dict[NormalizedName, Package] = {}

    def _asked(self, operands: list[str], command: str) -> Asked:
        options, process = self.options, self.process
        settings = read_settings(process, self.environment, command)

        def setting(name: str) -> str:
            return process.env.get(f"PIP_{name.upper().replace('-', '_')}", settings.get(name, ""))

        asked = Asked(
            index_url=options.index_url or setting("index-url") or None,
            extra_index_urls=[*options.extra_index_urls, *setting("extra-index-url").split()],
            find_links=[*options.find_links, *setting("find-links").split()],
            no_index=options.no_index or setting("no-index").lower() in ("1", "true", "yes"),
            pre=options.pre,
            require_hashes=options.require_hashes,
        )
        here = process.fs.getcwd()
        for text in operands:
            asked.wanted.append(parse_wanted(process, text, here))
        for text in options.editable:
            asked.wanted.append(parse_wanted(process, text, here, editable=True))
        for name in options.requirements:
            read_file(process, name, asked)
        for name in options.constraints:
            read_file(process, name, asked, constraint=True)
        if not asked.wanted and not options.requirements:
            raise PipError(f"You must give at least one requirement to {command} (see 'pip help {command}')", status=1)
        if options.index_url and asked.index_url != options.index_url:
            asked.index_url = options.index_url
        return asked

    def say(self, text: str) -> None:
        self.finder.say(text)

    def plan(self, here: dict[NormalizedName, Distribution]) -> Plan:
        """Decide. PipError."""
        self._check_hashes()
        named: dict[NormalizedName, Candidate] = {}
        needs: list[Need] = []
        for wanted in self.asked.wanted:
            need = self._need(wanted, named)
            if need is None or not applies(need.requirement, frozenset()):
                if need is not None:
                    self.say(f"Ignoring {need.name}: markers '{need.requirement.marker}' don't match your environment")
                continue
            needs.append(need)
        direct = {need.name for need in needs}
        provider = Provider(
            self.finder,
            {} if self.options.ignore_installed or self.options.target else here,
            named=named,
            constraints=self._constraints(),
            upgrade=frozenset(direct) if self.options.upgrade else frozenset(),
            pre=self.asked.pre,
            no_deps=self.options.no_deps,
            force=self.options.force,
        )
        mapping = resolve(provider, self.finder, needs)
        chosen: dict[NormalizedName, Candidate] = {}
        for candidate in mapping.values():
            if candidate.name not in chosen or not candidate.extras:
                chosen[candidate.name] = candidate
        kept = [c for c in chosen.values() if c.installed is not None]
        self._say_kept(kept, needs)
        fresh = _ordered([c for c in chosen.values() if c.installed is None], provider)
        return Plan(fresh, kept, set(direct), self._packages)

    def _check_hashes(self) -> None:
        wanted = self.asked.wanted
        required = self.asked.require_hashes or any(w.hashes for w in wanted if w.source)
        for one in wanted:
            if one.requirement is not None and one.hashes:
                self.finder.hashes[canonicalize_name(one.requirement.name)] = one.hashes
            pinned = one.requirement is not None and any(s.operator in ("==", "===") for s in one.requirement.specifier)
            if required and not one.hashes:
                raise PipError(
                    "Hashes are required in --require-hashes mode, but they are missing from some requirements. "
                    f"Here is what is missing: {one.text}"
                )
            if required and one.requirement is not None and one.requirement.url is None and not pinned:
                raise PipError(
                    "In --require-hashes mode, all requirements must have their versions pinned with ==. "
                    f"This one does not: {one.text}"
                )
        self._required = required

    def _constraints(self) -> dict[NormalizedName, SpecifierSet]:
        found: dict[NormalizedName, SpecifierSet] = {}
        for one in self.asked.constraints:
            if one.requirement is None or one.extras:
                raise PipError(f"Constraints must name a project and its versions: {one.text}")
            if applies(one.requirement, frozenset()):
                name = canonicalize_name(one.requirement.name)
                found[name] = found.get(name, SpecifierSet()) & one.requirement.specifier
        return found

    def _need(self, wanted: Wanted, named: dict[NormalizedName, Candidate]) -> Need | None:
        if wanted.path is None and wanted.url is None:
            assert wanted.requirement is not None
            return Need(wanted.requirement, None, wanted)
        package, offer = self._open_given(wanted)
        metadata = package.metadata
        name = canonicalize_name(metadata["name"])
        if wanted.requirement is not None and canonicalize_name(wanted.requirement.name) != name:
            raise PipError(f"{wanted.text} is {metadata['name']}, not {wanted.requirement.name}")
        named[name] = Candidate(
            name,
            Version(metadata["version"]),
            frozenset(),
            offer=offer,
            given=wanted,
            needs=tuple(metadata.get("requires_dist", [])),
        )
        self._packages[name] = package
        extras = f"[{','.join(sorted(wanted.extras))}]" if wanted.extras else ""
        return Need(Requirement(f"{metadata['name']}{extras}"), None, wanted)

    def _open_given(self, wanted: Wanted) -> tuple[Package, Offer | None]:
        """A file or directory that was named itself."""
        if wanted.url is not None:
            self.say(f"Collecting {wanted.text}")
            offer = offer_of_file(wanted.url.rpartition("/")[2], wanted.url, {})
            path = self.store.download(Link(offer.link.filename, wanted.url), wanted.hashes)
            return self._open(path, offer.link.filename), offer
        path = str(wanted.path).rstrip("/")
        self.say(f"Obtaining file://{path}" if wanted.editable else f"Processing {path}")
        if self.process.fs.stat(path).is_dir:
            try:
                return open_source(self.store.open_directory(path), editable=wanted.editable, location=path), None
            except Unbuildable as error:
                raise PipError(f"{wanted.text} can't be installed here: {error}.", *_HINT) from None
        self.store.check_local(path, wanted.hashes)
        filename = path.rpartition("/")[2]
        return self._open(path, filename), offer_of_file(filename, f"file://{path}", {})

    def _open(self, path: str, filename: str) -> Package:
        if filename.endswith(".whl"):
            offer_of_file(filename, path, {})
            return open_wheel(self.store.open_zip(path), filename)
        try:
            return open_source(self.store.open_tree(path))
        except Unbuildable as error:
            raise PipError(f"{filename} can't be installed here: {error}.", *_HINT) from None

    def _say_kept(self, kept: list[Candidate], needs: list[Need]) -> None:
        asked = {need.name: need for need in needs}
        for candidate in kept:
            assert candidate.installed is not None
            need = asked.get(candidate.name)
            shown = str(need.requirement) if need is not None else candidate.installed.name
            where, version = candidate.installed.location, candidate.installed.version
            source = (
                f" {need.wanted.source}" if need is not None and need.wanted is not None and need.wanted.source else ""
            )
            self.say(f"Requirement already satisfied: {shown} in {where}{source} ({version})")

    def prepare(self, plan: Plan) -> list[tuple[Candidate, Package]]:
        """Every file downloaded and opened, before anything is changed."""
        ready = []
        for candidate in plan.chosen:
            package = plan.local.get(candidate.name)
            if package is None:
                assert candidate.offer is not None
                if self._required and candidate.name not in self.finder.hashes:
                    raise PipError(
                        "In --require-hashes mode, all requirements must have their versions pinned with == and a "
                        f"hash. This one has none: {candidate.name}=={candidate.version}"
                    )
                path = self.finder.fetch(candidate.offer, indent="")
                package = self._open(path, candidate.offer.link.filename)
            package.check()
            ready.append((candidate, package))
        return ready


_HINT = ("Only pure-Python packages can be installed here.",)


def _ordered(candidates: list[Candidate], provider: Provider) -> list[Candidate]:
    """Sort dependencies before their dependents, as pip installs."""
    by_name = {candidate.name: candidate for candidate in candidates}
    done: dict[NormalizedName, Candidate] = {}
    under_way: set[NormalizedName] = set()

    def visit(candidate: Candidate) -> None:
        if candidate.name in done or candidate.name in under_way:
            return
        under_way.add(candidate.name)
        for need in provider.get_dependencies(candidate):
            if need.name in by_name and need.name != candidate.name:
                visit(by_name[need.name])
        done[candidate.name] = candidate

    for candidate in sorted(candidates, key=lambda c: c.name):
        visit(candidate)
    return list(done.values())


def run_install(process: Process, options: Options, operands: list[str]) -> int:
    installer = Installer(process, options, operands, "install")
    try:
        environment = installer.environment
        here = installed(process, environment)
        plan = installer.plan(here)
        if options.dry_run:
            if plan.chosen:
                names = " ".join(f"{c.name}-{c.version}" for c in sorted(plan.chosen, key=lambda c: c.name))
                installer.say(f"Would install {names}")
            return 0
        ready = installer.prepare(plan)
        if not ready:
            return 0
        installer.say(f"Installing collected packages: {', '.join(str(c.name) for c, _ in ready)}")
        places = site.Places.of(environment)
        if options.target is not None:
            target = process.absolute(options.target)
            places = site.Places.below(target)
            here = {d.key: d for d in read_site(process, target)}
        for candidate, package in ready:
            old = here.get(candidate.name)
            if old is not None and old.info is not None and old.location == places.purelib:
                installer.say(f"  Attempting uninstall: {candidate.name}")
                installer.say(f"    Found existing installation: {old.name} {old.version}")
                installer.say(f"    Uninstalling {old.name}-{old.version}:")
                site.remove(process, old, environment.prefix if options.target is None else places.purelib)
                installer.say(f"      Successfully uninstalled {old.name}-{old.version}")
            site.install(
                process,
                package,
                places,
                environment.python,
                requested=candidate.name in plan.requested,
                origin=_origin(candidate, package),
            )
        names = " ".join(sorted(f"{c.name}-{c.version}" for c, _ in ready))
        installer.say(f"Successfully installed {names}")
        return 0
    finally:
        installer.store.close()


def _origin(candidate: Candidate, package: Package) -> dict[str, object] | None:
    """Return direct_url.json of a package that did not come from an index."""
    given = candidate.given
    if given is None:
        return None
    if given.url is not None:
        return {"url": given.url, "archive_info": {}}
    if package.editable_root is not None:
        return {"url": f"file://{package.editable_root}", "dir_info": {"editable": True}}
    return {
        "url": f"file://{given.path}",
        "archive_info" if str(given.path).endswith((".whl", ".tar.gz", ".zip")) else "dir_info": {},
    }


def run_download(process: Process, options: Options, operands: list[str]) -> int:
    installer = Installer(process, options, operands, "download")
    try:
        plan = installer.plan({})
        target = process.absolute(options.destination)
        site.make_directories(process, target)
        for candidate in plan.chosen:
            if candidate.offer is None:
                raise PipError(f"{candidate.name}: a directory can't be downloaded")
            path = installer.finder.fetch(candidate.offer, indent="")
            saved = f"{target}/{candidate.offer.link.filename}"
            if path != saved:
                process.write_file(saved, process.read_file(path), 0o644)
            installer.say(f"Saved {saved}")
        installer.say(f"Successfully downloaded {' '.join(str(c.name) for c in plan.chosen)}")
        return 0
    finally:
        installer.store.close()


def run_wheel(process: Process, options: Options, operands: list[str]) -> int:
    installer = Installer(process, options, operands, "wheel")
    try:
        plan = installer.plan({})
        target = process.absolute(options.destination)
        site.make_directories(process, target)
        for candidate, package in installer.prepare(plan):
            offer = candidate.offer
            if offer is not None and offer.is_wheel:
                path, name = installer.finder.fetch(offer, indent=""), offer.link.filename
                data = process.read_file(path)
            else:
                name = f"{package.info.removesuffix('.dist-info')}-py3-none-any.whl"
                data = write_wheel(package)
                installer.say(f"Building wheel for {candidate.name}: finished")
            process.write_file(f"{target}/{name}", data, 0o644)
            installer.say(f"Saved {target}/{name}")
        return 0
    finally:
        installer.store.close()
