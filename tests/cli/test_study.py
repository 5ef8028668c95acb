"""`surefoot study` as people type it."""

import json

import pytest
import yaml

from surefoot.cli.study import command_of

TINY = {
    "title": "Tiny",
    "methods": {"cross-entropy": "cross-entropy", "focal": "focal"},
    "models": {"tiny-resnet": "tiny-resnet"},
    "data": {"digits": {"name": "digits", "fraction": 0.2, "max_images": 60}},
    "seeds": 2,
    "training": {"epochs": 1, "batch_size": 64},
    "baseline": "cross-entropy",
    "measure": {"clean": {}},
    "table": {"columns": ["clean.accuracy", "clean.nll"], "wins": "clean.accuracy"},
}


@pytest.fixture
def tiny(here):
    (here / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    return here / "tiny.yaml"


def test_list(surefoot):
    shown = surefoot("study", "list")
    assert shown.code == 0
    assert "macs-table1 " in shown.out
    found = json.loads(surefoot("study", "list", "--json").out)
    assert found["magnma-table3"]["place"] == "Table 3"
    assert list(found).index("macs-table9") < list(found).index("macs-table10")


def test_run_show_and_status(surefoot, tiny, here):
    """A study of one's own, in this process: run a part, see what is left, run the rest, show it in every format."""
    place = ("--results", "out/results", "--engine", "here")
    first = surefoot("study", "run", tiny, "--only", "objective=ce", "--seeds", 1, *place)
    assert first.code == 0
    assert "| cross-entropy |" in first.out
    assert "focal" not in first.out
    kept = (here / "out" / "results" / "tiny.md").read_text()  # the file is of the whole study, with the command for it
    assert kept.splitlines()[0].endswith("tiny.yaml --scale smoke --seeds 1 --jobs 1 --results out/results")
    assert "| focal |" in kept
    assert "1 of 2 cells are finished" in kept
    rows = json.loads(surefoot("study", "status", tiny, "--results", "out/results", "--json").out)
    assert [row["state"] for row in rows] == ["finished", "to do", "to do", "to do"]
    assert (rows[0]["epochs"], rows[0]["left"], rows[1]["left"]) == (rows[0]["of"], [], ["clean"])
    history = here / "out" / ".study-work" / "runs" / rows[1]["cell"] / "history.jsonl"
    history.parent.mkdir(parents=True)
    history.write_text("")  # a training that was stopped in its first epoch is still to do
    assert surefoot("study", "status", tiny, "--results", "out/results").out.splitlines()[1].split()[1:3] == ["to", "do"]
    history.parent.rename(here / "elsewhere")
    record = here / "out" / "results" / "cells" / f"{rows[0]['cell']}.json"
    finished = record.read_text()
    record.write_text(json.dumps({**json.loads(finished), "measurements": {}}))
    begun = surefoot("study", "status", tiny, "--results", "out/results").out.splitlines()[0]
    assert begun.endswith("cross-entropy seed 0: trained; left: clean")
    record.write_text(finished)
    whole = surefoot("study", "run", tiny, *place)
    assert "4 cells, 1 finished before, 3 to do" in whole.err
    assert "Differences from cross-entropy, paired over seeds" in whole.out
    assert "in so many of 1 configuration:" in whole.out
    assert surefoot("study", "show", tiny, "--results", "out/results").out == whole.out
    assert "4 of 4 cells are finished" in surefoot("study", "status", tiny, "--results", "out/results").out
    assert sorted(path.name for path in (here / "out" / "results").iterdir()) == ["cells", "tiny.csv", "tiny.md", "tiny.tex"]
    assert (here / "out" / "results" / "tiny.md").read_text().endswith(whole.out)
    assert r"\toprule" in surefoot("study", "show", tiny, "--results", "out/results", "--format", "latex").out
    drawn = surefoot("study", "show", tiny, "--results", "out/results", "--page", "table.html")
    assert drawn.out.endswith("page: table.html\n")
    assert "Surefoot study" in (here / "table.html").read_text()
    both = ("--only", "objective=ce", "--only", "method=focal")
    assert surefoot("study", "show", tiny, "--results", "out/results", *both).out == whole.out
    assert (here / "out" / ".study-work" / ".gitignore").read_text() == "*\n"


def test_a_failed_cell_ends_with_one(surefoot, here, monkeypatch):
    (here / "failing.py").write_text("def ruler(subject):\n    raise ValueError('no ruler')\n")
    monkeypatch.syspath_prepend(here)
    broken = {**TINY, "measure": {"clean": {}, "ruler": {"measurement": "failing:ruler"}}, "seeds": 1}
    (here / "broken.yaml").write_text(yaml.safe_dump(broken))
    done = surefoot("study", "run", "broken.yaml", "--allow-code", "--results", "out/results", "--engine", "here")
    assert done.code == 1
    assert "ValueError: no ruler" in done.err
    assert "| focal |" in done.out


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": {"bad": {"name": "focal", "gamma": -1}}}, "Method 'bad': gamma must be at least 0, got -1.0."),
        ({"methods": {"bad": {"name": "macs", "view": "blurr"}}}, "Method 'bad': Unknown view 'blurr'. Did you mean 'blur'?"),
        ({"measure": {"corruptions": {"names": ["fogg"]}}}, "Unknown corruption 'fogg'. Did you mean 'fog'?"),
        ({"measure": {"attacks": {"names": ["fgsn"]}}}, "Unknown attack 'fgsn'. Did you mean 'fgsm'?"),
    ],
)
def test_what_cannot_work_is_told_before_anything_is_trained(surefoot, here, changes, message):
    columns = {"table": {}, "baseline": None}
    (here / "wrong.yaml").write_text(yaml.safe_dump({**TINY, **columns, **changes}))
    done = surefoot("study", "run", "wrong.yaml", "--results", "out", "--engine", "here")
    assert (done.code, done.err) == (2, f"surefoot: {message}\n")
    assert not (here / "out").exists()


def test_a_misspelt_column_and_a_part_without_its_baseline(surefoot, here):
    """The nearest metric is named; differences are from the baseline of the whole study; a method goes by its objective too."""
    own = {"methods": {"cross-entropy": "cross-entropy", "mine": {"name": "focal", "gamma": 3}}}
    (here / "own.yaml").write_text(yaml.safe_dump({**TINY, **own, "table": {"columns": ["clean.accuracy", "clean.eec"]}}))
    place = ("--results", "out/results")
    assert surefoot("study", "run", "own.yaml", *place, "--engine", "here").code == 0
    shown = surefoot("study", "show", "own.yaml", *place, "--only", "objective=focal").out
    assert "No cell has clean.eec (did you mean clean.ece?)." in shown
    assert "| mine | 2 | " in shown  # two paired seeds
    assert "| cross-entropy |" not in shown
    assert "Setting: data digits (fraction 0.2, max images 60), model tiny-resnet, 1 epoch." in shown


def test_hyperparameters(surefoot, here):
    """The shipped search, on another objective, ends with a choice on validation."""
    flags = ("--objective", "focal", "--grid", "gamma=1,3", "--seeds", 1, "--results", "out/results", "--engine", "here")
    done = surefoot("study", "run", "hyperparameters", *flags)
    assert done.code == 0
    assert "| focal gamma=1 |" in done.out
    assert "Chosen on validation by validation.accuracy: focal gamma=" in done.out
    assert ", one seed, which cannot tell it from noise)." in done.out
    assert (here / "out" / "results" / "hyperparameters-focal.md").is_file()
    shown = surefoot("study", "show", "hyperparameters", *flags[:-2])
    assert shown.out == done.out
    assert surefoot("study", "show", "hyperparameters", *flags[:-2], "--page", "page.html").code == 0
    assert "--objective focal --grid gamma=1,3" in (here / "page.html").read_text()


def test_names_with_commas(surefoot, here):
    """As the methods of magnma Table 5."""
    (here / "none").mkdir()
    flags = ("--only", "method=(0.2, 0.3, 0.2, 1),(0.1, 0, 0.2, 1)", "--seeds", 1)
    shown = surefoot("study", "show", "magnma-table5", "--results", "none", *flags)
    assert shown.code == 0
    assert [row.split(" | ")[0] for row in shown.out.splitlines()[4:6]] == ["| (0.1, 0, 0.2, 1)", "| (0.2, 0.3, 0.2, 1)"]


def test_a_search_without_results_says_so(surefoot, here):
    (here / "none").mkdir()
    shown = surefoot("study", "show", "hyperparameters", "--results", "none")
    assert "Chosen on validation by validation.accuracy: nothing yet." in shown.out


def test_a_command_is_quoted_for_the_shell():
    flags = {"only": ["objective=a b", "seed=1"], "seeds": None, "results": "my results"}
    words = "--only 'objective=a b' --only seed=1 --results 'my results'"
    assert command_of("own study.yaml", flags) == f"surefoot study run 'own study.yaml' {words}"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("macs-tabel1",), "Unknown study 'macs-tabel1'. Did you mean 'macs-table1'?"),
        (("main", "--scale", "cpu"), "reads a folder of images: give it with --root"),
        (("main", "--only", "objective=mcas"), "Unknown method 'mcas'. Did you mean 'macs'?"),
        (("main", "--only", "macs"), "--only takes AXIS=NAME,NAME, got 'macs'"),
        (("main", "--engine", "lokal"), "Unknown engine 'lokal'. Did you mean 'local'?"),
        (("main", "--grid", "margin=1"), "--objective, --grid and --random are for hyperparameters"),
        (("main", "--jobs", "0"), "--jobs must be from 1 to 64, got 0"),
        (("main", "--only", "objectiv=macs"), "Unknown axis 'objectiv'. Did you mean 'objective'?"),
        (("main", "--scale", "cpu", "--root", "no-such"), "no-such'."),
        (("main", "--device", "cudo"), "device must be one that this machine has, got 'cudo'"),
        (("hyperparameters", "--objective", "mcas", "--random", "2"), "Unknown objective 'mcas'. Did you mean 'macs'?"),
    ],
)
def test_wrong_words_are_one_line(surefoot, here, flags, message):
    done = surefoot("study", "run", *flags)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert list(here.iterdir()) == []


def test_show_before_anything_was_run(surefoot, here):
    done = surefoot("study", "show", "main")
    assert (done.code, done.err) == (2, "surefoot: No folder of results at 'studies/smoke'.\n")


def test_the_command_on_a_page_names_the_folder_of_the_data(surefoot, here):
    (here / "none").mkdir()
    assert surefoot("study", "show", "main", "--scale", "cpu", "--results", "none", "--page", "p.html").code == 0
    assert "surefoot study run main --scale cpu --root DIR --results none" in (here / "p.html").read_text()
