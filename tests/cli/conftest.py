"""Commands are tested on a quick audit that is quicker still."""

from dataclasses import replace

import pytest

from surefoot.auditing import depths


@pytest.fixture(autouse=True)
def quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = depths.DEPTHS["quick"]
    few = {"corruption_images": 40, "attack_images": 30, "geometry_images": 20, "curvature_draws": 2}
    chosen = {"corruptions": ("gaussian_noise", "gaussian_blur", "contrast"), "severities": (1, 3, 5), "attacks": ("fgsm",)}
    monkeypatch.setitem(depths.DEPTHS, "quick", replace(quick, **few, **chosen))
