"""No name and no path of a request leads to a file outside the folders of the service."""

from __future__ import annotations

import json
import os

import pytest

from service.calling import head, raw_answers
from service.server import MADE_WITH, ThreadService

SECRET = b"a secret that lies beside"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)

NAMES = {
    "up": "..",
    "up, coded": "%2e%2e",
    "up and away": "../evil",
    "up and away, coded": "%2e%2e%2fevil",
    "up and away, half coded": "..%2fevil",
    "coded twice": "%252e%252e%252fevil",
    "a path": "a%2fb",
    "another system's path": "..%5cevil",
    "absolute": "%2ftmp%2fevil",
    "here": ".",
    "NUL": "a%00b",
    "hidden": ".evil",
    "a suffix": "evil.links",
    "capitals": "Evil",
    "a space": "e%20vil",
    "a line break": "evil%0a",
    "a line break in front": "%0aevil",
    "letters of elsewhere": "%D0%B5vil",
    "a letter that folds to a": "%C2%AA",
    "digits of elsewhere": "%D9%A3",
    "a dash in front": "-evil",
    "a line in front": "_evil",
    "too long": "a" * 64,
    "much too long": "a" * 5_000,
    "bad UTF-8": "%ff%fe",
    "a star": "*",
    "a question": "a%3fb",
    "a colon": "c%3aevil",
    "a tilde": "~root",
    "a semicolon": "a;b",
    "nothing": "",
}


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names_that_could_be_paths_are_refused(service, name):
    service.namespace("there")
    before = everything(service.data.parent)
    body = json.dumps(MADE_WITH).encode()
    methods = {"": "PUT", "/events": "GET", "/vectors/0": "GET", "/vectors": "POST"}
    for tail, method in methods.items():
        request = head(
            method,
            f"/v1/namespaces/{name}{tail}",
            body=None if method == "GET" else body,
            content_type="application/json",
        )
        for answer in raw_answers(service.port, request):
            assert 400 <= answer.status < 500, (name, tail, answer)
    assert everything(service.data.parent) == before


@pytest.mark.parametrize("name", ["a", "0", "a" * 63, "a-b_c", "con", "nul", "tokens"])
def test_other_names_are_accepted(service, name):
    service.namespace(name)
    assert (service.data / f"{name}.links").is_file()
    assert service.get(f"/v1/namespaces/{name}").status == 200


# Pictures


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Run a service with pictures, a secret file beside them, and links to secrets."""
    folder = tmp_path_factory.mktemp("pictures")
    images = folder / "images"
    (images / "a").mkdir(parents=True)
    (folder / "images-too").mkdir()
    for place in ("secret.png", "images-too/secret.png", "images/page.html", "images/notes.txt"):
        (folder / place).write_bytes(SECRET)
    (images / "drawing.svg").write_bytes(SECRET)
    (images / "none").write_bytes(SECRET)
    (images / ".hidden.png").write_bytes(SECRET)
    for place in ("a/b.png", "ü ñ.png", "a.jpg", "a.jpeg", "a.webp", "a.gif", "CAPITALS.PNG"):
        (images / place).write_bytes(PNG)
    (images / "page.png").write_bytes(b"<html><script>alert(1)</script>")
    (images / "out.png").symlink_to(folder / "secret.png")
    (images / "out").symlink_to(folder)
    (images / "folder.png").mkdir()
    os.mkfifo(images / "pipe.png")
    with ThreadService(folder / "data", images=images) as service:
        service.namespace("faces")
        yield service


GOOD = {
    "a/b.png": "image/png",
    "%C3%BC%20%C3%B1.png": "image/png",
    "a.jpg": "image/jpeg",
    "a.jpeg": "image/jpeg",
    "a.webp": "image/webp",
    "a.gif": "image/gif",
    "page.png": "image/png",
}


@pytest.mark.parametrize("path", GOOD)
def test_a_picture_is_sent_with_its_media_type_whatever_its_content(pictures, path):
    answer = pictures.get(f"/v1/namespaces/faces/images/{path}")
    assert answer.status == 200
    assert answer.headers["content-type"] == GOOD[path]
    assert answer.headers["x-content-type-options"] == "nosniff"


RANGES = (
    "bytes=0-3",
    "bytes=-1",
    "bytes=9999-",
    "bytes=3-1",
    "bytes=0-1,2-3",
    "x",
    "bytes=" + "0-1," * 900,
)


@pytest.mark.parametrize("part", RANGES, ids=range(len(RANGES)))
def test_a_range_of_a_picture_is_sent_or_refused(pictures, part):
    path = "/v1/namespaces/faces/images/a/b.png"
    (answer,) = raw_answers(pictures.port, head("GET", path, range=part))
    assert answer.status in (200, 206, 400, 416)
    assert len(answer.body) < 8_192


AWAY = {
    "up": "../secret.png",
    "up twice": "a/../../secret.png",
    "up, coded": "%2e%2e/secret.png",
    "up, all coded": "%2e%2e%2fsecret.png",
    "up, coded twice": "%252e%252e%252fsecret.png",
    "up as on another system": "..%5csecret.png",
    "a folder that begins alike": "../images-too/secret.png",
    "a folder that begins alike, coded": "%2e%2e/images-too/secret.png",
    "absolute": "/etc/passwd",
    "absolute, coded": "%2fetc%2fpasswd",
    "absolute, of a picture": "{folder}/secret.png",
    "absolute, of a picture, coded": "%2f{folder}/secret.png",
    "a link": "out.png",
    "a folder that is a link": "out/secret.png",
    "NUL": "a.jpg%00.png",
    "NUL before": "page.html%00.png",
    "no picture": "page.html",
    "text": "notes.txt",
    "a drawing that may hold a script": "drawing.svg",
    "no suffix": "none",
    "a folder": "a",
    "a folder with a suffix": "folder.png",
    "a pipe": "pipe.png",
    "nothing": "",
    "here": ".",
    "not there": "never.png",
    "a line break": "a.jpg%0a",
    "bad UTF-8": "%ff.png",
    "too long": "a" * 300 + ".png",
    "much too long": "a/" * 3_000 + "b.png",
    "a scheme": "file:///etc/passwd",
    "a home": "~/x.png",
}


@pytest.mark.parametrize("path", AWAY.values(), ids=AWAY)
def test_files_that_are_not_pictures_in_the_folder_are_not_sent(pictures, path):
    path = path.replace("{folder}", str(pictures.data.parent))
    target = f"/v1/namespaces/faces/images/{path}"
    (answer,) = raw_answers(pictures.port, head("GET", target), timeout=10.0)
    assert 400 <= answer.status < 500, answer
    assert SECRET not in answer.body
    assert b"root:" not in answer.body


def test_pictures_are_not_found_without_the_setting_images(tmp_path):
    with ThreadService(tmp_path / "data") as service:
        path = service.namespace("faces")
        assert service.get(f"{path}/images/a.png").status == 404


@pytest.mark.parametrize(
    "path", ["../settings.py", "%2e%2e/settings.py", "..%2fsettings.py", "%00", "/etc/passwd", ""]
)
def test_only_files_of_the_dashboard_are_sent(service, path):
    (answer,) = raw_answers(service.port, head("GET", f"/page/{path}"))
    assert 400 <= answer.status < 500
