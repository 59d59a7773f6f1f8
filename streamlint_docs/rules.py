"""The rules: a page for each, and the table of all, from the checks, the evidence and what the linter says of their examples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from streamlint.checks.base import Check, registry
from streamlint.checks.rules import all_rules
from streamlint.cuda_model import SENTENCES
from streamlint.cuda_model.facts import GROUPS
from streamlint.findings.measured import VERDICTS, judged, judged_text, platform_text
from streamlint.report.pages import STATUS
from streamlint_docs.programs import FENCE, blocks, lint, mended, output, selected, shipped, whole

STRENGTH = ("does not happen", "may happen", "observed", "guaranteed")
TRACKERS = {"pytorch": "pytorch/pytorch", "numba-cuda": "NVIDIA/numba-cuda"}  # where "PyTorch #143825" leads
NONE = "-"
PAGES = re.compile(r"docs/([\w-]+\.md)")


def pages() -> dict[str, str]:
    """All pages of rules by their path below the site's sources, and for each code a file that leads to its name."""
    found = {"rules/index.md": table()}
    for code, rule in all_rules().items():
        found[f"rules/{rule.name}.md"] = page(rule)
        found[f"rules/{code}/index.html"] = _redirect(rule.name)
    return found


# The table --------------------------------------------------------------------------------------------------------------------


def table() -> str:
    """The table of all rules; a script of the site makes it filterable, without it it is a plain table."""
    rows = [_row(rule) for rule in registry().values()]
    head = "| code | rule | what it finds | default | language | hazard | fix | on the GPU |\n|---|---|---|---|---|---|---|---|"
    return (
        "---\ntitle: Rules\nhide:\n  - toc\n---\n\n# Rules\n\n"
        "What a rule claims about CUDA was run beside its remedy; the verdict is in the last column, the figures are on the rule's page. "
        "[Verify](../verify.md) runs the same on your GPU.\n\n"
        f'<div class="rules" markdown="1">\n\n{head}\n' + "\n".join(rows) + "\n\n</div>\n\n"
        "These are the linter's own: " + ", ".join(f"[{rule.name}]({rule.name}.md) ({rule.code})" for rule in _own()) + ".\n\n"
        "*stall*: the host or a stream waits without need. *race*: nothing orders two uses of memory. *deadlock*: two wait for each other. "
        "*error*: CUDA refuses it. *portability*: it holds on some systems or builds only. A rule that is in *preview* is on with "
        "`--preview`, one that is *off* is on when it is [selected](../configuration.md#select).\n"
    )


def _own() -> list[type[Check]]:
    return [rule for code, rule in all_rules().items() if code not in registry()]


def _row(rule: type[Check]) -> str:
    summary = _inline(rule.documentation()[""]).removesuffix(".")
    cells = (
        rule.code,
        f"[{rule.name}]({rule.name}.md)",
        summary.replace("|", "\\|"),
        rule.default,
        ", ".join(rule.languages),
        rule.category.value,
        fixes(rule),
        verdict(rule.code),
    )
    return "| " + " | ".join(cells) + " |"


def fixes(rule: type[Check]) -> str:
    """The fixes that the rule has: ``safe``, ``unsafe``, both, or ``-``."""
    return ", ".join(rule.fixes) or NONE


def verdict(code: str) -> str:
    """The verdicts on the rule's cases, the one that says most first."""
    known = {record["verdict"] for record in shipped(code)}
    return ", ".join(word for word in reversed(VERDICTS) if word in known) or NONE


# A page -----------------------------------------------------------------------------------------------------------------------


def page(rule: type[Check]) -> str:
    """A rule's page."""
    sections = rule.documentation()
    parts = [_head(rule, sections[""])]
    parts += [f"## {heading}\n\n{sections[heading]}" for heading in ("What it does", "Why is this bad") if heading in sections]
    if "Example" in sections:
        parts += _example(rule, sections)
    parts.append(f"## When it is fine\n\n{sections['When it is fine']}\n\n{_silence(rule)}")
    parts += _verified(rule, sections)
    parts += _facts(rule)
    if rule.code in judged():
        parts.append(f"## In released packages\n\n{judged_text(rule.code)} [Accuracy](../accuracy.md) tells by whom, and what came of it.")
    if "References" in sections:
        parts.append(f"## References\n\n{_references(sections['References'])}")
    return "\n\n".join(_inline(part) if not part.startswith(("===", "```")) else part for part in parts) + "\n"


def _head(rule: type[Check], summary: str) -> str:
    chips = [
        f'<span class="chip {rule.category.value}">{rule.category.value}</span>',
        f'<span class="chip">{rule.category.severity.value}</span>',
        f'<span class="chip">{STATUS[rule.default].split(":")[0]}</span>',
        *(f'<span class="chip">{name}</span>' for name in rule.languages),
    ]
    if (fix := fixes(rule)) != NONE:
        chips.append(f'<span class="chip">fix: {fix}</span>')
    if (known := verdict(rule.code)) != NONE:
        chips.append(f'<span class="chip verdict">{known}</span>')
    return (
        f'---\ntitle: "{rule.name} ({rule.code})"\ndescription: "{_plain(summary)}"\n---\n\n# {rule.name} <small>{rule.code}</small>\n\n'
        f'<p class="chips">{" ".join(chips)}</p>\n\n{summary}'
    )


def _example(rule: type[Check], sections: Mapping[str, str]) -> Iterator[str]:
    """Misuse and remedy in tabs, the finding as the linter prints it, and what a fix would change."""
    both = "\n".join(sections[name] for name in ("Example", "Use instead"))
    programs = {}
    for heading in ("Example", "Use instead"):
        ((language, body),) = blocks(sections[heading])[:1]
        programs[heading] = whole(language, body, both)
    yield "## Example"
    tabs = {"Misuse": programs["Example"], "Use instead": programs["Use instead"]}
    for title, source in tabs.items():
        kind = "cpp" if source.language == "cuda" else source.language
        code = f'```{kind} title="{source.path}" linenums="1"\n{source.text.rstrip()}\n```'
        yield f'=== "{title}"\n\n' + "".join(f"    {line}\n" if line else "\n" for line in code.split("\n"))
    for heading in ("Example", "Use instead"):
        if more := FENCE.sub("", sections[heading]).strip():
            yield more
    report = lint(programs["Example"], [rule.code])
    yield "### What streamlint says"
    yield f"```text\n$ streamlint check {programs['Example'].path}{selected(rule.code)}\n{output(report)}```"
    if patch := mended(report):
        safe = all(finding.fix is None or finding.fix.applicability == "safe" for finding in report.findings)
        yield f"`streamlint check --fix{'' if safe else ' --unsafe-fixes'}` would change:"
        yield f"```diff\n{patch}```"


def _silence(rule: type[Check]) -> str:
    mark = "#" if "Python" in rule.languages else "//"
    return f"`{mark} streamlint: ignore[{rule.code}] why` at the end of the line silences one finding."


def _verified(rule: type[Check], sections: Mapping[str, str]) -> Iterator[str]:
    records = shipped(rule.code)
    if not records:
        return
    yield "## On the GPU"
    yield sections.get("Verify", "")
    places: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for record in records:
        places.setdefault((platform_text(record["platform"]), str(record["date"])), []).append(record)
    for (platform, date), found in places.items():
        yield f"Measured on {platform}, {date}. `streamlint verify --rule {rule.code}` does the same on your machine."
        rows = ["| case | API | verdict | misuse | remedy |", "|---|---|---|---|---|"]
        cells = ((record["case"], record["api"], record["verdict"], *_sides(record["summary"])) for record in found)
        table = "\n".join([*rows, *("| " + " | ".join(row) + " |" for row in cells)])
        yield f'<div class="figures" markdown="1">\n\n{table}\n\n</div>'
        versions = sorted({f"{name} {version}" for record in found for name, version in record.get("packages", {}).items()})
        name = "H100" if "H100" in platform else "H200"
        more = f"What a case predicts and how often it was run: [Verified on an {name}](../verify-{name.lower()}.md)."
        yield f"{', '.join(versions)}. {more}\n{{: .versions }}"


def _sides(summary: str) -> tuple[str, str]:
    """``misuse: …; remedy: …`` in two cells."""
    misuse, _, remedy = summary.partition("; remedy: ")
    return misuse.removeprefix("misuse: "), remedy


def _facts(rule: type[Check]) -> Iterator[str]:
    if not rule.rests_on:
        return
    yield "## What it rests on"
    yield (
        "Sentences of [the CUDA model](../cuda-model.md), each held against the hardware by `streamlint litmus`. *Guaranteed*: documents "
        "promise it. *Observed*: a GPU does it, nobody promises it."
    )
    rows = ["| CUDA | is it so | where from |", "|---|---|---|"]
    for name in rule.rests_on:
        fact = SENTENCES[name]
        group = next((title for title, facts in GROUPS.items() if fact in facts), "")
        link = f"[{STRENGTH[fact.strength]}](../cuda-model.md#{group.lower().replace(' ', '-')})" if group else STRENGTH[fact.strength]
        rows.append(f"| {fact.says} | {link} | {fact.source} |")
    yield "\n".join(rows)


def _references(text: str) -> str:
    def issues(line: str) -> str:
        word = line.lstrip("- ").split(" #")[0].lower()
        if word not in TRACKERS:
            return line
        return re.sub(r"#(\d+)", rf"[#\1](https://github.com/{TRACKERS[word]}/issues/\1)", line)

    return PAGES.sub(r"[the page on it](../\1)", "\n".join(issues(line) for line in text.split("\n")))


def _inline(text: str) -> str:
    """Docstrings quote code with two marks; one does in Markdown, and the site's fonts are the same."""
    return re.sub(r"(?<!`)``(?!`)([^`\n]+)``(?!`)", r"`\1`", text)


def _plain(text: str) -> str:
    return text.replace("`", "").replace('"', "'")


def _redirect(name: str) -> str:
    """A page of a code leads to the page of its rule."""
    head = f'<!doctype html><meta charset="utf-8"><title>{name}</title><meta http-equiv="refresh" content="0; url=../{name}/">'
    return f'{head}<a href="../{name}/">{name}</a>\n'
