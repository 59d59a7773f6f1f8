"""``streamlint check``."""

from __future__ import annotations

from streamlint import TYPE_CHECKING
from streamlint.commands import fixing
from streamlint.commands.check_options import build_parser
from streamlint.commands.reporting import tell
from streamlint.commands.running import demand_files, keep_changed, profile_of, report_of, resolver_of, targets_of
from streamlint.runner import progress
from streamlint.support.errors import ConfigError
from streamlint.support.lazy import lazy

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from streamlint.commands import explaining, modes, shard, watch
    from streamlint.findings import Report
else:
    explaining, modes, shard, watch = lazy("streamlint.commands", "explaining", "modes", "shard", "watch")


def main(words: list[str]) -> int:
    """Lint, print, and say how it went."""
    options = build_parser().read(["--add-ignore=" if word == "--add-ignore" else word for word in words])
    options.words, options.paths = words, options.paths or ["."]
    if "-" in options.paths and len(options.paths) > 1:
        raise ConfigError("'-' reads standard input and takes no other path")
    if (options.executor is None) != (options.scheduler is None):
        raise ConfigError("--executor dask needs --scheduler ADDRESS" if options.executor else "--scheduler needs --executor dask")
    if options.watch and options.shard is None:
        return watch.watch(options.paths, lambda: _run(options))
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    with progress.reporting(options.quiet):
        return _check(options)


def _check(options: argparse.Namespace) -> int:
    resolver = resolver_of(options)
    if options.shard is not None:
        return shard.run_shard(options, resolver)
    if options.show_settings or options.show_files:
        return (modes.show_settings if options.show_settings else modes.show_files)(options, resolver)
    targets = targets_of(options, resolver)
    profile_of(options)
    if options.explain_silence:
        return explaining.explain_silence(options, resolver, targets)
    options.fixes = not options.write_baseline and fixing.worth_finding(options, [format for format, _ in targets])

    def look(instead: Mapping[str, bytes] | None = None) -> Report:
        report = report_of(options, resolver, instead)
        demand_files(options, report.files)
        if options.since is not None:
            keep_changed(options, report)
        return report

    report = look()
    progress.finish()
    noted = options.write_baseline or options.add_ignore is not None
    done = fixing.fix(options, report, look) if fixing.wanted(options) and not noted else fixing.Fixed(report)
    progress.finish()
    if noted or options.diff:
        return modes.instead(options, done)
    if options.paths != ["-"]:
        fixing.write(done)
    return tell(options, done, targets, resolver)
