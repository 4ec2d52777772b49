"""Files of a data set: from a local folder, or from a mirror, and never unchecked."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privreg.data.receive import AnswerError, HangingError, TooLargeError, receive
from privreg.data.tables import DataError
from privreg.ranges import short

logger = logging.getLogger(__name__)

ATTEMPTS = 3


def unchanged(content: bytes) -> bytes:
    return content


@dataclass(frozen=True)
class DataFile:
    """A file of a data set: where it lies, its SHA-256, and its largest size."""

    path: str
    sha256: str
    remote_name: str
    remote_sha256: str
    largest: int
    remote_aliases: Mapping[str, str] = field(default_factory=dict)
    canonical: Callable[[bytes], bytes] = unchanged
    extract: Callable[[bytes], bytes] = unchanged

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
    """No mirror delivered a file.

    `reason` is one of the fixed sentences of this module; the message adds the details.
    """

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
    """Checked canonical content of every file, by its path; local files come first.

    All local files are checked before the first download starts.
    """
    check_mirrors(mirrors)
    contents: dict[str, bytes] = {}
    if directory is not None:
        for file in files:
            content = read_local(file, directory)
            if content is not None:
                contents[file.path] = content
    for file in files:
        if file.path not in contents:
            contents[file.path] = download(
                file, mirrors=mirrors, cache=cache, attempts=attempts, back_off=back_off
            )
    return contents


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
    right digest enters the cache, and a cached file that has lost it is fetched again. An answer
    of more than `file.largest` bytes is left at that size, and no archive is unpacked before its
    digest is checked.
    """
    # pooch is slow to import, and most jobs never download.
    import pooch
    import requests  # type: ignore[import-untyped,unused-ignore]

    check_mirrors(mirrors)
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


def check_mirrors(mirrors: Sequence[str]) -> None:
    """Refuse a list of mirrors that is empty or holds something that is no web address."""
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
    """What went wrong in a word; the text of a timeout repeats host and port."""
    return str(error) if isinstance(error, HangingError) else type(error).__name__
