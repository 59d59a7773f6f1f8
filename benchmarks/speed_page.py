"""The page of what a run costs, and its picture, from the record that ``speed.py`` keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- figures: made by benchmarks/speed.py page -->", "<!-- end of figures -->"
PICTURE = "images/speed.svg"
ALT = "Seconds of a cold run over the number of files: both scales double from mark to mark; two processes and one."
NOTHING = "The big tree was not measured with the present engine."
INK = "#808080"  # legible on white and on black
COLOURS = ("#3f7fd0", "#d0702f")
BUSY = 0.5  # of a core: what else ran when the measuring began


def write(record: Mapping[str, Any]) -> None:
    """Put the figures into docs/speed.md, between their marks, and draw the picture."""
    page = DOCS / "speed.md"
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n\n{figures(record)}\n{END}{after}", encoding="utf-8")
    if "curves" in record:
        draw(record["curves"], DOCS / PICTURE)


def figures(record: Mapping[str, Any]) -> str:
    """Tables of the record, in Markdown: of what it has."""
    lines = list(_whole(record)) if "tree" in record else [NOTHING]
    if "stages" in record:
        lines += ["", *_stages(record["stages"])]
    for name, tree in sorted(record.get("trees", {}).items()):
        lines += ["", f"**{name}**.", *_tree(tree)]
    for name, peer in sorted(record.get("peers", {}).items()):
        lines += ["", *_peer(name, peer, record.get("tree", {}).get("packages", []))]
    return "\n".join(lines) + "\n"


def _whole(record: Mapping[str, Any]) -> Iterator[str]:
    """The big tree: its commands, and its parts."""
    yield from _tree(record)
    yield ""
    yield f"![{ALT}]({PICTURE})"
    yield ""
    yield "| part of the tree | files | processes | wall | processor | peak |"
    yield "|---|---|---|---|---|---|"
    yield from (_curve(row) for row in record["curves"])


def _tree(record: Mapping[str, Any]) -> Iterator[str]:
    tree = record["tree"]
    yield f"{where(record)} {tree['python']:,} Python files among {tree['files']:,} sources, {tree['bytes'] / 1e6:,.0f} MB:"
    yield f"{', '.join(tree['packages'])}. Medians of the runs that are told; `peak` is the largest process."
    yield ""
    yield "| command | runs | wall | of plain ruff | of ruff E,F | processor | peak |"
    yield "|---|---|---|---|---|---|---|"
    yield from _rows(record["rows"], ("ruff", "ruff E4,E7,E9,F"))


def where(record: Mapping[str, Any]) -> str:
    """The machine, the day, and whether it was quiet."""
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    text = f"{record['date']}, {record['cpu']}, {record['cores']} cores, {record['memory_gib']} GiB, Python {record['python']}, {versions}."
    if record["load_at_start"] > BUSY:
        text += (
            f" **Under load**: {record['load_at_start']} processes wanted these cores when it began, so that wall times say little,"
            " and processor times are too high."
        )
    return text


def _rows(rows: Sequence[Mapping[str, Any]], bases: Sequence[str]) -> Iterator[str]:
    base = {row["name"]: row["wall"] for row in rows if row["name"] in bases and "wall" in row}
    for row in rows:
        if "failure" in row:
            yield f"| {row['name']} | | {row['failure']} |" + " |" * (len(bases) + 2)
            continue
        shares = " | ".join(f"{row['wall'] / base[name]:.2f}" if name in base else "" for name in bases)
        yield f"| {row['name']} | {row['runs']} | {_seconds(row['wall'])} | {shares} | {_seconds(row['cpu'])} | {row['peak_mib']:.0f} MiB |"


def _curve(row: Mapping[str, Any]) -> str:
    share = "all" if row["part"] == 1 else f"1/{row['part']}"
    head = f"| {share} | {row['files']:,} | {row['jobs']} |"
    if "failure" in row:
        return f"{head} {row['failure']} | | |"
    return f"{head} {_seconds(row['wall'])} | {_seconds(row['cpu'])} | {row['peak_mib']:.0f} MiB |"


def _stages(record: Mapping[str, Any]) -> Iterator[str]:
    ruff = record["ruff"]["cpu"] if record["ruff"] and "cpu" in record["ruff"] else 0.0
    whole = sum(record["seconds"].values())
    yield f"**Where a cold run's time goes**: processor time of one process on the big tree. {where(record)}"
    yield ""
    yield "| stage | processor | share | of plain ruff's whole |"
    yield "|---|---|---|---|"
    for stage, seconds in (*record["seconds"].items(), ("all", whole)):
        yield f"| {stage} | {_seconds(seconds)} | {seconds / whole:.0%} | {f'{seconds / ruff:.2f}' if ruff else ''} |"
    if ruff:
        yield f"| plain ruff, the whole | {_seconds(ruff)} | | 1.00 |"


def _peer(name: str, peer: Mapping[str, Any], whole: Sequence[str]) -> Iterator[str]:
    tree = "the big tree" if peer["packages"] == whole else ", ".join(peer["packages"])
    yield f"**{name}**, each command once on every {peer['part']}th source of {tree} ({peer['files']:,} files). {where(peer)}"
    yield f"`{peer['command']}`"
    yield ""
    yield "| command | runs | wall | of ruff | processor | peak |"
    yield "|---|---|---|---|---|---|"
    yield from _rows(peer["rows"], ("ruff",))


def _seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def draw(curves: Sequence[Mapping[str, Any]], to: Path) -> None:
    """The curves, as a picture that is the same for the same figures."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "streamlint"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 3.6))
    for colour, jobs in zip(COLOURS, sorted({row["jobs"] for row in curves}, reverse=True), strict=False):
        points = sorted((row["files"], row["wall"]) for row in curves if row["jobs"] == jobs and "wall" in row)
        if points:
            noun = "process" if jobs == 1 else "processes"
            axes.plot(*zip(*points, strict=True), marker="o", color=colour, label=f"{jobs} {noun}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("files", color=INK)
    axes.set_ylabel("seconds, cold", color=INK)
    axes.tick_params(colors=INK, which="both")
    axes.grid(color=INK, alpha=0.25)
    for spine in axes.spines.values():
        spine.set_color(INK)
    axes.legend(frameon=False, labelcolor=INK)
    figure.tight_layout()
    to.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(to, transparent=True, metadata={"Date": None})
