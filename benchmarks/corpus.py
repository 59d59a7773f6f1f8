"""Fetch the released packages that streamlint is measured on.

    python benchmarks/corpus.py fetch [--to DIR] [NAME…]    download, check and unpack (all of them, if none is named)
    python benchmarks/corpus.py list                        print the pins

The pins stand in corpus.toml. Each file is fetched by `unearth`, a package finder that downloads without building, from the index
that pip is configured with. A file is unpacked only if its hash is right, to DIR/NAME-VERSION; nothing of a package is ever run.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PINS = Path(__file__).with_name("corpus.toml")
KINDS = {"wheel": "--only-binary", "sdist": "--no-binary"}
PYTHON = "3.12"
"""The interpreter whose wheels are taken, whichever runs this script: a pin names one file."""
PLATFORMS = "manylinux_2_28_x86_64,manylinux_2_17_x86_64,manylinux2014_x86_64,any"


class CorpusError(Exception):
    """The corpus cannot be had; the message says why and what to do."""


@dataclass(frozen=True)
class Pin:
    """One released file: exactly this version, exactly these bytes."""

    name: str
    version: str
    kind: str
    sha256: str
    reason: str

    @property
    def tree(self) -> str:
        """Name of the folder that it is unpacked to."""
        return f"{self.name}-{self.version}"


def read_pins(path: Path = PINS) -> list[Pin]:
    """The pins, in the order of the file."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["package"]
    pins = [_pin(table) for table in tables]
    names = [pin.name for pin in pins]
    if twice := {name for name in names if names.count(name) > 1}:
        raise CorpusError(f"{path.name}: pinned twice: {', '.join(sorted(twice))}")
    return pins


def _pin(table: Mapping[str, str]) -> Pin:
    """One table of the file, checked."""
    name = table.get("name", "(no name)")
    try:
        pin = Pin(**table)
    except TypeError as error:
        raise CorpusError(f"{PINS.name}: {name}: needs name, version, kind, sha256 and reason, nothing else ({error})") from None
    if pin.kind not in KINDS:
        raise CorpusError(f"{PINS.name}: {name}: kind is {pin.kind!r}, not one of {', '.join(KINDS)}")
    if len(pin.sha256) != 64 or set(pin.sha256) - set("0123456789abcdef"):
        raise CorpusError(f"{PINS.name}: {name}: sha256 is not 64 lower-case hexadecimal digits")
    return pin


def choose(pins: Sequence[Pin], names: Sequence[str]) -> list[Pin]:
    """The pins with these names; all, if none is named."""
    known = {pin.name: pin for pin in pins}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise CorpusError(f"{name} is not in {PINS.name}" + (f"; did you mean {near[0]}?" if near else ""))
    return [known[name] for name in names] if names else list(pins)


def default_folder() -> Path:
    """Where trees are kept when no folder is given: the user's cache, outside of the repository."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamlint" / "corpus"


# Download


def pip_settings(text: str) -> dict[str, str]:
    """What `pip config list` printed, as option to value. The environment wins over `download`, that over `global`."""
    found: dict[str, tuple[int, str]] = {}
    for line in text.splitlines():
        key, _, value = line.partition("=")
        section, _, option = key.rpartition(".")
        if section in _RANKS and _RANKS[section] >= found.get(option, (-1, ""))[0]:
            found[option] = (_RANKS[section], str(ast.literal_eval(value)))
    return {option: value for option, (_, value) in found.items()}


_RANKS = {"global": 0, "download": 1, ":env:": 2}


def configured() -> dict[str, str]:
    """pip's settings on this machine."""
    done = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True)
    return pip_settings(done.stdout) if done.returncode == 0 else {}


def indexes(settings: Mapping[str, str]) -> list[list[str]]:
    """Options that name an index, one list an attempt: the main index (the finder's own default if none is set), then the extra ones."""
    main = [["--index-url", settings["index-url"]]] if "index-url" in settings else [[]]
    return main + [["--index-url", url] for url in settings.get("extra-index-url", "").split()]


def download(pin: Pin, folder: Path, settings: Mapping[str, str]) -> Path:
    """The pin's file, freshly fetched to the folder. Its hash is not checked yet."""
    environment = dict(os.environ)
    if "cert" in settings:
        environment.setdefault("SSL_CERT_FILE", settings["cert"])
    said = []
    for index in indexes(settings):
        done = subprocess.run([*_command(pin, folder), *index], capture_output=True, text=True, env=environment)
        if done.returncode == 0:
            return Path(json.loads(done.stdout)["local_path"])
        if "No module named unearth" in done.stderr:
            raise CorpusError("unearth is not installed; run: python -m pip install unearth")
        said.append(done.stderr.strip()[-500:])
    raise CorpusError(f"{pin.tree}: no {pin.kind} could be downloaded: {'; '.join(filter(None, said)) or 'no reason given'}")


def _command(pin: Pin, folder: Path) -> list[str]:
    """The finder's command line, up to the index."""
    abis = f"cp{PYTHON.replace('.', '')},abi3,none"
    target = ["--python-version", PYTHON, "--implementation", "cp", "--abis", abis, "--platforms", PLATFORMS]
    return [sys.executable, "-m", "unearth", f"{pin.name}=={pin.version}", "--download", str(folder), KINDS[pin.kind], *target]


def check_hash(pin: Pin, archive: Path) -> None:
    """Refuse a file that is not the pinned one."""
    actual = hashlib.sha256(archive.read_bytes()).hexdigest()
    if actual != pin.sha256:
        raise CorpusError(f"{pin.tree}: {archive.name} is not the pinned file: its sha256 is {actual}, {PINS.name} says {pin.sha256}")


# Unpack


def members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Name and content of every file in a wheel, zip or tar. Folders and symbolic links are left out."""
    if archive.suffix in {".whl", ".zip"}:
        with zipfile.ZipFile(archive) as bundle:
            for entry in bundle.infolist():
                if not entry.is_dir():
                    with bundle.open(entry) as content:
                        yield entry.filename, content
        return
    with tarfile.open(archive) as tape:
        for member in tape:
            if (member.isfile() or member.islnk()) and (file := tape.extractfile(member)):
                yield member.name, file


def safe(name: str) -> PurePosixPath:
    """The member's path, if it cannot lead out of the folder that it is unpacked to."""
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\\" in name or ":" in path.parts[0]:
        raise CorpusError(f"unsafe member name {name!r}")
    return path


def unpack(archive: Path, target: Path) -> None:
    """Unpack to target, which appears only when everything is there. A source distribution's single top folder is dropped."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as name:
        scratch = Path(name) / "tree"
        scratch.mkdir()
        for member, content in members(archive):
            file = scratch / safe(member)
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb") as out:
                shutil.copyfileobj(content, out)
        inside = list(scratch.iterdir())
        root = inside[0] if archive.suffix != ".whl" and len(inside) == 1 and inside[0].is_dir() else scratch
        if target.exists():
            shutil.rmtree(target)
        root.rename(target)


# Commands


def is_fetched(pin: Pin, folder: Path) -> bool:
    """Whether the tree stands there, unpacked from the pinned file."""
    stamp = _stamp(pin, folder)
    return (folder / pin.tree).is_dir() and stamp.is_file() and stamp.read_text().strip() == pin.sha256


def _stamp(pin: Pin, folder: Path) -> Path:
    """A file beside the tree, so that the linter does not meet it, with the hash of what was unpacked."""
    return folder / f".{pin.tree}.sha256"


def fetch(pin: Pin, folder: Path, settings: Mapping[str, str]) -> str:
    """Make sure that the tree stands in the folder; say what was done."""
    if is_fetched(pin, folder):
        return "there already"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".download.") as name:
        archive = download(pin, Path(name), settings)
        check_hash(pin, archive)
        unpack(archive, folder / pin.tree)
        size = archive.stat().st_size
    _stamp(pin, folder).write_text(pin.sha256 + "\n")
    return f"fetched, {size / 1e6:.1f} MB"


def fetch_all(pins: Sequence[Pin], folder: Path) -> list[str]:
    """Fetch the pins, printing one line each; return what went wrong."""
    settings, wrong = configured(), []
    for pin in pins:
        try:
            print(f"{pin.tree}: {fetch(pin, folder, settings)}", flush=True)
        except (CorpusError, OSError, tarfile.TarError, zipfile.BadZipFile) as error:
            wrong.append(str(error) if isinstance(error, CorpusError) else f"{pin.tree}: {error}")
    return wrong


def print_pins(pins: Sequence[Pin]) -> None:
    """One line a pin."""
    for pin in pins:
        print(f"{pin.tree:<28} {pin.kind:<6} {pin.reason}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 if all went well, else 2."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    fetching = commands.add_parser("fetch", help="download, check and unpack")
    fetching.add_argument("names", nargs="*", metavar="NAME")
    fetching.add_argument("--to", type=Path, default=default_folder(), metavar="DIR", help="default: the user's cache folder")
    commands.add_parser("list", help="print the pins")
    options = parser.parse_args(arguments)
    try:
        pins = read_pins()
        if options.command == "list":
            print_pins(pins)
            return 0
        wrong = fetch_all(choose(pins, options.names), options.to)
    except CorpusError as error:
        wrong = [str(error)]
    for message in wrong:
        print(f"error: {message}", file=sys.stderr)
    return 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
