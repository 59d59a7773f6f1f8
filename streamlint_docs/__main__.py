"""``python -m streamlint_docs``: write, build and check the site."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from streamlint_docs import DOCS, ROOT, authored, commands, links, models, playground, rules, settings

BUILD = ROOT / "build"
# Pages that are written elsewhere in the repository and join the site once they exist.
AWAITED = frozenset({"speed.md"})


def main(words: list[str]) -> int:
    """0 if the site was built without a warning and has no dead link, else 1."""
    parser = argparse.ArgumentParser(prog="python -m streamlint_docs", description="Build the documentation's site into build/site.")
    parser.add_argument("--source-only", action="store_true", help="write the pages, build nothing")
    parser.add_argument("--outside", action="store_true", help="list the addresses outside of the site that it links to")
    parser.add_argument("--pyodide", type=Path, metavar="FOLDER", help="serve Pyodide from a copy of this folder")
    options = parser.parse_args(words)
    config = configuration(BUILD)
    write(BUILD / "site-source", options.pyodide)
    (BUILD / "mkdocs.yml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    if options.source_only:
        return 0
    site = BUILD / "site"
    shutil.rmtree(site, ignore_errors=True)
    builder = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(BUILD / "mkdocs.yml")]
    if subprocess.run(builder, cwd=BUILD).returncode:
        return 1
    if options.outside:
        print(*links.outside(site, config["site_url"]), sep="\n")
    dead = links.dead(site, config["site_url"])
    print(*(f"dead link: {line}" for line in dead), f"{len(list(site.rglob('*.html')))} pages, {len(dead)} dead links", sep="\n")
    return 1 if dead else 0


def sources() -> dict[str, str]:
    """Every page of the site by its path."""
    return {
        **authored.pages(),
        **rules.pages(),
        "configuration.md": settings.page(),
        "commands.md": commands.page(),
        "models-reference.md": models.page(),
    }


def write(folder: Path, pyodide: Path | None = None) -> None:
    """The sources of the site, as the builder reads them; ``pyodide`` is copied for the playground."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in sources().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name in authored.COPIED:
        if (DOCS / name).is_dir():
            shutil.copytree(DOCS / name, folder / name)
    playground.write(folder / "assets", pyodide)


def configuration(folder: Path) -> dict[str, Any]:
    """``mkdocs.yml`` with paths as seen from ``folder``, and without pages that are awaited."""
    config: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    for key in ("docs_dir", "site_dir"):
        config[key] = str((ROOT / config[key]).relative_to(folder))
    config["nav"] = _present(config["nav"])
    return config


def _present(nav: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for row in nav:
        ((title, target),) = row.items()
        if isinstance(target, list):
            rows.append({title: _present(target)})
        elif target not in AWAITED or (DOCS / target).is_file():
            rows.append({title: target})
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
