"""`surefoot gate`: exit codes, rules from a file and from the command line, where a baseline is looked for."""

import json
from xml.etree import ElementTree

import pytest

import small_audits as small


@pytest.fixture
def folder(here):
    return small.write(here / "a", small.audit("mine"))


def test_exit_codes_and_formats(surefoot, folder, here):
    (here / "rules.yaml").write_text("- ece < 0.03\n- corruptions.mean_accuracy > 0.6\n")
    kept = surefoot("gate", "a/audit.json", "--rules", "rules.yaml")
    assert (kept.code, kept.err) == (0, "")
    assert kept.out.endswith("mine: all 2 rules hold\n")
    broken = surefoot("gate", "a", "--rules", "rules.yaml", "--rule", "ece < 0.01", "--rule", "accuracy > 0.95")
    assert broken.code == 1
    assert broken.out.count("BROKEN") == 2
    junit = surefoot("gate", "a", "--rule", "ece < 0.01", "--format", "junit", "--output", "out/gate.xml", "--quiet")
    assert (junit.code, junit.out) == (1, "")
    assert ElementTree.parse(here / "out" / "gate.xml").getroot().attrib["failures"] == "1"
    assert "| **broken** |" in surefoot("gate", "a", "--rule", "ece < 0.01", "--format", "markdown").out
    assert surefoot("gate", "a", "--rule", "ece < 0.025", "--cautious").code == 1


def test_a_baseline_is_looked_for_beside_the_rules_and_then_from_here(surefoot, folder, here):
    (here / "ci").mkdir()
    (here / "ci" / "base.json").write_text(json.dumps(small.audit(accuracy=0.95)))
    (here / "ci" / "rules.yaml").write_text("rules:\n  - accuracy: no worse than base.json by 0.01\n")
    assert surefoot("gate", "a", "--rules", "ci/rules.yaml").code == 1
    assert surefoot("gate", "a", "--rule", "accuracy: no worse than ci/base.json by 0.06").code == 0
    (here / "base.json").write_text(json.dumps(small.audit()))
    (here / "ci" / "base.json").unlink()
    assert surefoot("gate", "a", "--rules", "ci/rules.yaml").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give --rules FILE, --rule 'NAME < NUMBER' or --baseline FILE."),
        (["--rules", "no.yaml"], "No rules at 'no.yaml'."),
        (["--rules", "bad.yaml"], "rules 'bad.yaml' are not valid YAML"),
        (["--rule", "eec < 1"], "Unknown number 'eec'. Did you mean 'ece'?"),
        (["--rule", "attacks.pgd-strong.success_rate < 1"], "surefoot audit --depth standard does."),
        (["--rule", "no worse than none.json"], "No audit at 'none.json'."),
        (["--rule", "no worse than old.json"], "has schema 0, and this version reads 1 to 3."),
        (["--rule", "ece < 1", "--format", "xml"], "Unknown format 'xml'."),
    ],
)
def test_errors_are_one_line_and_exit_2(surefoot, folder, here, arguments, message):
    (here / "bad.yaml").write_text("- [")
    (here / "old.json").write_text(json.dumps({"schema": 0}))
    found = surefoot("gate", "a", *arguments)
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert message in found.err


def test_a_folder_without_an_audit(surefoot, here):
    (here / "audits.json").touch()  # no neighbour is guessed at
    assert surefoot("gate", ".", "--rule", "ece < 1").err == "surefoot: '.' has no audit.json: surefoot audit writes it.\n"
