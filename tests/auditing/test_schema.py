"""`audit.json` keeps to the schema that is shipped, and files of earlier schemas are read as today's."""

import copy
import json
from pathlib import Path

import pytest
import torch
from jsonschema import Draft202012Validator

import surefoot as sf
from audit_schema import SHIPPED, faults
from surefoot.auditing.depths import DEPTHS
from surefoot.auditing.migration import LEFT_OUT, SCHEMA, STEPS, migrate
from surefoot.auditing.number_names import check_audit
from surefoot.auditing.schema import audit_schema
from surefoot.errors import SurefootError

EARLIER = sorted((Path(__file__).parent / "earlier").glob("schema-*.json"))  # of audits by the commits of their time


@pytest.fixture(scope="module")
def model(digits):
    """The nearest class mean, which is a linear layer and right far more often than an untrained net."""
    images, labels = digits.train.images.flatten(1).float() / 255, digits.train.labels
    means = torch.stack([images[labels == each].mean(0) for each in range(10)])
    layer = torch.nn.Linear(images.shape[1], 10)
    layer.weight.data, layer.bias.data = means, -means.square().sum(1) / 2
    return torch.nn.Sequential(torch.nn.Flatten(), layer).eval()


@pytest.fixture(scope="module")
def today(model, tmp_path_factory):
    """The same small audit as the earlier ones, in a folder."""
    data = sf.load_data("digits", max_images=60)
    cells = {"names": ("gaussian_noise", "fog"), "severities": (1, 3), "max_images": 60}
    attacks = {"names": ("fgsm",), "max_images": 20}
    depth = DEPTHS["clean"].having(corruptions=cells, attacks=attacks)
    depth = type(depth)("quick", depth.measure)
    folder = tmp_path_factory.mktemp("today")
    sf.audit(model, data, depth=depth, output=folder, progress=False)
    return folder


def test_the_shipped_schema_is_the_generated_one():
    """`python -m surefoot.auditing.schema` writes it."""
    Draft202012Validator.check_schema(SHIPPED)
    assert json.loads(json.dumps(audit_schema())) == SHIPPED


def test_audits_keep_to_it(today, model):
    """Standard and full audits are checked where other tests make them: test_table, test_full_geometry."""
    audit = json.loads((today / "audit.json").read_text())
    assert audit["schema"] == SCHEMA
    assert faults(audit) == []
    clean = sf.audit(model, sf.load_data("digits", max_images=60), depth="clean", progress=False)
    assert faults(clean.to_dict()) == []
    assert faults(sf.audit_predictions(clean.predictions).to_dict()) == []


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("calibration", "accuracy", "value"), 1.5, "$.calibration.accuracy.value: 1.5 is greater than the maximum"),
        (("calibration", "nll", "low"), -1.0, "is less than the minimum"),
        (("calibration", "own"), 1.0, "'own' was unexpected"),
        (("subject", "name"), 3, "$.subject.name: 3 is not of type 'string'"),
        (("schema",), 2, "$.schema: 3 was expected"),
        (("classes",), {}, "$.classes: {} is not of type 'array'"),
    ],
)
def test_what_is_wrong_is_named(today, path, value, said):
    audit = json.loads((today / "audit.json").read_text())
    part = audit
    for word in path[:-1]:
        part = part[word]
    part[path[-1]] = value
    (fault,) = faults(audit)
    assert said in fault


def test_every_schema_has_its_earlier_files():
    assert {json.loads(path.read_text())["schema"] for path in EARLIER} == set(STEPS) == set(range(1, SCHEMA))


@pytest.mark.parametrize("path", EARLIER, ids=lambda path: path.stem)
def test_earlier_files_are_read_as_todays(path):
    given = json.loads(path.read_text())
    before = copy.deepcopy(given)
    found = check_audit(path, given)
    assert given == before
    assert faults(found) == []
    assert found["calibration"].items() >= given["calibration"].items()
    assert found["subject"]["classes"] == given["subject"]["classes"]
    first = given["schema"] == 1
    assert (LEFT_OUT in found["subject"].get("notes", ())) == first
    assert bool(found.get("corruptions")) != first
    if not first:
        assert found["corruptions"]["cells"] == given["corruptions"]["cells"]
        assert found["attacks"]["fgsm"].items() >= given["attacks"]["fgsm"].items()


@pytest.mark.parametrize("path", EARLIER, ids=lambda path: path.stem)
def test_a_baseline_survives_an_update(surefoot, today, path):
    """The model of today is right more often than the untrained net of the earlier audits."""
    usual = surefoot("gate", today, "--baseline", path)
    assert (usual.code, usual.err) == (1, "")  # its confidence is another matter
    compared = 3 if "1-first" in path.stem else 4 if "1-last" in path.stem else 7
    assert len(usual.out.splitlines()) == compared + 1
    assert surefoot("gate", today, "--rule", f"accuracy: no worse than {path}").code == 0
    assert surefoot("gate", path, "--rule", f"accuracy: no worse than {today}").code == 1


def test_a_comparison_with_an_earlier_audit(surefoot, today):
    assert surefoot("compare", today, EARLIER[-1]).code == 0


@pytest.mark.parametrize("schema", [0, 4, True, 2.0, "2", None, [], {}])
def test_other_schemas_are_refused(schema):
    with pytest.raises(SurefootError, match=r"^'old.json' has schema .*, and this version reads 1 to 3\.$"):
        migrate("old.json", {"schema": schema})


@pytest.mark.parametrize("schema", STEPS)
@pytest.mark.parametrize("wrong", [3, "text", [], None, {"notes": 3}])
def test_parts_of_the_wrong_kind_are_no_crash(schema, wrong):
    parts = ("subject", "calibration", "corruptions", "attacks", "temperature", "geometry", "thresholds")
    assert migrate("old.json", {"schema": schema, **dict.fromkeys(parts, wrong)})["schema"] == SCHEMA
