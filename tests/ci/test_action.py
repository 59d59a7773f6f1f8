"""The GitHub action and the examples of docs/ci: their shell is run here, in real repositories, with what a runner would set."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
EXAMPLES = ROOT / "docs" / "ci"
COMMAND = Path(sys.executable).with_name("streamlint")
RACE = 'import torch\n\n\ndef {name}(scores):\n    host = scores.to("cpu", non_blocking=True)\n    return host.numpy()\n'


def step(name: str) -> dict:
    (found,) = (step for step in STEPS if step.get("name") == name)
    return found


class Runner:
    """A runner's folders and files, and a way to run a step of the action."""

    def __init__(self, folder: Path) -> None:
        self.temp = folder / "temp"
        self.bin = self.temp / "streamlint" / "bin"
        self.bin.mkdir(parents=True)
        (self.bin / "streamlint").symlink_to(COMMAND)
        self.output, self.summary = folder / "output", folder / "summary"

    def run(self, name: str, where: Path, event: dict[str, str] | None = None, **inputs: str) -> subprocess.CompletedProcess[str]:
        self.output.write_text("")
        self.summary.write_text("")
        values = {key: str(value.get("default", "")) for key, value in ACTION["inputs"].items()}
        values |= {key.replace("_", "-"): value for key, value in inputs.items()}
        named = {f"inputs.{key}": value for key, value in values.items()} | {"steps.install.outputs.bin": str(self.bin)} | (event or {})
        env = {key: re.sub(r"\$\{\{ (\S+) \}\}", lambda found: named.get(found[1], ""), value) for key, value in step(name)["env"].items()}
        runner = {"RUNNER_TEMP": str(self.temp), "GITHUB_OUTPUT": str(self.output), "GITHUB_STEP_SUMMARY": str(self.summary)}
        known = {"PATH": os.environ["PATH"], "HOME": str(self.temp), "GIT_CONFIG_NOSYSTEM": "1", "GITHUB_ACTIONS": "true"}
        # As GitHub runs `shell: bash`.
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step(name)["run"]]
        return subprocess.run(shell, cwd=where, env=known | runner | env, capture_output=True, text=True, timeout=120)

    @property
    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.output.read_text().splitlines())

    def found(self) -> list[str]:
        """The files of what the last run wrote as SARIF."""
        (run,) = json.loads(Path(self.outputs["sarif-file"]).read_text())["runs"]
        return [row["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for row in run["results"] if not row.get("suppressions")]


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def git(where: Path, *words: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]
    return subprocess.run(["git", *identity, *words], cwd=where, check=True, capture_output=True, text=True).stdout.strip()


def commit(where: Path, name: str, text: str) -> str:
    path = where / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    git(where, "add", "-A")
    git(where, "commit", "-q", "-m", name)
    return git(where, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one finding."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "src/old.py", RACE.format(name="old"))
    return folder


@pytest.fixture
def request_(repository: Path) -> tuple[Path, str]:
    """A pull request: its merge into a main that went on, and the base's commit that the event names, which is older."""
    named = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "-b", "topic")
    commit(repository, "src/new.py", RACE.format(name="new"))
    git(repository, "checkout", "-q", "main")
    commit(repository, "src/meanwhile.py", RACE.format(name="meanwhile"))
    git(repository, "checkout", "-q", "-b", "merge")
    git(repository, "merge", "-q", "--no-ff", "-m", "merge", "topic")
    return repository, named


# Linting ----------------------------------------------------------------------------------------------------------------------


def test_findings_are_told_everywhere(runner, repository):
    done = runner.run("Lint", repository)
    assert done.returncode == 0, done.stderr
    assert re.match(r"::error title=.*file=src/old.py,line=6,", done.stdout)
    assert "1 finding" in done.stderr
    assert (runner.outputs["exit-code"], runner.outputs["findings"]) == ("1", "1")
    assert runner.found() == ["src/old.py"]
    assert "d2h-read-before-sync" in runner.summary.read_text()


def test_nothing_is_found(runner, repository):
    done = runner.run("Lint", repository, args="--ignore SL005")
    assert (done.returncode, done.stdout) == (0, "")
    assert (runner.outputs["exit-code"], runner.outputs["findings"], runner.found()) == ("0", "0", [])


def test_without_annotations_and_summary(runner, repository):
    done = runner.run("Lint", repository, annotations="false", summary="false")
    assert done.stdout.startswith("error: d2h-read-before-sync [SL005]")
    assert runner.summary.read_text() == ""


def test_paths_and_options_are_words_of_a_shell_that_runs_nothing(runner, repository):
    commit(repository, "my files/a.py", RACE.format(name="spaced"))
    done = runner.run("Lint", repository, paths='"my files" $(touch run)', args="--ignore 'SL002'")
    assert runner.outputs["exit-code"] == "2"
    assert "no such file or folder" in done.stderr
    assert not (repository / "run").exists()
    runner.run("Lint", repository, paths='"my files"')
    assert runner.found() == ["my%20files/a.py"]


def test_a_baseline(runner, repository):
    subprocess.run([COMMAND, "check", "--write-baseline", "known.json"], cwd=repository, check=True, capture_output=True)
    runner.run("Lint", repository, baseline="known.json")
    assert (runner.outputs["exit-code"], runner.found()) == ("0", [])


def test_a_wrong_option_is_a_failure(runner, repository):
    done = runner.run("Lint", repository, args="--selct SL001")
    assert (done.returncode, runner.outputs) == (0, {"exit-code": "2", "findings": "0"})
    assert "did you mean" in done.stderr


# Changed lines ----------------------------------------------------------------------------------------------------------------

BASE = "github.event.pull_request.base.sha"


def test_a_request_in_a_shallow_clone(runner, request_, tmp_path):
    repository, named = request_
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=1", "--branch=merge", repository.as_uri(), str(clone))
    done = runner.run("Lint", clone, {BASE: named}, changed_lines_only="true")
    assert done.returncode == 0, done.stderr
    assert (runner.found(), runner.outputs["exit-code"]) == (["src/new.py"], "1")


def test_a_request_whose_branch_is_checked_out(runner, request_):
    repository, _ = request_
    git(repository, "checkout", "-q", "topic")
    runner.run("Lint", repository, {BASE: git(repository, "rev-parse", "main")}, changed_lines_only="true")
    assert runner.found() == ["src/new.py"]


def test_elsewhere_all_are_told(runner, request_):
    repository, _ = request_
    runner.run("Lint", repository, changed_lines_only="true")
    assert runner.found() == ["src/meanwhile.py", "src/new.py", "src/old.py"]


def test_since_a_revision(runner, request_):
    repository, named = request_
    runner.run("Lint", repository, since=named)
    assert runner.found() == ["src/meanwhile.py", "src/new.py"]


# The steps around -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "wanted"), [("", str(ROOT)), ("0.1.0", "streamlint==0.1.0")])
def test_what_is_installed(runner, tmp_path, monkeypatch, version, wanted):
    """With a Python that notes what it is asked for."""
    fake = tmp_path / "fake"
    fake.mkdir()
    (fake / "python3").write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/asked"\n')
    (fake / "python3").chmod(0o755)
    (runner.bin / "python").symlink_to(fake / "python3")
    monkeypatch.setenv("PATH", f"{fake}:{os.environ['PATH']}")
    done = runner.run("Install streamlint", tmp_path, {"github.action_path": str(ROOT)}, version=version)
    assert done.returncode == 0, done.stderr
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[0] == f"-m venv {runner.temp}/streamlint"
    assert asked[1].startswith("-m pip install ")
    assert asked[1].endswith(f" {wanted}")
    assert runner.outputs == {"bin": str(runner.bin)}
    assert done.stdout.startswith("streamlint ")


@pytest.mark.parametrize(
    ("code", "fail", "ends"), [("0", "true", 0), ("1", "true", 1), ("1", "false", 0), ("2", "false", 2), ("2", "true", 2), ("", "false", 2)]
)
def test_the_result_comes_last(runner, tmp_path, code, fail, ends):
    done = runner.run("Result", tmp_path, {"steps.lint.outputs.exit-code": code}, fail=fail)
    assert done.returncode == ends


def test_the_upload_comes_before_the_failure():
    names = [step.get("name") for step in STEPS]
    assert names.index("Lint") < names.index("Upload to code scanning") < names.index("Result")
    assert step("Upload to code scanning")["if"].startswith("always() && inputs.sarif == 'true'")
    assert step("Result")["if"] == "always()"


def test_inputs_reach_the_shell_through_the_environment_alone():
    workflows = [job for path in sorted(EXAMPLES.glob("github*.yml")) for job in example(path.name)["jobs"].values()]
    assert not any("${{" in step.get("run", "") for step in (*STEPS, *(step for job in workflows for step in job["steps"])))
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(ACTION["inputs"])


PIN = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
OWN = "uses: streamlint/streamlint@v"


@pytest.mark.parametrize("path", [ROOT / "action.yml", *sorted(EXAMPLES.glob("github*.yml"))], ids=lambda path: path.name)
def test_what_is_used_of_others_is_pinned_by_commit(path):
    """One commit for each action, wherever it is used; its version stands beside it."""
    used = [line.strip().removeprefix("- ") for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert used
    assert [line for line in used if not PIN.match(line) and not line.startswith(OWN)] == []


def test_one_pin_for_each_action():
    paths = [ROOT / "action.yml", *EXAMPLES.glob("github*.yml")]
    pins = {tuple(line.split("uses: ")[1].split("@")) for path in paths for line in path.read_text().splitlines() if PIN.search(line)}
    assert sorted(action for action, _ in pins) == sorted({action for action, _ in pins})


def test_no_checkout_leaves_its_token_behind():
    steps = [step for path in EXAMPLES.glob("github*.yml") for job in example(path.name)["jobs"].values() for step in job["steps"]]
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert len(checkouts) == 4
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


# Examples ---------------------------------------------------------------------------------------------------------------------


def example(name: str) -> dict:
    return yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))


def test_the_example_for_github_gives_inputs_that_there_are():
    (job,) = example("github.yml")["jobs"].values()
    (used,) = (step for step in job["steps"] if "streamlint" in step["uses"])
    assert set(used["with"]) <= set(ACTION["inputs"])


@pytest.mark.parametrize("name", ["gitlab.yml", "gitlab-changed-lines.yml"])
def test_the_examples_for_gitlab_write_their_report(request_, name):
    repository, named = request_
    job = example(name)["streamlint"]
    (script,) = job["script"]
    env = {"PATH": f"{COMMAND.parent}:{os.environ['PATH']}", "HOME": str(repository), "CI_MERGE_REQUEST_DIFF_BASE_SHA": named}
    done = subprocess.run(["bash", "-c", script], cwd=repository, env=env, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    rows = json.loads((repository / job["artifacts"]["reports"]["codequality"]).read_text())
    assert len(rows) == {"gitlab.yml": 3, "gitlab-changed-lines.yml": 2}[name]
    assert len({row["fingerprint"] for row in rows}) == len(rows)


def test_the_example_for_azure_tells_issues_and_writes_sarif(repository):
    (command,) = (step["script"] for step in example("azure.yml")["steps"] if "streamlint check" in step.get("script", ""))
    env = {"PATH": f"{COMMAND.parent}:{os.environ['PATH']}", "HOME": str(repository), "PYTHONPATH": str(ROOT)}
    command = command.replace("$(Build.ArtifactStagingDirectory)", str(repository))
    done = subprocess.run(["bash", "-c", command], cwd=repository, env=env, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("##vso[task.logissue type=error;sourcepath=src/old.py;linenumber=6;columnnumber=")
    assert json.loads((repository / "streamlint.sarif").read_text())["runs"][0]["results"]


def test_the_tests_run_on_the_pythons_and_systems_that_are_promised():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    matrix = example("github-tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)
    assert len(matrix["os"]) == len(re.findall(r'"Operating System :: ', text)) == len(matrix["include"])
    folders = [folder for row in matrix["include"] for folder in row["tests"].split()]
    assert all((ROOT / folder).is_dir() for folder in folders)


def test_the_example_for_pre_commit_names_hooks_that_there_are():
    hooks = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert {hook["id"] for repo in example("pre-commit.yml")["repos"] for hook in repo["hooks"]} <= hooks


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ("vendor.github-actions", "action.yml"),
        ("vendor.github-workflows", "docs/ci/github.yml"),
        ("vendor.github-workflows", "docs/ci/github-verify.yml"),
        ("vendor.github-workflows", "docs/ci/github-tests.yml"),
        ("vendor.azure-pipelines", "docs/ci/azure.yml"),
        ("vendor.gitlab-ci", "docs/ci/gitlab.yml"),
        ("vendor.gitlab-ci", "docs/ci/gitlab-changed-lines.yml"),
        ("vendor.readthedocs", ".readthedocs.yaml"),
    ],
)
def test_files_fit_their_published_schemas(schema, path):
    pytest.importorskip("check_jsonschema", reason="the extra dev brings it")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, "--regex-variant", "python", str(ROOT / path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_container_copies_what_there_is_and_runs_the_command():
    lines = re.sub(r"\\\n", "", (ROOT / "Containerfile").read_text(encoding="utf-8")).splitlines()
    copied = [word for line in lines if line.startswith("COPY ") for word in shlex.split(line)[1:-1]]
    assert {"pyproject.toml", "streamlint"} <= set(copied)
    assert all((ROOT / name).exists() for name in copied)
    kinds = [line.split()[0] for line in lines if line and not line.startswith(("#", " "))]
    assert kinds.index("USER") < kinds.index("ENTRYPOINT")
    assert 'ENTRYPOINT ["streamlint"]' in lines
    assert any("[cuda13]" in line for line in lines if line.startswith("RUN "))
