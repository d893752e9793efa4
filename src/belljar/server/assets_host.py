"""What tenants keep besides sandboxes, in the server's file: templates with their builds and tags, volumes, secrets."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, json

from belljar.server.database_host import Database

DEFAULT_TAG: Final = "default"
_BUILD: Final = "id, template, status, created, finished, image, start, ready, reason, step, tags, user, cwd"
_CREDENTIAL: Final = "id, name, version, metadata, created, updated"


class Template(Struct, frozen=True):
    id: str
    tenant: str
    name: str
    created: float
    spawned: float | None
    spawns: int


class Build(Struct, frozen=True):
    """One making of a template. `image` is the digest of what it gave."""

    id: str
    template: str
    status: str
    """waiting, building, ready or error."""
    created: float
    finished: float | None = None
    image: str | None = None
    start: str = ""
    ready: str = ""
    reason: str = ""
    step: str = ""
    tags: str = ""
    """Those it is to have once it is ready, with spaces between them."""
    user: str = ""
    cwd: str = ""
    """Who commands of its sandboxes run as, and where, unless told otherwise."""


class Tag(Struct, frozen=True):
    name: str
    build: str
    created: float


class Volume(Struct, frozen=True):
    id: str
    tenant: str
    name: str
    created: float


class Credential(Struct, frozen=True):
    """A secret as clients see it: without its value."""

    id: str
    name: str
    version: int
    metadata: dict[str, str]
    created: float
    updated: float


class Assets:
    """Used by the thread that uses the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # Templates.

    def templates(self, tenant: str) -> list[Template]:
        """Newest first."""
        rows = self._database.rows("SELECT * FROM template WHERE tenant = ? ORDER BY created DESC, id", tenant)
        return [Template(*row) for row in rows]

    def template(self, tenant: str, name: str) -> Template | None:
        """By its id or name."""
        sql = "SELECT * FROM template WHERE tenant = ? AND (id = ? OR name = ?)"
        row = self._database.one(sql, tenant, name, name)
        return None if row is None else Template(*row)

    def template_by_id(self, number: str) -> Template | None:
        """Of any tenant."""
        row = self._database.one("SELECT * FROM template WHERE id = ?", number)
        return None if row is None else Template(*row)

    def add_template(self, template: Template) -> None:
        self._database.write(
            "INSERT INTO template (id, tenant, name, created) VALUES (?, ?, ?, ?)",
            template.id,
            template.tenant,
            template.name,
            template.created,
        )

    def drop_template(self, number: str) -> list[str]:
        """Gives the images that nothing refers to any more."""
        images = {build.image for build in self.builds(number) if build.image is not None}
        self._database.write("DELETE FROM template WHERE id = ?", number)
        return [image for image in images if not self.refers(image)]

    def refers(self, image: str) -> bool:
        return self._database.one("SELECT 1 FROM build WHERE image = ?", image) is not None

    def count_spawn(self, number: str, now: float) -> None:
        self._database.write("UPDATE template SET spawned = ?, spawns = spawns + 1 WHERE id = ?", now, number)

    def builds(self, template: str) -> list[Build]:
        """Newest first."""
        sql = f"SELECT {_BUILD} FROM build WHERE template = ? ORDER BY created DESC, id"  # noqa: S608 - our own names
        return [Build(*row) for row in self._database.rows(sql, template)]

    def build(self, template: str, number: str) -> Build | None:
        sql = f"SELECT {_BUILD} FROM build WHERE template = ? AND id = ?"  # noqa: S608 - our own names
        row = self._database.one(sql, template, number)
        return None if row is None else Build(*row)

    def put_build(self, build: Build) -> None:
        self._database.write(
            "INSERT INTO build VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
            "status = excluded.status, finished = excluded.finished, image = excluded.image, start = excluded.start, "
            "ready = excluded.ready, reason = excluded.reason, step = excluded.step, user = excluded.user, "
            "cwd = excluded.cwd",
            *(getattr(build, name) for name in Build.__struct_fields__),
        )

    def stop_builds(self, now: float, why: str) -> None:
        """Those that an earlier server had under way have failed."""
        sql = "UPDATE build SET status = 'error', finished = ?, reason = ? WHERE status = 'building'"
        self._database.write(sql, now, why)

    def tags(self, template: str) -> list[Tag]:
        sql = "SELECT name, build, created FROM tag WHERE template = ? ORDER BY created DESC, name"
        return [Tag(*row) for row in self._database.rows(sql, template)]

    def put_tag(self, template: str, tag: Tag) -> None:
        sql = "INSERT OR REPLACE INTO tag VALUES (?, ?, ?, ?)"
        self._database.write(sql, template, tag.name, tag.build, tag.created)

    def drop_tag(self, template: str, name: str) -> bool:
        return self._database.write("DELETE FROM tag WHERE template = ? AND name = ?", template, name) == 1

    def tagged(self, template: str, tag: str) -> Build | None:
        """The build that a tag, or the id of a build, means."""
        for each in self.tags(template):
            if each.name == tag:
                return self.build(template, each.build)
        return self.build(template, tag)

    # Volumes.

    def volumes(self, tenant: str) -> list[Volume]:
        rows = self._database.rows("SELECT * FROM volume WHERE tenant = ? ORDER BY created, id", tenant)
        return [Volume(*row) for row in rows]

    def volume(self, number: str) -> Volume | None:
        row = self._database.one("SELECT * FROM volume WHERE id = ?", number)
        return None if row is None else Volume(*row)

    def add_volume(self, volume: Volume) -> None:
        self._database.write(
            "INSERT INTO volume VALUES (?, ?, ?, ?)", volume.id, volume.tenant, volume.name, volume.created
        )

    def drop_volume(self, number: str) -> None:
        self._database.write("DELETE FROM volume WHERE id = ?", number)

    # Secrets.

    def credentials(self, tenant: str) -> list[Credential]:
        sql = f"SELECT {_CREDENTIAL} FROM credential WHERE tenant = ? ORDER BY created, id"  # noqa: S608 - our own
        return [_credential(row) for row in self._database.rows(sql, tenant)]

    def credential(self, tenant: str, name: str) -> Credential | None:
        """By its id or name."""
        sql = f"SELECT {_CREDENTIAL} FROM credential WHERE tenant = ? AND (id = ? OR name = ?)"  # noqa: S608 - our own
        row = self._database.one(sql, tenant, name, name.lower())
        return None if row is None else _credential(row)

    def put_credential(self, tenant: str, credential: Credential, value: str) -> None:
        self._database.write(
            "INSERT OR REPLACE INTO credential VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            credential.id,
            tenant,
            credential.name,
            value,
            credential.version,
            json.encode(credential.metadata).decode(),
            credential.created,
            credential.updated,
        )

    def drop_credential(self, number: str) -> None:
        self._database.write("DELETE FROM credential WHERE id = ?", number)

    def secret_values(self) -> dict[tuple[str, str], str]:
        """Values of all secrets, by tenant and name."""
        rows = self._database.rows("SELECT tenant, name, value FROM credential")
        return {(str(tenant), str(name)): str(value) for tenant, name, value in rows}


def _credential(row: tuple[object, ...]) -> Credential:
    number, name, version, metadata, created, updated = row
    return Credential(
        str(number),
        str(name),
        int(version),  # type: ignore[call-overload]
        json.decode(str(metadata), type=dict[str, str]),
        float(created),  # type: ignore[arg-type]
        float(updated),  # type: ignore[arg-type]
    )
