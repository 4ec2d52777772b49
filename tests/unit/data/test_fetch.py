"""The download path against a server on this machine, and the checks of local files."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import tarfile
import threading
import tracemalloc
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from privreg import data
from privreg.data import california_housing, fetch, mnist, receive

HTML_PAGE = b"<!DOCTYPE html>\n<html><body>Please sign in to the network.</body></html>"
CONTENT = bytes(range(256)) * 8
# What a server sends that would not stop by itself, and what sockets on the way may hold of it.
ENDLESS, IN_SOCKETS = 1 << 27, 1 << 25


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def plain_file(name: str = "numbers.bin", content: bytes = CONTENT) -> fetch.DataFile:
    return fetch.DataFile(f"tiny/{name}", digest(content), name, digest(content), len(content))


@dataclass
class Answer:
    body: bytes
    status: int = 200
    promised: int | str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    endless: bool = False


@dataclass
class Mirror:
    """A server that gives each path its answers in turn and repeats the last one."""

    address: str = ""
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    sent: int = 0

    def serve(self, name: str, *answers: Answer) -> None:
        self.answers[f"/files/{name}"] = list(answers)

    def next_answer(self, path: str) -> Answer:
        self.requests.append(path)
        queue = self.answers.get(path, [Answer(b"not here", status=404)])
        return queue.pop(0) if len(queue) > 1 else queue[0]


@pytest.fixture(autouse=True)
def _loopback_without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def start_mirror() -> tuple[Mirror, ThreadingHTTPServer]:
    mirror = Mirror()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = mirror.next_answer(self.path)
            self.send_response(answer.status)
            length = len(answer.body) if answer.promised is None else answer.promised
            if length != "":
                self.send_header("Content-Length", str(length))
            for header in answer.headers:
                self.send_header(*header)
            self.end_headers()
            self.wfile.write(answer.body)
            with contextlib.suppress(OSError):
                while answer.endless and mirror.sent < ENDLESS:
                    mirror.sent += self.wfile.write(bytes(1 << 16))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    # A short poll, because closing waits for it.
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    mirror.address = f"http://127.0.0.1:{server.server_address[1]}/files/"
    return mirror, server


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    mirror, server = start_mirror()
    yield mirror
    server.shutdown()
    server.server_close()


@pytest.fixture
def second_mirror() -> Iterator[Mirror]:
    mirror, server = start_mirror()
    yield mirror
    server.shutdown()
    server.server_close()


@pytest.fixture
def nothing_listens() -> str:
    """An address whose port was free a moment ago."""
    mirror, server = start_mirror()
    server.shutdown()
    server.server_close()
    return mirror.address


def cached(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.rglob("*") if path.is_file())


def test_a_good_file_is_fetched_once_and_then_read_from_the_cache(
    mirror: Mirror, tmp_path: Path
) -> None:
    mirror.serve("numbers.bin", Answer(CONTENT))
    for _ in range(2):
        content = fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path)
        assert content == CONTENT
    assert mirror.requests == ["/files/numbers.bin"]
    assert cached(tmp_path) == ["numbers.bin"]


def test_a_cached_file_that_has_changed_is_fetched_again(mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "numbers.bin").write_bytes(CONTENT[:-1])
    mirror.serve("numbers.bin", Answer(CONTENT))
    content = fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path)
    assert content == CONTENT
    assert (tmp_path / "numbers.bin").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(
            Answer(CONTENT[:700], promised=len(CONTENT)), fetch.UNREACHED, id="broken-connection"
        ),
        pytest.param(Answer(CONTENT[:700]), fetch.WRONG_CONTENT, id="truncated"),
        pytest.param(Answer(b""), fetch.WRONG_CONTENT, id="empty"),
        pytest.param(Answer(CONTENT[::-1]), fetch.WRONG_CONTENT, id="wrong-checksum"),
        pytest.param(Answer(HTML_PAGE), fetch.HTML, id="html-with-status-200"),
        pytest.param(Answer(b"\xef\xbb\xbf \n" + HTML_PAGE), fetch.HTML, id="html-after-a-mark"),
        pytest.param(Answer(HTML_PAGE, status=503), fetch.REFUSED, id="html-with-status-503"),
    ],
)
def test_a_wrong_answer_is_refused_and_leaves_nothing_behind(
    mirror: Mirror, tmp_path: Path, answer: Answer, reason: str
) -> None:
    mirror.serve("numbers.bin", answer)
    with pytest.raises(fetch.DownloadError) as caught:
        fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path, back_off=0.001)
    assert caught.value.reason == reason
    message = str(caught.value)
    assert message.startswith(f"numbers.bin: {reason}")
    assert mirror.address in message
    assert "\n" not in message
    assert len(mirror.requests) == fetch.ATTEMPTS
    assert cached(tmp_path) == []


def test_a_wrong_checksum_is_quoted_beside_the_expected_one(mirror: Mirror, tmp_path: Path) -> None:
    wrong = CONTENT[::-1]
    mirror.serve("numbers.bin", Answer(wrong))
    with pytest.raises(fetch.DownloadError, match=f"{digest(wrong)}, expected {digest(CONTENT)}"):
        fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path, attempts=1)


@pytest.mark.parametrize("bad", [Answer(b"busy", status=503), Answer(HTML_PAGE), Answer(b"half")])
def test_two_failures_then_success(mirror: Mirror, tmp_path: Path, bad: Answer) -> None:
    mirror.serve("numbers.bin", bad, bad, Answer(CONTENT))
    content = fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path, back_off=0.001)
    assert content == CONTENT
    assert len(mirror.requests) == 3


def test_two_attempts_do_not_survive_two_failures(mirror: Mirror, tmp_path: Path) -> None:
    mirror.serve("numbers.bin", Answer(b"", 503), Answer(b"", 503), Answer(CONTENT))
    with pytest.raises(fetch.DownloadError):
        fetch.download(
            plain_file(), mirrors=[mirror.address], cache=tmp_path, attempts=2, back_off=0.001
        )


def test_the_next_mirror_is_asked_before_any_wait(
    mirror: Mirror, second_mirror: Mirror, nothing_listens: str, tmp_path: Path
) -> None:
    mirror.serve("numbers.bin", Answer(HTML_PAGE))
    second_mirror.serve("numbers.bin", Answer(CONTENT))
    addresses = [nothing_listens, mirror.address, second_mirror.address]
    # A single round has no wait in it.
    content = fetch.download(plain_file(), mirrors=addresses, cache=tmp_path, attempts=1)
    assert content == CONTENT
    assert len(mirror.requests) == len(second_mirror.requests) == 1


def test_an_unwritable_cache_is_named(mirror: Mirror, tmp_path: Path) -> None:
    blocked = tmp_path / "a file, no folder"
    blocked.write_text("")
    mirror.serve("numbers.bin", Answer(CONTENT))
    with pytest.raises(data.DataError, match="cache cannot be used") as caught:
        fetch.download(plain_file(), mirrors=[mirror.address], cache=blocked / "cache")
    assert not isinstance(caught.value, fetch.DownloadError)


@pytest.mark.parametrize("length", ["abc", "-1", "+5", "1_0", "0x10", "1e3", "9" * 400, "\xb2"])
def test_a_wrong_content_length_is_one_line_and_the_next_mirror_answers(
    mirror: Mirror, second_mirror: Mirror, tmp_path: Path, length: str
) -> None:
    mirror.serve("numbers.bin", Answer(CONTENT, promised=length))
    with pytest.raises(fetch.DownloadError, match="Content-Length must be a number") as caught:
        fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path, attempts=1)
    assert caught.value.reason == fetch.REFUSED
    assert "\n" not in str(caught.value)
    assert cached(tmp_path) == []
    second_mirror.serve("numbers.bin", Answer(CONTENT))
    both = [mirror.address, second_mirror.address]
    assert fetch.download(plain_file(), mirrors=both, cache=tmp_path, attempts=1) == CONTENT


@pytest.mark.parametrize("promised", ["", str(10**17)])
@pytest.mark.parametrize("page", [False, True])
def test_more_than_the_declared_size_is_neither_read_nor_kept(
    mirror: Mirror, tmp_path: Path, promised: str, page: bool
) -> None:
    start = HTML_PAGE if page else CONTENT
    mirror.serve("numbers.bin", Answer(start, promised=promised, endless=True))
    with pytest.raises(fetch.DownloadError) as caught:
        fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path, attempts=1)
    assert caught.value.reason == (fetch.HTML if page else fetch.WRONG_CONTENT)
    assert page or f"expected at most {len(CONTENT)}" in str(caught.value)
    assert cached(tmp_path) == []
    assert mirror.sent < IN_SOCKETS


def redirect(target: str, *, endless: bool = False) -> Answer:
    return Answer(b"", 302, "" if endless else None, (("Location", target),), endless)


def test_a_redirect_is_followed_and_its_body_is_not_read(mirror: Mirror, tmp_path: Path) -> None:
    mirror.serve("numbers.bin", redirect("elsewhere.bin", endless=True))
    mirror.serve("elsewhere.bin", Answer(CONTENT))
    content = fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path, attempts=1)
    assert content == CONTENT
    assert mirror.sent < IN_SOCKETS


@pytest.mark.parametrize(
    "target", ["numbers.bin", "http://[::1", "file:///etc/hosts", "ftp://a.example/", "http://a:x/"]
)
def test_a_redirect_that_leads_nowhere_is_one_line(
    mirror: Mirror, tmp_path: Path, target: str
) -> None:
    mirror.serve("numbers.bin", redirect(target))
    with pytest.raises(fetch.DownloadError) as caught:
        fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path, attempts=1)
    assert "\n" not in str(caught.value)
    assert len(mirror.requests) <= receive.MOST_REDIRECTS + 1
    assert cached(tmp_path) == []


def test_a_full_disk_is_named_and_keeps_what_the_cache_held(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_to_full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "other.bin").write_bytes(CONTENT)
    mirror.serve("numbers.bin", Answer(CONTENT))
    monkeypatch.setattr(fetch, "receive", write_to_full_disk)
    with pytest.raises(data.DataError, match="No space left on device"):
        fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path)
    assert cached(tmp_path) == ["other.bin"]


def test_an_archive_with_another_digest_is_not_unpacked(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unpack(_: bytes) -> bytes:
        raise AssertionError("unpacked")

    bomb = gzip.compress(bytes(1 << 22))
    file = fetch.DataFile(
        "tiny/a", digest(CONTENT), "a.gz", digest(CONTENT), len(bomb), extract=unpack
    )
    mirror.serve("a.gz", Answer(bomb))
    with pytest.raises(fetch.DownloadError, match="no download had the right checksum"):
        fetch.download(file, mirrors=[mirror.address], cache=tmp_path, attempts=1)


@pytest.mark.parametrize("mirrors", [[], ["ftp://somewhere/"], ["a/folder"], "https://one.string/"])
def test_mirrors_that_are_no_list_of_web_addresses_are_refused(
    mirrors: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="mirrors must "):
        data.load("mnist", mirrors=mirrors, cache=tmp_path)


@pytest.mark.parametrize("name", data.NAMES)
def test_without_network_a_bundled_table_stands_in_with_one_line(
    name: str, nothing_listens: str, tmp_path: Path
) -> None:
    with pytest.warns(data.StandInWarning) as caught:
        table = data.load(name, mirrors=[nothing_listens], cache=tmp_path, back_off=0.001)
    assert len(caught) == 1
    line = str(caught[0].message)
    assert line.startswith(f"{name}: stand-in for")
    assert fetch.UNREACHED in line
    assert "\n" not in line
    assert table.stand_in
    assert table.name == name
    assert table.stand_in_reason == fetch.UNREACHED


def test_a_page_of_a_captive_portal_is_named_in_the_stand_in(
    mirror: Mirror, tmp_path: Path
) -> None:
    mirror.serve(mnist.FILES[0].remote_name, Answer(HTML_PAGE))
    with pytest.warns(data.StandInWarning, match="an HTML page came instead of the file"):
        table = data.load("mnist", mirrors=[mirror.address], cache=tmp_path, back_off=0.001)
    assert table.stand_in_reason == fetch.HTML
    assert cached(tmp_path) == []


def test_a_stand_in_can_be_forbidden(nothing_listens: str, tmp_path: Path) -> None:
    with pytest.raises(data.DataError, match="no mirror could be reached"):
        data.load(
            "mnist", mirrors=[nothing_listens], cache=tmp_path, allow_stand_in=False, back_off=0.001
        )


def housing_archive(text: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo(california_housing.MEMBER)
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text))
    return buffer.getvalue()


HOUSING_TEXT = b"-122.23,37.88,41,880,129,322,126,8.3252,452600\n-120,38,10,90,20,30,10,2,100000"


def use_small_housing(
    monkeypatch: pytest.MonkeyPatch, archive: bytes, text: bytes = HOUSING_TEXT
) -> None:
    file = fetch.DataFile(
        path="california_housing/cal_housing.data",
        sha256=digest(text),
        remote_name="cal_housing.tgz",
        remote_sha256=digest(archive),
        largest=10_000,
        canonical=california_housing.canonical,
        extract=california_housing.extract,
    )
    monkeypatch.setattr(california_housing, "FILES", (file,))


def test_housing_comes_out_of_the_archive(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = housing_archive(HOUSING_TEXT.replace(b"\n", b"\r\n") + b"\r\n")
    use_small_housing(monkeypatch, archive)
    mirror.serve("cal_housing.tgz", Answer(archive))
    table = data.load("california_housing", mirrors=[mirror.address], cache=tmp_path)
    assert not table.stand_in
    np.testing.assert_allclose(table.features[1], [2, 10, 9, 2, 30, 3, 38, -120])
    np.testing.assert_allclose(table.labels, [4.526, 1.0])
    # What is recorded does not depend on where the file came from.
    local = tmp_path / "local" / "california_housing"
    local.mkdir(parents=True)
    (local / "cal_housing.data").write_bytes(HOUSING_TEXT)
    other = data.load("california_housing", directory=tmp_path / "local")
    assert dict(other.checksums) == dict(table.checksums)
    assert other.source == table.source
    np.testing.assert_array_equal(other.features, table.features)


def test_an_archive_with_another_table_in_it_is_an_error_and_no_stand_in(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = housing_archive(b"1,2,3")
    use_small_housing(monkeypatch, archive)
    mirror.serve("cal_housing.tgz", Answer(archive))
    with pytest.raises(data.DataError, match=f"cal_housing.data in .*{digest(b'1,2,3')}"):
        data.load("california_housing", mirrors=[mirror.address], cache=tmp_path)


def test_figshare_knows_the_archive_by_a_number() -> None:
    (file,) = california_housing.FILES
    address = "https://ndownloader.figshare.com/files/5976036"
    for mirror in (california_housing.FIGSHARE, california_housing.FIGSHARE.rstrip("/"), address):
        assert file.url(mirror) == address
    assert file.url("https://mirror.example/data") == "https://mirror.example/data/cal_housing.tgz"


def idx(values: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, dtype=">u4").tobytes()
    return gzip.compress(header + values.astype(np.uint8).tobytes(), mtime=0)


def small_mnist() -> tuple[tuple[fetch.DataFile, ...], dict[str, bytes]]:
    generator = np.random.default_rng(5)
    labels = {"train": np.array([1, 7, 3, 7]), "t10k": np.array([0, 7, 1])}
    contents = {}
    for part, digits in labels.items():
        images = generator.integers(0, 256, size=(digits.size, 2, 3))
        contents[f"{part}-images-idx3-ubyte.gz"] = idx(images)
        contents[f"{part}-labels-idx1-ubyte.gz"] = idx(digits)
    files = tuple(
        fetch.DataFile(f"mnist/{name}", digest(content), name, digest(content), len(content))
        for name, content in contents.items()
    )
    return files, contents


def test_files_missing_in_the_folder_are_downloaded_and_only_those(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, contents = small_mnist()
    monkeypatch.setattr(mnist, "FILES", files)
    (tmp_path / "mnist").mkdir()
    for file in files[:3]:
        (tmp_path / file.path).write_bytes(contents[file.name])
    mirror.serve(files[3].name, Answer(contents[files[3].name]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = data.load(
            "mnist", directory=tmp_path, mirrors=[mirror.address], cache=tmp_path / "cache"
        )
    assert mirror.requests == [f"/files/{files[3].name}"]
    assert table.shape == (5, 6)
    np.testing.assert_array_equal(table.labels, [1, -1, -1, -1, 1])
    np.testing.assert_array_equal(table.official_test, [False, False, False, True, True])
    with pytest.raises(ValueError, match="read-only"):
        table.features[0, 0] = 1


def test_a_wrong_local_file_is_an_error_before_any_download(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, contents = small_mnist()
    monkeypatch.setattr(mnist, "FILES", files)
    for file in files[:3]:
        mirror.serve(file.name, Answer(contents[file.name]))
    (tmp_path / "mnist").mkdir()
    (tmp_path / files[3].path).write_bytes(contents[files[3].name][:-1])
    with pytest.raises(data.DataError, match=files[3].name):
        data.load("mnist", directory=tmp_path, mirrors=[mirror.address], cache=tmp_path / "cache")
    assert mirror.requests == []


@pytest.mark.parametrize("path", [file.path for file in (*mnist.FILES, *california_housing.FILES)])
@pytest.mark.parametrize("content", [b"corrupted", HTML_PAGE])
def test_check_names_a_wrong_file_with_both_checksums_in_one_line(
    path: str, content: bytes, tmp_path: Path
) -> None:
    file = next(f for f in (*mnist.FILES, *california_housing.FILES) if f.path == path)
    (tmp_path / path).parent.mkdir()
    (tmp_path / path).write_bytes(content)
    with pytest.raises(data.DataError) as caught:
        data.check(tmp_path)
    message = str(caught.value)
    assert str(tmp_path / path) in message
    assert f"SHA-256 {digest(content)}, expected {file.sha256}" in message
    assert ("HTML page" in message) == (content == HTML_PAGE)
    assert "\n" not in message


def test_check_accepts_an_empty_folder_and_refuses_a_missing_one(tmp_path: Path) -> None:
    data.check(tmp_path)
    with pytest.raises(data.DataError, match="absent: not a folder"):
        data.check(tmp_path / "absent")


@pytest.mark.parametrize("kind", ["folder", "dangling link"])
def test_something_else_under_the_name_of_a_file_is_an_error(kind: str, tmp_path: Path) -> None:
    path = tmp_path / mnist.FILES[0].path
    path.parent.mkdir()
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(data.DataError, match=r"train-images-idx3-ubyte\.gz: cannot be read"):
        data.check(tmp_path)


@pytest.mark.parametrize("name", data.NAMES)
def test_a_local_file_above_its_declared_size_is_not_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / data.files_of(name)[0]
    path.parent.mkdir()
    with path.open("wb") as stream:
        stream.truncate(1 << 28)
    tracemalloc.start()
    with pytest.raises(data.DataError, match=r"more than [0-9]+ bytes; put the original"):
        data.check(tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 28


def test_a_pipe_in_the_place_of_a_file_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / mnist.FILES[0].path
    path.parent.mkdir()
    os.mkfifo(path)
    # Without a writer, opening it would wait for ever.
    with pytest.raises(data.DataError, match="not a regular file"):
        data.check(tmp_path)


def test_an_unknown_data_set_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match="did you mean 'mnist'"):
        data.load("minst")


# Mirrors that accept and hang


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Mirror, threading.Event]]:
    """A mirror that promises a file and sends nothing, or once the event is set a trickle."""
    monkeypatch.setattr(receive, "TIMEOUT", (1.0, 0.2))
    monkeypatch.setattr(receive, "SECONDS_BEFORE_SPEED", 0.3)
    mirror, trickles, over = Mirror(), threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            mirror.requests.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            while not over.wait(0.02):
                if trickles.is_set():
                    self.wfile.write(b"x")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    mirror.address = f"http://127.0.0.1:{server.server_address[1]}/files/"
    yield mirror, trickles
    over.set()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("trickle", [False, True])
def test_a_mirror_that_hangs_is_asked_once_and_the_next_one_answers(
    hanging: tuple[Mirror, threading.Event],
    mirror: Mirror,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    trickle: bool,
) -> None:
    slow, trickles = hanging
    file = replace(plain_file(), largest=1_000_000)
    if trickle:
        trickles.set()
    mirror.serve("numbers.bin", Answer(b"", 503), Answer(CONTENT))
    with caplog.at_level("INFO", "privreg.data"):
        content = fetch.download(
            file, mirrors=[slow.address, mirror.address], cache=tmp_path, back_off=0.001
        )
    assert content == CONTENT
    assert len(slow.requests) == 1
    assert len(mirror.requests) == 2
    assert f"{slow.address}numbers.bin: no answer, " in caplog.text
    assert f"Downloading {mirror.address}numbers.bin" in caplog.text


def test_mirrors_that_all_hang_count_as_not_reached(
    hanging: tuple[Mirror, threading.Event], tmp_path: Path
) -> None:
    slow, _ = hanging
    with pytest.raises(fetch.DownloadError, match=r"no answer, nothing for 0\.2 s") as caught:
        fetch.download(plain_file(), mirrors=[slow.address], cache=tmp_path)
    assert caught.value.reason == fetch.UNREACHED
    assert len(slow.requests) == 1
