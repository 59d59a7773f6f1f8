"""Dead links of a built site: each ``href`` and ``src`` that stays within it leads to a file, and each anchor to an id there."""

from __future__ import annotations

import functools
import urllib.parse
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"href", "src"} and value is not None:
                self.links.append(value)
            elif (name == "id" or (name == "name" and tag == "a")) and value:
                self.ids.add(value)


def dead(site: Path, address: str) -> list[str]:
    """What leads nowhere, as ``page: link``; ``address`` is where the site will stand."""
    read = functools.cache(lambda path: _Page(path.read_text(encoding="utf-8")))
    found: dict[str, None] = {}
    for path in sorted(site.rglob("*.html")):
        for link in read(path).links:
            target = _target(link, path, site, address)
            if target is None:
                continue
            file, anchor = target
            if not file.is_file() or (anchor and file.suffix == ".html" and anchor not in read(file).ids):
                found[f"{path.relative_to(site)}: {link}"] = None
    return list(found)


def _target(link: str, page: Path, site: Path, address: str) -> tuple[Path, str] | None:
    """The file and the anchor that a link of a page means; None where it leads out of the site."""
    if link.startswith(address):
        link = "/" + link.removeprefix(address)
    parts = urllib.parse.urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    where = urllib.parse.unquote(parts.path)
    below = "/" + urllib.parse.urlsplit(address).path.strip("/")
    if where.startswith("/"):
        file = site / where.removeprefix(below if below != "/" else "").lstrip("/")
    else:
        file = (page.parent / where).resolve() if where else page
    if file.is_dir():
        file = file / "index.html"
    return file, urllib.parse.unquote(parts.fragment)


def outside(site: Path, address: str) -> Iterator[str]:
    """The addresses outside of the site that its pages lead to, each once."""
    seen: set[str] = set()
    for path in sorted(site.rglob("*.html")):
        for link in _Page(path.read_text(encoding="utf-8")).links:
            if link.startswith(("http://", "https://")) and not link.startswith(address) and link not in seen:
                seen.add(link)
                yield link
