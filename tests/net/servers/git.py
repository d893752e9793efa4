"""A git server: the smart HTTP protocol, by dulwich, over a repository in memory."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any, cast

from dulwich.objects import Blob, Commit, ObjectID, Tree
from dulwich.refs import Ref
from dulwich.repo import MemoryRepo
from dulwich.server import BackendRepo, DictBackend
from dulwich.web import make_wsgi_chain

from tests.net.servers.http1 import HttpServer, Request, Response


class GitServer(HttpServer):
    """Repositories at `URL/NAME.git`. With `user` and `password`, everything else gets 401."""

    def __init__(
        self,
        names: Iterable[str] = ("repo",),
        *,
        user: str = "",
        password: str = "",
        address: str = "127.0.0.1",
        port: int = 0,
        context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__({"/": self._serve_git}, address=address, port=port, context=context)
        self.repositories = {name: MemoryRepo.init_bare([], {}) for name in names}
        for repository in self.repositories.values():
            repository.refs.set_symbolic_ref(Ref(b"HEAD"), Ref(b"refs/heads/main"))
        # Its types ask for packs on a disk; its code does not.
        served = {f"/{name}.git": cast(BackendRepo, repo) for name, repo in self.repositories.items()}
        backend = DictBackend(served)
        self._application = make_wsgi_chain(backend)
        self._expected = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode() if user else ""

    def commit(self, files: Mapping[str, bytes], message: str, *, name: str = "repo", branch: str = "main") -> bytes:
        """A commit with exactly these files, on top of the branch; its name."""
        repository = self.repositories[name]
        ref = Ref(b"refs/heads/" + branch.encode())
        commit = Commit()
        commit.tree = self._tree(repository, files)
        commit.parents = [repository.refs[ref]] if ref in repository.refs else []
        commit.author = commit.committer = b"Tester <tester@example.com>"
        commit.author_time = commit.commit_time = 1_700_000_000 + len(list(repository.object_store))
        commit.author_timezone = commit.commit_timezone = 0
        commit.message = message.encode() + b"\n"
        repository.object_store.add_object(commit)
        repository.refs[ref] = commit.id
        return bytes(commit.id)

    def tip(self, branch: str = "main", name: str = "repo") -> bytes | None:
        ref = Ref(b"refs/heads/" + branch.encode())
        refs = self.repositories[name].refs
        return bytes(refs[ref]) if ref in refs else None

    def file(self, path: str, branch: str = "main", name: str = "repo") -> bytes:
        """A file as the branch has it now."""
        store = self.repositories[name].object_store
        tip = self.tip(branch, name)
        assert tip is not None
        item: Any = store[store[ObjectID(tip)].tree]  # type: ignore[attr-defined]
        for part in path.split("/"):
            item = store[item[part.encode()][1]]
        return bytes(item.data)

    def _tree(self, repository: MemoryRepo, files: Mapping[str, bytes]) -> ObjectID:
        tree = Tree()
        below: dict[str, dict[str, bytes]] = {}
        for path, data in files.items():
            first, slash, rest = path.partition("/")
            if slash:
                below.setdefault(first, {})[rest] = data
                continue
            blob = Blob.from_string(data)
            repository.object_store.add_object(blob)
            tree.add(first.encode(), 0o100644, blob.id)
        for first, inner in below.items():
            tree.add(first.encode(), 0o040000, self._tree(repository, inner))
        repository.object_store.add_object(tree)
        return tree.id

    def _serve_git(self, request: Request) -> Response:
        if self._expected and request.header("authorization") != self._expected:
            return Response(401, b"who are you?\n", {"WWW-Authenticate": 'Basic realm="git"'})
        path, _, query = request.target.partition("?")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": request.method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": request.header("content-type") or "",
            "CONTENT_LENGTH": str(len(request.body)),
            "wsgi.input": BytesIO(request.body),
            "wsgi.errors": BytesIO(),
            "SERVER_NAME": self.address,
            "SERVER_PORT": str(self.port),
            "wsgi.url_scheme": "http",
        }
        for name in ("content-encoding", "git-protocol"):
            if (value := request.header(name)) is not None:
                environ["HTTP_" + name.upper().replace("-", "_")] = value
        written: list[bytes] = []
        started: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> Any:
            started.update(status=int(status.split()[0]), headers=headers)
            return written.append

        rest = list(self._application(environ, start_response))  # which writes while it is read
        body = b"".join([*written, *rest])
        headers = [(k, v) for k, v in started["headers"] if k.lower() not in ("content-length", "transfer-encoding")]
        return Response(started["status"], body, headers)
