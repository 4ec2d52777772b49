"""Files of a data set, from a local folder or a mirror, with their checksums verified."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from privreg.checks import short
from privreg.data.tables import DataError

# Seconds to connect and between two pieces of an answer; rounds that pooch makes over a mirror.
TIMEOUT, ATTEMPTS = (5.0, 10.0), 2


def _unchanged(content: bytes) -> bytes:
    return content


@dataclass(frozen=True)
class DataFile:
    """A file of a data set, by its path below the local folder.

    `sha256` is the digest of `canonical(content)`; `canonical` undoes harmless differences such as
    line ends. `extract` takes the file out of the download. `remote_aliases` maps the address of
    a mirror, with its final slash, to the file's name on that mirror.
    """

    path: str
    sha256: str
    remote_name: str
    remote_sha256: str
    remote_aliases: Mapping[str, str] = field(default_factory=dict)
    canonical: Callable[[bytes], bytes] = _unchanged
    extract: Callable[[bytes], bytes] = _unchanged

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def url(self, mirror: str) -> str:
        """Address of the file on a mirror; `mirror` may also be the full address of an alias."""
        base = mirror.rstrip("/") + "/"
        if base in (f"{known}{alias}/" for known, alias in self.remote_aliases.items()):
            return base.rstrip("/")
        return base + self.remote_aliases.get(base, self.remote_name)


class DownloadError(DataError):
    """No mirror delivered a file; `reason` is a fixed sentence, and the message adds details."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


UNREACHED = "no mirror could be reached"
REFUSED = "the mirrors answered with errors instead of the file"
WRONG_CONTENT = "no download had the right checksum"


def obtain(
    files: Sequence[DataFile],
    *,
    directory: str | Path | None,
    cache: str | Path | None,
    mirrors: Sequence[str],
) -> dict[str, bytes]:
    """Checked content of every file by path; all local files are read before any download."""
    if isinstance(mirrors, str) or not mirrors:
        raise ValueError(f"mirrors must be a list of at least one address, got {short(mirrors)}")
    for mirror in mirrors:
        if not mirror.startswith(("https://", "http://")):
            raise ValueError(f"mirrors must begin with https:// or http://, got {short(mirror)}")
    local = [None if directory is None else read_local(file, directory) for file in files]
    return {
        file.path: download(file, mirrors=mirrors, cache=cache) if content is None else content
        for file, content in zip(files, local, strict=True)
    }


def read_local(file: DataFile, directory: str | Path) -> bytes | None:
    """Checked canonical content of a file below `directory`; None if the file is missing."""
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
        canonical = file.canonical(path.read_bytes())
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); repair it, or remove it to download"
        ) from error
    found = sha256(canonical)
    if found != file.sha256:
        raise DataError(
            f"{path}: SHA-256 {found}, expected {file.sha256}; "
            "put the original file there, or remove this one to download"
        )
    return canonical


def download(file: DataFile, *, mirrors: Sequence[str], cache: str | Path | None) -> bytes:
    """Checked canonical content of a file, from the cache or the first mirror that has the file.

    Only a file with the right digest enters the cache, and only such an archive is unpacked.
    """
    try:
        import pooch
        import requests  # type: ignore[import-untyped,unused-ignore]
    except ModuleNotFoundError as error:
        raise DataError(
            f"{file.name}: downloads need pooch and requests; install them, "
            "or put the files into the folder that PRIVREG_DATA names"
        ) from error

    folder = Path(pooch.os_cache("privreg") if cache is None else cache)
    pooch.get_logger().setLevel("WARNING")
    failures: dict[str, tuple[str, str]] = {}
    for mirror in mirrors:
        known = pooch.create(
            path=folder,
            base_url=mirror,
            registry={file.remote_name: f"sha256:{file.remote_sha256}"},
            urls={file.remote_name: file.url(mirror)},
            retry_if_failed=ATTEMPTS - 1,
        )
        try:
            fetched = known.fetch(
                file.remote_name, downloader=pooch.HTTPDownloader(timeout=TIMEOUT)
            )
        except requests.HTTPError as error:
            status = "unknown" if error.response is None else error.response.status_code
            failures[mirror] = REFUSED, f"HTTP status {status}"
        except requests.RequestException as error:
            failures[mirror] = UNREACHED, f"no answer, {type(error).__name__}"
        except OSError as error:
            raise DataError(
                f"{folder}: the download cache cannot be used ({error.strerror or error}); "
                "make it writable, or put the files into the folder that PRIVREG_DATA names"
            ) from error
        except ValueError:
            failures[mirror] = WRONG_CONTENT, f"another SHA-256 than {file.remote_sha256}"
        else:
            return _unpacked(file, Path(fetched).read_bytes())
    seen = {reason for reason, _ in failures.values()}
    reason = next(kind for kind in (WRONG_CONTENT, REFUSED, UNREACHED) if kind in seen)
    details = "; ".join(f"{file.url(mirror)}: {text}" for mirror, (_, text) in failures.items())
    raise DownloadError(f"{file.name}: {reason} ({details})", reason)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _unpacked(file: DataFile, content: bytes) -> bytes:
    canonical = file.canonical(file.extract(content))
    found = sha256(canonical)
    if found != file.sha256:
        raise DataError(
            f"{file.path} in {file.remote_name}: SHA-256 {found}, expected {file.sha256}; "
            "the archive itself has the expected digest, so please report this"
        )
    return canonical
