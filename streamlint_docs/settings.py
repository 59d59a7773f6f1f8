"""The page of the configuration: each key with what it does, its words, its default and an example, from the schema and the settings."""

from __future__ import annotations

import dataclasses

from streamlint.commands.schema import TELLS
from streamlint.config.settings import FLAGS, GLOBS, PATHS, SELECTORS, WORDS, Settings
from streamlint.discovery.files import DEFAULT_FOLDERS
from streamlint.support.addresses import SCHEMAS

# An example for each key, as it stands under ``[tool.streamlint]``.
EXAMPLES = {
    "select": 'select = ["SL001", "SL005", "mp-cuda-tensor"]',
    "ignore": 'ignore = ["SL021"]',
    "extend-select": 'extend-select = ["SL007", "blocking-stream"]',
    "extend-ignore": 'extend-ignore = ["implicit-default-stream"]',
    "per-file-ignores": 'per-file-ignores = { "tools/**" = ["SL001"], "!src/**" = ["SL020", "SL021"] }',
    "exclude": 'exclude = ["generated/", "*_pb2.py"]',
    "extend-exclude": 'extend-exclude = ["third_party/"]',
    "include": 'include = ["*.py", "*.cu", "*.inl"]',
    "respect-gitignore": "respect-gitignore = false",
    "require-reasons": "require-reasons = true",
    "preview": "preview = true",
    "baseline": 'baseline = "known.json"',
    "cache-dir": 'cache-dir = ".cache/streamlint"',
    "default-stream": 'default-stream = "per-thread"',
    "target-device": 'target-device = "cuda"',
    "hidden-sync": 'hidden-sync = "all-loops"',
    "evidence": 'evidence = "possible"',
    "confidence": 'confidence = "medium"',
    "output-format": 'output-format = "concise"',
    "models": 'models = [{ library = "torch", call = [{ names = "acme.device.get", effect = "namespace", name = "torch.cuda" }] }]',
    "extend": 'extend = "../shared/streamlint.toml"',
}
# What each word of a key means.
MEANS = {
    "default-stream": {
        "auto": 'as the build files say; where they say nothing, the legacy default stream, and messages say "if"',
        "legacy": "stream 0 is the one that waits for all blocking streams",
        "per-thread": "stream 0 is the thread's own (`--default-stream per-thread`)",
    },
    "target-device": {
        "maybe": 'an unknown device may be a CPU: the message then says "if the tensor is on a GPU"',
        "cuda": "an unknown device is a CUDA device",
    },
    "hidden-sync": {
        "hot-loops": "loops that train",
        "all-loops": "other loops that launch work, too; `--preview` and `--select ALL` mean this as well",
    },
    "evidence": {
        "shown": "what the code shows to cost or break something where it stands",
        "possible": "also what only may: a copy whose size nothing tells; `--preview` and `--select ALL` mean this as well",
    },
    "confidence": {
        "low": "all findings",
        "medium": "of such findings at least a third is expected to be real",
        "high": "of such findings at least two thirds are expected to be real ([how well that holds](accuracy.md#confidence))",
    },
}
DEFAULTS = {
    "select": "the rules that are on by default",
    "ignore": "[]",
    "extend-select": "[]",
    "extend-ignore": "[]",
    "exclude": "the folders below",
    "include": "Python, Cython, C++ and CUDA sources and headers",
    "extend": "none",
    "models": "[]",
    "per-file-ignores": "{}",
    "baseline": "none",
    "cache-dir": "the cache folder of the platform, such as `~/.cache/streamlint/check`",
}
GROUPS = {
    "Which rules": (*SELECTORS, "per-file-ignores", "preview"),
    "Which files": (*GLOBS, "respect-gitignore"),
    "Reporting": ("output-format", "confidence", "baseline", "require-reasons"),
    "What is assumed": ("default-stream", "target-device", "hidden-sync", "evidence", "models"),
    "Files": ("extend", "cache-dir"),
}
HEAD = """# Configuration

Settings stand in `pyproject.toml` under `[tool.streamlint]`, or in `streamlint.toml` at the top level. For each file the nearest one
up from it holds, and nothing of those further up; `extend` names one to begin with. Paths and patterns are relative to the file that
they stand in. The command line wins. An unknown key is an error that names the nearest known one.

```toml
[tool.streamlint]
extend-select = ["SL007"]
per-file-ignores = { "tools/**" = ["SL001"] }
target-device = "cuda"
```

`streamlint init` writes such a table for what it finds in a project: at the end of `pyproject.toml`, or into `streamlint.toml`. It proposes
what to exclude (submodules, vendored and generated folders, tests, benchmarks and examples that hold CUDA), and shows the other keys as
comments with their defaults. `--dry-run` prints it; a table that is there is replaced with `--force` alone.

`streamlint rules` lists the rules and says which are on in the current folder; options such as `--select` and `--preview` change the answer
as they change a run. `streamlint check --show-settings FILE` prints what holds for a file, `--isolated` reads no configuration, and
`--config 'target-device = "cuda"'` sets one key for one run. Editors complete and check the file with
[configuration.json](schemas/configuration.json), its JSON Schema: those that use Taplo (Even Better TOML) find it by a first line
`#:schema {schemas}configuration.json` in `streamlint.toml`.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD.rstrip().replace("{schemas}", SCHEMAS)]
    for title, keys in GROUPS.items():
        parts.append(f"## {title}")
        parts += [_key(key) for key in keys]
    folders = ", ".join(f"`{name}`" for name in sorted(DEFAULT_FOLDERS))
    parts.append(
        "## What is left out by default\n\n"
        f"Folders of these names, where they are met below a given path: {folders}. Naming such a folder on the command line reads it, and "
        "`--no-default-excludes` reads them all."
    )
    return "\n\n".join(parts) + "\n"


def default(key: str) -> str:
    """A key's default, as it would be written."""
    if key in DEFAULTS:
        return DEFAULTS[key]
    value = {field.name: field.default for field in dataclasses.fields(Settings)}[key.replace("-", "_")]
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'


def _key(key: str) -> str:
    told = default(key)
    kind = _kind(key)
    lines = [f"### {key}", TELLS[key].replace("docs/models.md", "[the page on models](models.md)")]
    if key in MEANS:
        lines.append("\n".join(f"* `{word}`: {meaning}" for word, meaning in MEANS[key].items()))
    code = told if told.startswith("the ") or told in {"none", DEFAULTS["include"]} else f"`{told}`"
    lines.append(f"**Default**: {code}  \n**Type**: {kind}")
    lines.append(f"```toml\n[tool.streamlint]\n{EXAMPLES[key]}\n```")
    return "\n\n".join(lines)


def _kind(key: str) -> str:
    if key in WORDS:
        return "one of " + ", ".join(f"`{word}`" for word in WORDS[key])
    if key in FLAGS:
        return "`true` or `false`"
    if key in PATHS or key == "extend":
        return "path"
    if key == "per-file-ignores":
        return "table of patterns and lists of rules"
    return "list of tables" if key == "models" else "list of strings"
