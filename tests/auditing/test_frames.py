"""An audit in a notebook."""

import small_audits as small
from surefoot.auditing.frames import as_dataframe, as_html


def test_an_attack_without_a_success_rate_is_shown_as_none():
    audit = small.audit()
    audit["attacks"]["pgd-weak"]["success_rate"] = {"value": None, "low": None, "high": None}
    assert "pgd-weak success</td><td>-</td><td>- to -</td>" in as_html(audit)
    assert "attacks.pgd-weak.success_rate" not in set(as_dataframe(audit)["name"])
