import pytest

from surefoot.errors import NotFound, SurefootError, UnknownName, nearest, require


def test_unknown_name_suggests_the_nearest():
    assert str(UnknownName("objective", "mcas", ["cross-entropy", "macs"])) == (
        "Unknown objective 'mcas'. Did you mean 'macs'?"
    )


def test_unknown_name_lists_what_there_is_when_nothing_is_near():
    assert str(UnknownName("split", "qqq", ["train", "test"])) == "Unknown split 'qqq'. Known: train, test."


def test_underscores_and_case_do_not_matter():
    assert nearest("Label_Smoothing", ["label-smoothing", "focal"]) == "label-smoothing"


def test_not_found_suggests_a_neighbour(tmp_path):
    (tmp_path / "recipe.yaml").touch()
    assert "Did you mean" in str(NotFound("recipe", tmp_path / "recpie.yaml"))
    assert str(NotFound("recipe", "nowhere/x.yaml")) == "No recipe at 'nowhere/x.yaml'."


def test_a_suggestion_never_repeats_what_was_typed(tmp_path):
    """A file where a folder is wanted is there, and yet not what was asked for."""
    (tmp_path / "r20.onnx").touch()
    assert str(NotFound("run folder", tmp_path / "r20.onnx")) == f"No run folder at '{tmp_path / 'r20.onnx'}'."
    assert nearest("crane", ["crane", "crane (2)"]) == "crane (2)"
    assert nearest("PGD", ["pgd"]) == "pgd"


def test_require_names_argument_rule_and_value():
    with pytest.raises(SurefootError, match=r"^gamma must be at least 0, got -1\.$"):
        require(False, "gamma", "at least 0", -1)
