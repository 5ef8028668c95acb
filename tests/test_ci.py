"""What people's CI is given: the steps of the action, of the hook and of the examples, run here as they are."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

import small_audits
import surefoot

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
EXPRESSION = re.compile(r"\$\{\{ *([\w.]+) *\}\}")


@pytest.fixture
def place(here):
    """A folder with an audit, rules and the command."""
    small_audits.write(here / "audits" / "new", small_audits.audit("mine"))
    small_audits.write(here / "old one", small_audits.audit("old", accuracy=0.85))
    (here / "rules.yaml").write_text("- ece < 0.03\n")
    command = here / "bin" / "surefoot"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m surefoot "$@"\n')
    command.chmod(0o755)
    return here


def run_script(place, script, shell=("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"), **environment):
    """As a runner does it."""
    own = {"PATH": f"{place / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(Path(surefoot.__file__).parent.parent)}
    return subprocess.run([*shell, script], cwd=place, env=os.environ | own | environment, capture_output=True, text=True)


def use_action(place, **inputs):
    """The steps of the composite action in their order, with the inputs put in; what they say, and the files of the job."""
    assert set(inputs) <= set(ACTION["inputs"])
    known = {f"inputs.{name}": inputs.get(name, each.get("default")) for name, each in ACTION["inputs"].items()}
    job = {name: str(place / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    for name in job:
        (place / name).write_text("")
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert not EXPRESSION.search(step["run"])  # an input inside a script would be run
        given = {name: EXPRESSION.sub(lambda match: known[match[1]], value) for name, value in step["env"].items()}
        done = run_script(place, step["run"], **given, **job)
        if done.returncode:
            break
    return done, (place / "GITHUB_STEP_SUMMARY").read_text(), (place / "GITHUB_OUTPUT").read_text()


def test_the_action_judges_and_writes_its_summary(place):
    rules = "accuracy > 0.8\ncorruptions.mean_accuracy > 0.6\n"
    done, summary, output = use_action(
        place, audit="audits/new", rules="rules.yaml", rule=rules, baseline="old one", junit="gate.xml", install="none"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert summary == done.stdout
    assert summary.startswith("### `mine`: all 10 rules hold\n")
    assert output == "holds=true\n"
    assert ElementTree.parse(place / "gate.xml").getroot().attrib["tests"] == "10"
    assert not (place / "gate.md").exists()


def test_the_action_fails_where_a_rule_is_broken_or_cannot_be_used(place):
    done, summary, output = use_action(place, audit="audits/new", rule="ece < 0.025", cautious="true", install="none")
    assert (done.returncode, output) == (1, "holds=false\n")
    assert "| **broken** | `ece < 0.025` |" in summary
    wrong = "$(touch made) `touch made` ; touch made"
    done, summary, output = use_action(place, audit="audits/new", rule=wrong, junit="gate.xml", install="none")
    assert (done.returncode, summary, output) == (2, "", "")
    assert "must be NAME < NUMBER" in done.stderr
    assert not (place / "made").exists()


def test_the_action_has_what_github_asks_of_one():
    assert ACTION["runs"]["using"] == "composite"
    assert {"name", "description"} <= set(ACTION)
    assert all(("description" in each and "default" in each) or each["required"] for each in ACTION["inputs"].values())
    assert [step["name"] for step in ACTION["runs"]["steps"]] == ["Install Surefoot", "Judge the audit"]
    assert ACTION["inputs"]["install"]["default"] == "${{ github.action_path }}"


def test_the_hook_by_pre_commit_itself(place):
    """The hook of the manifest in a repository that is committed to; the command is the one that is installed here."""
    git = "git -c user.name=a -c user.email=a@b.c -c init.defaultBranch=main"
    manifest = shlex.quote(str(ROOT / ".pre-commit-hooks.yaml"))
    theirs = f"mkdir theirs && cp {manifest} theirs/ && cd theirs && {git} init -q && git add -A && {git} commit -qm hooks"
    revision = run_script(place, f"{git} init -q && {theirs} && git rev-parse HEAD").stdout.strip()
    hook = {"id": "surefoot-gate", "language": "system", "args": ["audits/new", "--rule", "ece < 0.03"]}

    def committed():
        config = {"repos": [{"repo": str(place / "theirs"), "rev": revision, "hooks": [hook]}]}
        (place / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
        run = f"git add .pre-commit-config.yaml audits && {shlex.quote(sys.executable)} -m pre_commit run --color never"
        return run_script(place, run, PRE_COMMIT_HOME=str(place / "hooks"))

    kept = committed()
    assert (kept.returncode, "Passed" in kept.stdout) == (0, True), kept
    hook["args"][-1] = "ece < 0.01"
    broken = committed()
    assert broken.returncode == 1
    assert "BROKEN  ece < 0.01: calibration.ece < 0.01, found 0.02" in broken.stdout


def test_the_examples_for_gitlab_and_for_a_plain_shell(place, run):
    """One audit serves both: the second finds it finished."""
    given = {"RUN": str(run.folder), "DEPTH": "clean", "RULES": "rules.yaml"}
    (place / "rules.yaml").write_text("- accuracy > 0\n")
    (place / "audits" / "new" / "audit.json").unlink()
    done = run_script(place, (ROOT / "examples" / "ci" / "gate.sh").read_text(), shell=("sh", "-c"), **given)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(": all 1 rules hold\n")
    (place / "rules.yaml").write_text("- accuracy > 1\n")
    job = yaml.safe_load((ROOT / "examples" / "ci" / "gitlab.yml").read_text())["model"]
    assert set(job["variables"]) == set(given)
    install, *script = job["script"]
    assert install == "pip install surefoot"
    done = run_script(place, "\n".join(script), **given)
    assert done.returncode == 1
    assert ElementTree.parse(place / job["artifacts"]["reports"]["junit"]).getroot().attrib["failures"] == "1"
