"""From files to studies: what is extended, what a scale changes, and errors that lead on."""

import pytest
import yaml
from tiny import TINY, write

from surefoot.errors import SurefootError
from surefoot.studies.cells import cells_of
from surefoot.studies.study_files import at_scale, merged, read_study


def test_extending_merges_options_and_replaces_grids(tmp_path):
    write(tmp_path, "parent", scales={"cpu": {"training": {"epochs": 7}, "seeds": 4}}, table={"columns": ["clean.ece"]})
    child = {"extends": "parent", "title": "Child", "methods": {"macs": "macs"}, "baseline": None, "training": {"epochs": 2}}
    (tmp_path / "child.yaml").write_text(yaml.safe_dump({**child, "scales": {"cpu": {"training": {"batch_size": 8}}}}))
    smoke, cpu = (read_study(str(tmp_path / "child.yaml"), scale) for scale in ("smoke", "cpu"))
    assert smoke.title == "Child"
    assert smoke.methods == {"macs": "macs"}
    assert smoke.training == {"epochs": 2, "batch_size": 64}
    assert smoke.table.columns == ("clean.ece",)
    assert (cpu.training, cpu.seeds) == ({"epochs": 7, "batch_size": 8}, 4)  # a scale's training stands alone


def test_options_of_a_scale_reach_measurements_that_are_there():
    given = {
        "measure": {"noise": {"draws": 9}, "hard": {"measurement": "noise", "levels": [50]}},
        "measure_options": {"noise": {"max_images": 5}, "attacks": {"max_images": 5}},
        "scales": {"cpu": {"measure_options": {"noise": {"draws": 2}}}},
    }
    assert at_scale(given, "cpu")["measure"] == {
        "noise": {"draws": 2, "max_images": 5},
        "hard": {"measurement": "noise", "levels": [50], "max_images": 5, "draws": 2},
    }


def test_merging_leaves_its_arguments_alone():
    base = {"training": {"epochs": 1}, "scales": {"cpu": {"training": {"epochs": 2}}}}
    merged(base, {"training": {"epochs": 5}, "scales": {"cpu": {"training": {"epochs": 6}}, "full": {"seeds": 1}}})
    assert base == {"training": {"epochs": 1}, "scales": {"cpu": {"training": {"epochs": 2}}}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metods": {}}, "Unknown key of study '.*' 'metods'. Did you mean 'methods'?"),
        ({"measure": {"claen": {}}}, "Unknown measurement 'claen'. Did you mean 'clean'?"),
        ({"measure": {"clean": {"bin": 3}}}, "Unknown option of measure.clean 'bin'. Did you mean 'bins'?"),
        ({"measure": {"clean": {"bins": "many"}}}, "measure.clean.bins: .*got 'many'"),
        ({"measure": {"clean": 3}}, "measure.clean: .*valid dictionary, got 3"),
        ({"baseline": "crossentropy"}, "Unknown baseline .* 'crossentropy'. Did you mean 'cross-entropy'?"),
        ({"seeds": 0}, "seeds: .*greater than or equal to 1, got 0"),
        ({"methods": {}}, "methods of study '.*' must be at least one"),
        ({"table": {"column": []}}, "Unknown key of the table .* 'column'. Did you mean 'columns'?"),
        ({"table": {"columns": ["cleen.accuracy"]}}, "Unknown measurement 'cleen'. Did you mean 'clean'?"),
        ({"table": {"across": "metod"}}, "Unknown axis 'metod'. Did you mean 'method'?"),
        ({"scales": {"cpuu": {}}}, "Unknown scale 'cpuu'. Did you mean 'cpu'?"),
        ({"training_of": {"tiny-resne": {}}}, "Unknown training_of .* 'tiny-resne'. Did you mean 'tiny-resnet'?"),
        ({"measure_options": {"claen": {}}}, "Unknown measurement .* 'claen'. Did you mean 'clean'?"),
        ({"measure_options": {"clean": 3}}, "measure_options of study '.*' must be options by measurement"),
        ({"objective_options": {"fokal": {}}}, "Unknown objective .* 'fokal'. Did you mean 'focal'?"),
        ({"models": 3}, "models: .*valid dictionary, got 3"),
        ({"scales": {"cpu": 3}}, "Scale 'cpu' of study '.*' must be a mapping, got 3"),
        ({"seeds_of": {"focal": 0}}, "seeds_of.focal: .*greater than or equal to 1, got 0"),
        ({"extends": "tiny"}, "Study '.*' extends itself"),
        ({"table": {"wins": "clean.acuracy"}}, "wins of study '.*' must be a metric that is better up or down"),
        ({"select": "clean.signed_error"}, "select of study '.*' must be a metric that is better up or down"),
        (
            {"published": [{"clean.accuracy": "high"}]},
            "published.clean.accuracy .* must be a number, or .mean, deviation., got",
        ),
        ({"select": "clean.accuracy"}, "it may measure on validation only, and 'clean' does not"),
    ],
)
def test_wrong_files_are_one_line_that_leads_on(tmp_path, changes, message):
    path = write(tmp_path, **changes)
    with pytest.raises(SurefootError, match=message) as error:
        read_study(str(path), "smoke")
    assert "\n" not in str(error.value)


def test_wrong_names(tmp_path):
    with pytest.raises(SurefootError, match="Unknown study 'macs-tabel1'. Did you mean 'macs-table1'?"):
        read_study("macs-tabel1", "smoke")
    with pytest.raises(SurefootError, match="Unknown scale 'huge'"):
        read_study("main", "huge")
    write(tmp_path)
    with pytest.raises(SurefootError, match="No study at '.*tinny.yaml'. Did you mean '.*tiny.yaml'?"):
        read_study(str(tmp_path / "tinny.yaml"), "smoke")
    (tmp_path / "broken.yaml").write_text("a: [")
    with pytest.raises(SurefootError, match="is not valid YAML"):
        read_study(str(tmp_path / "broken.yaml"), "smoke")


def test_missing_key(tmp_path):
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({key: value for key, value in TINY.items() if key != "measure"}))
    with pytest.raises(SurefootError, match="measure"):
        read_study(str(tmp_path / "a.yaml"), "smoke")


def test_a_method_without_a_name(tmp_path):
    with pytest.raises(SurefootError, match="objective must have a name, got {'gamma': 2}"):
        cells_of(read_study(str(write(tmp_path, methods={"a": {"gamma": 2}}, baseline=None)), "smoke"))


def test_a_child_without_scales_of_its_own(tmp_path):
    write(tmp_path, "parent", scales={"cpu": {"seeds": 4}}, training_of={"tiny-resnet": {"epochs": 9}})
    path = tmp_path / "child.yaml"
    path.write_text("extends: parent\nscales: null\nmodels: {other: tiny-resnet}\n")
    found = read_study(str(path), "cpu")
    assert (found.seeds, found.training_of) == (4, {})  # the parent's model is gone, and what was for it
