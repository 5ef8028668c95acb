"""`surefoot train`: options in either spelling."""


def test_the_american_spelling(surefoot, here):
    """As a flag, an option, in a recipe and in Python; both at once is one too many."""
    common = ("train", "--data", "digits", "--model", "tiny-resnet", "--epochs", 1, "--fraction", 0.2, "--quiet")
    flagged = surefoot(*common, "--optimizer", "adam", "--learning-rate", "0.001", "--output", "flag")
    assert flagged.code == 0, flagged.err
    text = (here / "flag" / "recipe.yaml").read_text()
    assert "optimiser: adam" in text
    (here / "american.yaml").write_text(text.replace("optimiser:", "optimizer:"))
    again = surefoot("train", "--recipe", "american.yaml", "--output", "again", "--quiet")
    assert again.code == 0, again.err
    assert (here / "again" / "model.safetensors").read_bytes() == (here / "flag" / "model.safetensors").read_bytes()
    both = surefoot(*common, "--set", "training.optimizer=adam", "--set", "training.optimiser=sgd", "--output", "both")
    assert both.code == 2
    assert "optimizer and optimiser are the same option: give one of them." in both.err
