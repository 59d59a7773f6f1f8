"""A run as ``check`` asks for it: its settings, its formats, its cache, its report. Other commands ask for the same."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.commands import fixing
from streamlint.commands.check_options import build_parser, inline_settings, overrides
from streamlint.config.settings import FORMATS, Resolver, Settings, apply, load
from streamlint.config.targets import read_targets
from streamlint.runner import linter
from streamlint.support.errors import ConfigError, PathError
from streamlint.support.lazy import lazy
from streamlint.support.reading import MOST_BYTES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from typing import Any

    from streamlint.cache import store
    from streamlint.cache.store import Store
    from streamlint.findings import Report
    from streamlint.runner.cluster import client
    from streamlint.runner.cluster.client import Cluster
    from streamlint.trace import profile
    from streamlint.trace.profile import Profile
    from streamlint.triage import changes
else:
    (store,) = lazy("streamlint.cache", "store")
    (client,) = lazy("streamlint.runner.cluster", "client")
    (profile,) = lazy("streamlint.trace", "profile")
    (changes,) = lazy("streamlint.triage", "changes")


def lint(words: list[str]) -> Report:
    """What ``check`` finds with this command line, for other commands."""
    options = build_parser().read(words)
    options.fixes = False
    report = report_of(options, resolver_of(options))
    demand_files(options, report.files)
    return report


def as_check(options: argparse.Namespace, paths: Sequence[str]) -> argparse.Namespace:
    """The options of a command that has some of ``check``'s, as ``check`` would have read them."""
    whole = build_parser().read([])
    known = vars(whole)
    known.update({name: value for name, value in vars(options).items() if name in known})
    whole.paths, whole.fixes, whole.output_format, whole.output_file = list(paths), False, None, None
    return whole


def report_of(options: argparse.Namespace, resolver: Resolver, instead: Mapping[str, bytes] | None = None) -> Report:
    coverage = options.coverage or options.coverage_file is not None
    if options.paths == ["-"]:
        name = options.stdin_filename or "-"
        data = next(iter(instead.values())) if instead else standard_input(options)
        return linter.run_text(data, name, resolver, coverage, fixes=options.fixes)
    store = None if instead else store_of(options, resolver)
    cluster = _cluster(options)
    how = linter.How(coverage, options.jobs, options.fixes, fixing.wanted(options), store, instead or {}, cluster)
    if cluster is not None:
        how.jobs = 1  # Dask has threads here: nothing is forked beside them
    report = linter.run(options.paths, resolver, how)
    if store is not None and store.trouble:
        report.remarks.append(store.trouble)
    return report


def resolver_of(options: argparse.Namespace) -> Resolver:
    attributes = {"force_exclude": options.force_exclude, "default_excludes": options.default_excludes}
    if options.write_baseline:
        attributes["baseline"] = None  # what is listed anew is looked at as a whole
    return Resolver(*configured(options), **attributes)


def configured(options: argparse.Namespace) -> tuple[Settings | None, list[tuple[str, Mapping[str, Any]]]]:
    """What a ``Resolver`` is made of: the one configuration that ``--config`` or ``--isolated`` fixes, and the settings that go before it.

    Raises ConfigError.
    """
    fixed = None
    inline: dict[str, Any] = {}
    for text in options.config:
        if "=" in text and not os.path.exists(text):
            inline.update(inline_settings(text))
        elif fixed:
            raise ConfigError("--config names more than one file")
        else:
            fixed = load(Path(os.path.abspath(text)))
    if options.isolated:
        if fixed:
            raise ConfigError("--isolated ignores configuration files, --config names one")
        fixed = Settings()
    if inline:
        apply(Settings(), inline, Path.cwd(), "--config")
    return fixed, [("--config", inline), ("command line", overrides(options))]


def targets_of(options: argparse.Namespace, resolver: Resolver) -> list[tuple[str, str | None]]:
    """Formats, and the file that each is written to (None: stdout)."""
    asked = options.output_format or [resolver.of_folder(Path.cwd()).output_format]
    return read_targets(asked, FORMATS, options.output_file)


def _cluster(options: argparse.Namespace) -> Cluster | None:
    """Where the files are analysed, if not here; asked once a run."""
    if options.executor is None:
        return None
    if not hasattr(options, "cluster"):
        options.cluster = client.Cluster(options.scheduler)
    cluster: Cluster = options.cluster
    return cluster


def store_of(options: argparse.Namespace, resolver: Resolver) -> Store | None:
    """What earlier runs found; None with ``--no-cache``, or ``STREAMLINT_NO_CACHE`` in the environment."""
    if options.no_cache or os.environ.get("STREAMLINT_NO_CACHE", "").lower() in ("1", "true", "yes"):
        return None
    if not hasattr(options, "store"):
        options.store = store.open_store(resolver.of_folder(Path.cwd()).cache_dir)
    opened: Store = options.store
    return opened


def profile_of(options: argparse.Namespace) -> Profile | None:
    """What a recorded run says of findings: the file of ``--profile``, read once."""
    if options.profile is None:
        return None
    if not hasattr(options, "costs"):
        options.costs = profile.load(Path(options.profile))
    costs: Profile = options.costs
    return costs


def standard_input(options: argparse.Namespace) -> bytes:
    """Standard input, read once."""
    if not hasattr(options, "stdin"):
        if sys.stdin is None:
            raise ConfigError("standard input is closed")
        options.stdin = sys.stdin.buffer.read(MOST_BYTES + 1)
        if len(options.stdin) > MOST_BYTES:
            raise ConfigError(f"standard input is larger than {MOST_BYTES >> 20} MiB")
    data: bytes = options.stdin
    return data


def keep_changed(options: argparse.Namespace, report: Report) -> None:
    comparison = changes.Changes(options.since)
    first = Path(options.stdin_filename or ".") if options.paths == ["-"] else Path(options.paths[0])
    comparison.check(first if first.is_dir() else first.parent)
    report.findings = comparison.keep(report.findings)
    report.remarks += comparison.remarks


def demand_files(options: argparse.Namespace, count: int) -> None:
    """A run that looked at nothing must not pass for a clean one, unless a hook's exclusions emptied its list."""
    if count == 0 and not options.force_exclude:
        raise PathError(f"no lintable file in {', '.join(options.paths)}")
