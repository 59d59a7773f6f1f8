"""``streamlint check --shard``: one share of a run."""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from pathlib import Path

from streamlint.commands import fixing
from streamlint.commands.reporting import exit_code, write
from streamlint.commands.running import demand_files, keep_changed, store_of
from streamlint.config.settings import Resolver
from streamlint.discovery.files import discover
from streamlint.runner import linter, progress
from streamlint.runner.shards import Shard, read_number
from streamlint.support.errors import ConfigError

# What asks for the whole run, or changes files.
_ALONE = (
    "watch fix fix_only diff show_fixes add_ignore write_baseline explain_silence show_files show_settings coverage coverage_file timings"
    " exit_non_zero_on_fix executor"
).split()
# What decides the report besides the settings of files.
_ASKED = ("since", "statistics", "exit_zero", "unsafe_fixes", "force_exclude")


def demand_fitting(options: argparse.Namespace) -> None:
    """Raises ConfigError for what a shard cannot do."""
    for name in _ALONE:
        if getattr(options, name) not in (None, False):
            raise ConfigError(f"--shard does not go with --{name.replace('_', '-')}, which needs the whole run")
    if "-" in options.paths:
        raise ConfigError("--shard takes files and folders, not standard input")


def settings_of(options: argparse.Namespace, resolver: Resolver) -> str:
    """A hash of all settings, the same wherever the tree lies."""
    parts = sorted({f"{file.path} {file.given} {file.settings!r}" for file in discover(options.paths, resolver).files})
    parts.append(repr([(name, getattr(options, name)) for name in _ASKED]))
    return hashlib.sha256("\n".join(parts).replace(os.getcwd(), ".").encode("utf-8", "surrogatepass")).hexdigest()


def run_shard(options: argparse.Namespace, resolver: Resolver) -> int:
    """Lint one share, write its report, and exit as ``check`` does."""
    demand_fitting(options)
    number, count = read_number(options.shard)
    target = _target(options)
    shard = Shard(number, count)
    store = store_of(options, resolver)
    report = linter.run(options.paths, resolver, linter.How(jobs=options.jobs, store=store, share=shard))
    progress.finish()
    demand_files(options, report.files)
    if options.since is not None:
        keep_changed(options, report)
    text = shard.report(settings_of(options, resolver), options.words)
    if target is None:
        sys.stdout.write(text)
    else:
        write(target, text)
    # Whether a comment hides nothing, or an entry of a baseline is stale, is known once all shards are.
    report.findings = [finding for finding in report.findings if finding.code != "SL900"]
    report.remarks = []
    if not options.quiet:
        print(f"shard {number}/{count}: its rules, asked of {report.relevant} files that mention CUDA", file=sys.stderr)
    return exit_code(options, fixing.Fixed(report))


def _target(options: argparse.Namespace) -> str | None:
    """The file of the report; None for stdout."""
    asked = options.output_format or ["json"]
    name, _, file = asked[0].partition(":")
    if len(asked) > 1 or name != "json":
        raise ConfigError("--shard writes JSON for `streamlint merge`, which takes the --output-format")
    place: str | None = file or options.output_file
    if place is not None and Path(place).is_dir():
        raise ConfigError(f"cannot write {place}: it is a folder")
    return place
