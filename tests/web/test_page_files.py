"""The page's files: found by name, outside files never, and sent again only when they changed."""

import asyncio
from pathlib import Path
from urllib.parse import unquote

import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from hotlap.web import page_files
from hotlap.web.answers import endpoint
from hotlap.web.page_files import StaticFiles, get_static


class Client:
    """Asks the application for paths, without a server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._app = Starlette(routes=[Route("/", endpoint(get_static)), Route("/{name:path}", endpoint(get_static))])
        self._app.state.static = StaticFiles(folder)

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
        """Status, headers and text."""
        sent: list[dict] = []
        scope = {
            "type": "http", "method": "GET", "path": unquote(path), "raw_path": path.encode(), "query_string": b"",
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        }  # fmt: skip

        async def receive() -> dict:
            return {"type": "http.request", "body": b""}

        async def send(message: dict) -> None:
            sent.append(message)

        asyncio.run(self._app(scope, receive, send))
        told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], told, b"".join(part["body"] for part in sent[1:]).decode()


@pytest.fixture
def client(tmp_path):
    folder = tmp_path / "static"
    (folder / "js").mkdir(parents=True)
    (folder / "index.html").write_text("<p>page</p>")
    (folder / "js" / "app.js").write_text("1;")
    (tmp_path / "secret").write_text("the secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    return Client(folder)


def test_files_have_their_types_and_the_root_is_the_index(client):
    assert client.get("/")[2] == "<p>page</p>"
    status, headers, text = client.get("/js/app.js")
    assert (status, text, headers["content-type"]) == (200, "1;", "text/javascript; charset=utf-8")


@pytest.mark.parametrize("name", ["/../secret", "/%2e%2e/secret", "/link", "/js", "/js/../../secret", "/nothing"])
def test_nothing_else_is_found(client, name):
    status, _, text = client.get(name)
    assert status == 404
    assert "the secret" not in text


def test_a_file_is_sent_again_only_when_it_changed(client):
    tag = client.get("/js/app.js")[1]["etag"]
    assert client.get("/js/app.js", if_none_match=tag)[::2] == (304, "")
    (client.folder / "js" / "app.js").write_text("2;")
    assert client.get("/js/app.js", if_none_match=tag)[::2] == (200, "2;")


def test_a_new_file_is_found_when_the_folder_is_listed_again(client, monkeypatch):
    assert client.get("/new.css")[0] == 404
    (client.folder / "new.css").write_text("p {}")
    monkeypatch.setattr(page_files, "_RELIST_AFTER_S", 0.0)
    assert client.get("/new.css")[2] == "p {}"
