"""What a release says of itself."""

import re
from pathlib import Path

import yaml

from surefoot.version import VERSION

ROOT = Path(__file__).parent.parent
PAPERS = {"macs": 1, "magnma": 2, "discriminative-noise": 6, "representation-space": 1}  # and how many authors they have


def test_the_citation_has_the_version_and_the_four_papers():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == VERSION
    found = {re.search(r"Called ([a-z-]+) here", paper["notes"])[1]: len(paper["authors"]) for paper in cited["references"]}
    assert found == PAPERS


def test_changes_have_the_form_of_keep_a_changelog():
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    versions = [line for line in lines if line.startswith("## ")]
    assert versions[0] == "## [Unreleased]"
    assert all(re.fullmatch(r"## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", line) for line in versions[1:])
    kinds = {line.removeprefix("### ") for line in lines if line.startswith("### ")}
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert "Added" in kinds
