"""The registry serves studies as it did: options, their errors, and functions of one's own."""

import pytest
import torch
from by_hand import row, study_context

from surefoot.errors import SurefootError
from surefoot.measurements.base import Own
from surefoot.measurements.registry import MEASUREMENTS, build, check_measure, default_options

PLAIN = (int, float, str, bool, tuple)


@pytest.mark.parametrize("name", MEASUREMENTS.names)
def test_every_measurement_has_options_with_defaults(name):
    given = {"surrogates": {"a": {}}} if name == "transfer" else {}
    assert check_measure(name, given)[0] == name
    assert all(value is None or isinstance(value, PLAIN) for value in default_options(name).values())


@pytest.mark.parametrize(
    ("label", "given", "message"),
    [
        ("claen", {}, "Unknown measurement 'claen'. Did you mean 'clean'?"),
        ("clean", {"bin": 3}, "Unknown option of measure.clean 'bin'. Did you mean 'bins'?"),
        ("clean", {"bins": "many"}, "measure.clean.bins: .*got 'many'"),
        ("clean", 3, "measure.clean must be a mapping of options, got 3"),
        ("corruptions", {"names": ["fogg"]}, "Unknown corruption 'fogg'. Did you mean 'fog'?"),
        ("hard", {"measurement": "corruptions", "names": ["fogg"]}, "Unknown corruption 'fogg'. Did you mean 'fog'?"),
        ("attacks", {"names": ["fgsn"]}, "Unknown attack 'fgsn'. Did you mean 'fgsm'?"),
        ("cosine-attacks", {"names": ["fgsn"]}, "Unknown attack 'fgsn'. Did you mean 'fgsm'?"),
        ("transfer", {"surrogates": {"a": {}}, "names": ["fgsn"]}, "Unknown attack 'fgsn'. Did you mean 'fgsm'?"),
        ("noise", {"distribution": "gausian"}, "Unknown distribution 'gausian'. Did you mean 'gaussian'?"),
    ],
)
def test_what_is_refused_before_anything_is_trained(label, given, message):
    with pytest.raises(SurefootError, match=message):
        check_measure(label, given)


def test_a_label_of_ones_own():
    assert check_measure("hard", {"measurement": "noise", "levels": [50]}) == (
        "noise",
        {"levels": [50], "distribution": "gaussian", "draws": 10, "max_images": None},
    )


@pytest.mark.parametrize("name", ["corruptions", "attacks", "cosine-attacks"])
def test_an_earlier_generator_can_be_shown(name):
    assert check_measure(name, {"generator": 1})[1]["generator"] == 1


@pytest.mark.parametrize("name", ["cone", "plane-start"])
def test_an_earlier_definition_is_not_computed(name):
    assert check_measure(name, {"version": 1})[1]["version"] == 1
    with pytest.raises(SurefootError, match="version must be 2, the cone index by the paper's steps, got 1"):
        build(name, {"version": 1})


def test_a_function_of_ones_own(run, digits, tmp_path, monkeypatch):
    (tmp_path / "own_ruler.py").write_text(
        "import torch\n"
        "def ruler(context, factor=2):\n    return {'count': factor * len(context.images), 'one': torch.tensor(1.5)}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    context = study_context(run, digits)
    found = row(context, "mine", measurement="own_ruler:ruler", factor=3)
    assert found == {"count": 3 * len(digits.test), "one": 1.5}


@pytest.mark.parametrize("given", [{"verdict": "good"}, 3, {"values": [1, 2]}, {"values": torch.ones(2)}])
def test_a_function_gives_numbers(given):
    with pytest.raises(SurefootError, match="Measurement '<lambda>' must give a dictionary of numbers, got"):
        Own(lambda context: given, {}).run(None)
