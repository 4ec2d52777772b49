"""Files of a data set: from a local folder, or from a mirror, and never unchecked."""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from privreg.checks import short
from privreg.data.tables import DataError

logger = logging.getLogger(__name__)

ATTEMPTS = 3
# Seconds to connect and between two pieces of an answer.
TIMEOUT = (5.0, 10.0)
# A mirror that sends less than this, on average after the first seconds, counts as one that hangs.
LEAST_BYTES_PER_SECOND = 20_000
SECONDS_BEFORE_SPEED = 10.0
SECONDS_BETWEEN_LINES = 5.0
PIECE = 1 << 16
MOST_REDIRECTS = 5


def _unchanged(content: bytes) -> bytes:
    return content


@dataclass(frozen=True)
class DataFile:
    """A file of a data set, by its path below the local folder.

    `sha256` is that of `canonical(content)`, which undoes harmless differences such as line ends;
    `extract` takes the file out of what a mirror sends. No more than `largest` bytes are read or
    kept. `remote_aliases` holds other names of the file, by mirrors with their final slash.
    """

    path: str
    sha256: str
    remote_name: str
    remote_sha256: str
    largest: int
    remote_aliases: Mapping[str, str] = field(default_factory=dict)
    canonical: Callable[[bytes], bytes] = _unchanged
    extract: Callable[[bytes], bytes] = _unchanged

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def url(self, mirror: str) -> str:
        """Address of the file; a mirror given by the full address of an alias is one already."""
        base = mirror.rstrip("/") + "/"
        if base in (f"{known}{alias}/" for known, alias in self.remote_aliases.items()):
            return base.rstrip("/")
        return base + self.remote_aliases.get(base, self.remote_name)


class DownloadError(DataError):
    """No mirror delivered a file: `reason` is a fixed sentence, the message adds details."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


UNREACHED = "no mirror could be reached"
REFUSED = "the mirrors answered with errors instead of the file"
WRONG_CONTENT = "no download had the right checksum"
HTML = "an HTML page came instead of the file"


def obtain(
    files: Sequence[DataFile],
    *,
    directory: str | Path | None,
    cache: str | Path | None,
    mirrors: Sequence[str],
    attempts: int = ATTEMPTS,
    back_off: float = 1.0,
) -> dict[str, bytes]:
    """Checked content of every file, by its path: all local files before the first download."""
    _check_mirrors(mirrors)
    local = [None if directory is None else read_local(file, directory) for file in files]
    options: dict[str, Any] = {"cache": cache, "attempts": attempts, "back_off": back_off}
    return {
        file.path: download(file, mirrors=mirrors, **options) if content is None else content
        for file, content in zip(files, local, strict=True)
    }


def read_local(file: DataFile, directory: str | Path) -> bytes | None:
    """Checked canonical content of a file below `directory`; None if it is not there."""
    directory = Path(directory)
    if not directory.is_dir():
        raise DataError(
            f"{directory}: not a folder, expected one with {file.path}; "
            "correct PRIVREG_DATA or unset it to download"
        )
    path = directory / file.path
    # A dangling link is a file that is there but wrong.
    if not path.exists() and not path.is_symlink():
        return None
    # A pipe or a device would be read without end.
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(f"{path}: not a regular file; put the original file there")
    try:
        with path.open("rb") as stream:
            content = stream.read(file.largest + 1)
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); repair it, or remove it to download"
        ) from error
    if len(content) > file.largest:
        raise DataError(
            f"{path}: more than {file.largest} bytes; "
            "put the original file there, or remove this one to download"
        )
    canonical = file.canonical(content)
    found = sha256(canonical)
    if found != file.sha256:
        what = "an HTML page, " if is_html(content) else ""
        raise DataError(
            f"{path}: {what}SHA-256 {found}, expected {file.sha256}; "
            "put the original file there, or remove this one to download"
        )
    return canonical


def download(
    file: DataFile,
    *,
    mirrors: Sequence[str],
    cache: str | Path | None,
    attempts: int = ATTEMPTS,
    back_off: float = 1.0,
) -> bytes:
    """Checked canonical content of a file from the cache or else from the first mirror that has it.

    Each of the `attempts` rounds asks the mirrors in turn; before round k + 1 it waits
    ``back_off * 2**(k - 1)`` seconds. A mirror that hangs is not asked again. Only a file with the
    right digest enters the cache, and no archive is unpacked before its digest is checked.
    """
    # pooch is slow to import, and most jobs never download.
    import pooch
    import requests  # type: ignore[import-untyped,unused-ignore]

    if attempts < 1 or not 0 <= back_off < float("inf"):
        raise ValueError(f"attempts, back_off: {attempts}, {back_off}, expected >= 1 and >= 0")
    folder = Path(pooch.os_cache("privreg") if cache is None else cache)
    pooch.get_logger().setLevel("WARNING")
    failures: dict[str, tuple[str, str]] = {}
    hanging: set[str] = set()
    for attempt in range(attempts):
        asked = [mirror for mirror in mirrors if mirror not in hanging]
        if attempt and asked:
            time.sleep(back_off * 2 ** (attempt - 1))
        for mirror in asked:
            try:
                fetched = pooch.retrieve(
                    file.url(mirror),
                    known_hash=f"sha256:{file.remote_sha256}",
                    fname=file.remote_name,
                    path=folder,
                    downloader=_checking_downloader(file),
                )
                return _unpacked(file, Path(fetched).read_bytes())
            except _WrongContentError as error:
                failures[mirror] = error.reason, str(error)
            except AnswerError as error:
                failures[mirror] = REFUSED, str(error)
            except requests.HTTPError as error:
                status = "unknown" if error.response is None else error.response.status_code
                failures[mirror] = REFUSED, f"HTTP status {status}"
            except (requests.Timeout, HangingError) as error:
                hanging.add(mirror)
                failures[mirror] = UNREACHED, f"no answer, {_without_address(error)}"
                logger.info("%s: %s", file.url(mirror), failures[mirror][1])
            except requests.RequestException as error:
                failures[mirror] = UNREACHED, f"no answer, {type(error).__name__}"
            except OSError as error:
                raise DataError(
                    f"{folder}: the download cache cannot be used ({error.strerror or error}); "
                    "make it writable, or put the files into the folder that PRIVREG_DATA names"
                ) from error
    seen = {reason for reason, _ in failures.values()}
    reason = next(kind for kind in (HTML, WRONG_CONTENT, REFUSED, UNREACHED) if kind in seen)
    details = "; ".join(f"{file.url(mirror)}: {text}" for mirror, (_, text) in failures.items())
    raise DownloadError(f"{file.name}: {reason} ({details})", reason)


def _check_mirrors(mirrors: Sequence[str]) -> None:
    if isinstance(mirrors, str) or not mirrors:
        raise ValueError(f"mirrors must be a list of at least one address, got {short(mirrors)}")
    for mirror in mirrors:
        if not mirror.startswith(("https://", "http://")):
            raise ValueError(f"mirrors must begin with https:// or http://, got {short(mirror)}")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_html(content: bytes) -> bool:
    start = content[:1024].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return start.startswith(b"<!doctype html") or b"<html" in start


class _WrongContentError(Exception):
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def _checking_downloader(file: DataFile) -> Callable[..., None]:
    def fetch(url: str, output_file: str, manager: Any) -> None:
        try:
            receive(url, Path(output_file), largest=file.largest)
            too_large = ""
        except TooLargeError as error:
            too_large = str(error)
        content = Path(output_file).read_bytes()
        found = sha256(content)
        if too_large or found != file.remote_sha256:
            if is_html(content):
                raise _WrongContentError(HTML, HTML)
            raise _WrongContentError(
                WRONG_CONTENT,
                too_large
                or f"{len(content)} bytes with SHA-256 {found}, expected {file.remote_sha256}",
            )

    return fetch


def _unpacked(file: DataFile, content: bytes) -> bytes:
    canonical = file.canonical(file.extract(content))
    found = sha256(canonical)
    if found != file.sha256:
        raise DataError(
            f"{file.path} in {file.remote_name}: SHA-256 {found}, expected {file.sha256}; "
            "report it, the archive itself is the expected one"
        )
    return canonical


def _without_address(error: Exception) -> str:
    """The fault in a word; the text of a timeout repeats host and port."""
    return str(error) if isinstance(error, HangingError) else type(error).__name__


class HangingError(Exception):
    """A mirror answered, and then sent nothing or next to nothing."""


class AnswerError(Exception):
    """A mirror's answer cannot be followed or read; the text says why."""


class TooLargeError(Exception):
    """A mirror sends, or announces, more than the file's declared largest size."""


def receive(url: str, output: Path, *, largest: int) -> None:
    """Stream an address into a file of at most `largest` bytes, and report progress in the log."""
    import requests
    import urllib3

    try:
        with (
            requests.Session() as session,
            _answer(session, url) as response,
            output.open("wb") as stream,
        ):
            response.raise_for_status()
            promised = _content_length(response)
            size = f" ({promised / 1e6:.1f} MB)" if promised else ""
            logger.info("Downloading %s%s", url, size)
            received = 0
            started = said = time.monotonic()
            for piece in _pieces(response):
                stream.write(piece)
                received += len(piece)
                if max(promised, received) > largest:
                    raise TooLargeError(
                        f"{max(promised, received)} bytes or more, expected at most {largest}"
                    )
                now = time.monotonic()
                seconds = now - started
                if seconds > max(SECONDS_BEFORE_SPEED, received / LEAST_BYTES_PER_SECOND):
                    raise HangingError(f"{received} bytes in {seconds:.0f} s")
                if now - said > SECONDS_BETWEEN_LINES:
                    said = now
                    logger.info("%.1f MB of %s%s", received / 1e6, url, size)
    except urllib3.exceptions.TimeoutError as error:
        raise HangingError(f"nothing for {TIMEOUT[1]:g} s") from error
    except urllib3.exceptions.HTTPError as error:
        raise requests.ConnectionError(error) from error
    if received < promised:
        raise requests.ConnectionError(f"{received} of {promised} bytes")


def _answer(session: Any, url: str) -> Any:
    """The answer at the end of the redirects, whose bodies are not read."""
    # Left to itself, a session reads the whole body of each redirect into memory.
    session.get_redirect_target = lambda response: None
    # A mirror that compresses on the way would change the digest of a .gz file.
    headers = {"Accept-Encoding": "identity"}
    for _ in range(MOST_REDIRECTS + 1):
        response = session.get(url, stream=True, timeout=TIMEOUT, headers=headers)
        if not response.is_redirect:
            return response
        response.close()
        try:
            url = urljoin(url, response.headers["Location"])
        except ValueError as error:
            raise AnswerError("a redirect to no web address") from error
        if not url.startswith(("https://", "http://")):
            raise AnswerError("a redirect to no web address")
    raise AnswerError(f"more than {MOST_REDIRECTS} redirects")


def _content_length(response: Any) -> int:
    """Size of the answer in bytes, as its header says; 0 if it does not."""
    text = response.headers.get("Content-Length", "0")
    # `int` reads signs, spaces and underscores, too.
    if not re.fullmatch("[0-9]{1,18}", text):
        raise AnswerError(f"Content-Length must be a number of bytes, got {text[:40]!r}")
    return int(text)


def _pieces(response: Any) -> Iterator[bytes]:
    """Bytes as they come: waiting for a whole piece would hide a slow mirror."""
    raw = response.raw
    read = getattr(raw, "read1", None) or (lambda amount: raw.read(amount // 64))
    while piece := read(PIECE):
        yield piece
