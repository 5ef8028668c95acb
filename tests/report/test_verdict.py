import pytest
from made_up import class_row, made_up, number

from surefoot.report.advice import NOTHING, advice, threshold_words, warnings
from surefoot.report.verdict import cards, headline, strongest_attack, verdict, worst_corruption, worst_family
from surefoot.report.words import attack_name, change, measure, the_attack, threshold


@pytest.fixture
def found():
    return made_up()


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ")


def sayings(audit):
    return [plain(line) for line in advice(audit)]


def predictions_alone(audit):
    return {key: value for key, value in audit.items() if key not in ("corruptions", "attacks", "preflight", "security_curve")}


def test_verdict_in_words(found):
    said = plain(" ".join(verdict(found)))
    assert "Right on 90.0 % of 1,000 test images" in said
    assert "Overconfident by 7.0 points: ECE 7.0 %, where perfect calibration would show 1.0 % to 3.0 %" in said
    assert "Temperature 1.90 (from the calibration split) takes ECE from 7.0 % to 0.7 %" in said
    assert "on corrupted pictures from 20.0 % to 15.0 %" in said
    assert "loses most on gaussian noise, 30.0 points" in said
    assert "FGSM turns 60.0 % of its right predictions into wrong ones" in said


def test_two_sentences_say_it_all(found):
    assert plain(headline(found)) == (
        "Right on 90.0 % of its test images, but overconfident by 7.0 points. Corrupted pictures take it down to 72.0 % "
        "(90.0 % on the same 500 images as they are), and FGSM turns 60.0 % of its right predictions into wrong ones."
    )
    found["calibration"]["ece"] = number(0.02)
    assert plain(headline(predictions_alone(found))) == (
        "Right on 90.0 % of its test images, and its confidence can be believed."
    )


def test_advice_has_its_numbers(found):
    said = sayings(found)
    assert said[0] == (
        "Overconfident by 7.0 points: temperature 1.90 fixes 90 % of it at no cost (ECE 7.0 % to 0.7 %, same predictions). "
        "On corrupted pictures 15.0 % remain: do not lean on its confidence there."
    )
    assert said[1] == "Loses 31.0 points on noise: train with MaCS or MAGNMA."
    assert said[2].startswith("Loses 15.0 points on weather: train with AugMix")
    assert not any("digital" in line for line in said)  # 6 points
    assert said[3].startswith("FGSM breaks 60.0 % of its right predictions: do not rely on it where someone may tamper")
    assert said[4].startswith("Class 'dog' is recognised in only 75.0 % of cases, most often taken for 'cat'")
    assert said[5] == (
        "Let it decide by itself from 0.86 confidence on: that is 62.0 % of the images, 0.3 % of them wrong. "
        "Ask a person for the rest."
    )


def test_a_temperature_that_does_little_is_not_praised(found):
    found["temperature"]["calibration"]["ece"] = number(0.06)
    assert "temperature 1.90 fixes only 14 % of it: try surefoot calibrate --method vector" in sayings(found)[0]
    found["temperature"]["calibration"]["ece"] = number(0.08)  # worse than before
    assert "and a temperature does not mend it: try surefoot calibrate --method vector" in sayings(found)[0]
    found["temperature"] = None
    assert "divide the logits by a temperature greater than 1" in sayings(found)[0]


def test_the_other_way(found):
    found["calibration"]["signed_error"] = number(-0.07)
    assert "Underconfident by 7.0 points" in plain(" ".join(verdict(found)))
    found["temperature"] = None
    assert "Underconfident by 7.0 points: divide the logits by a temperature less than 1" in sayings(found)[0]


def test_nothing_urgent(found):
    found["calibration"]["ece"] = number(0.02)
    for family in found["corruptions"]["families"].values():
        family["accuracy"] = number(0.85)
    for cell in found["corruptions"]["cells"]:
        cell["accuracy"] = number(0.85)
    found["attacks"] = {"fgsm": {"success_rate": number(0.1)}}
    found["classes"] = [class_row("cat", 0.9)]
    found["thresholds"] = []
    assert advice(found) == [NOTHING]


def test_a_corruption_that_stands_out(found):
    for cell in found["corruptions"]["cells"]:
        if cell["name"] == "fog":
            cell["accuracy"] = number(0.2)
    assert "Fog alone costs 70.0 points: look at its pictures in the table below." in sayings(found)


def test_a_threshold_that_no_confidence_reaches():
    row = {
        "wanted_risk": 0.01,
        "thresholds": [1.1],
        "coverage": number(0.0, 0),
        "risk": {"value": None, "low": None, "high": None},
    }
    assert plain(threshold_words(row)) == "No confidence is high enough for an error rate of 1 %."
    assert not any("Ask a person" in line for line in advice(made_up(thresholds=[row])))


def test_that_nothing_can_be_promised_is_an_answer():
    note = "No threshold can be promised with so few images: it needs 299."
    rows = [
        {
            "wanted_risk": risk,
            "thresholds": [1.1],
            "coverage": number(0.0, 0),
            "risk": {"value": None, "low": None, "high": None},
            "confidence": 0.95,
            "notes": [note.replace("299", needed)],
        }
        for risk, needed in ((0.05, "59"), (0.01, "299"))
    ]
    assert threshold_words(rows[1]) == note
    assert advice(made_up(thresholds=rows))[-1] == "No threshold can be promised with so few images: it needs 59."
    rows[0] |= {"thresholds": [0.9], "coverage": number(0.2), "risk": number(0.01), "notes": []}
    assert not any("promised" in line for line in advice(made_up(thresholds=rows)))  # one can be, for too few images to advise


def test_a_promised_threshold_says_how_surely_it_holds():
    row = {"wanted_risk": 0.01, "thresholds": [0.9], "coverage": number(0.7), "risk": number(0.002), "confidence": 0.95}
    said = plain(advice(made_up(thresholds=[row]))[-1])
    assert said == (
        "Let it decide by itself from 0.9 confidence on: that is 70.0 % of the images, 0.2 % of them wrong. "
        "At most 1 % are promised, with probability 95 %. Ask a person for the rest."
    )


def test_thresholds_are_cut_and_never_1_that_are_below():
    assert [threshold(value) for value in (0.9987, 0.99996, 0.9999874, 0.29, 0.5, 1.0, 1.1)] == [
        *("0.9987", "0.99996", "0.999987", "0.29", "0.5", "1", "none")
    ]
    row = {"wanted_risk": 0.01, "thresholds": [0.9987, 1.1], "coverage": number(0.4), "risk": number(0.01)}
    assert "from 0.9987 confidence on (none holds for the other half): that is" in threshold_words(row)


def test_the_strictest_threshold_is_advised_in_whatever_order():
    rows = [
        {"wanted_risk": wanted, "thresholds": [bound], "coverage": number(0.7), "risk": number(wanted)}
        for wanted, bound in ((0.05, 0.5), (0.01, 0.9))
    ]
    assert "from 0.9 confidence on" in advice(made_up(thresholds=rows))[-1]


def test_errors_of_both_signs_do_not_cancel_in_words(found):
    found["calibration"] |= {"ece": number(0.4), "signed_error": number(0.0001)}
    said = "ver- and underconfident in parts, by 40.0 points on average"
    assert f"but o{said}." in plain(headline(found))
    assert f"O{said}: ECE 40.0 %" in plain(" ".join(verdict(found)))
    assert sayings(found)[0].startswith(f"O{said}: temperature 1.90 fixes 98 % of it")
    found["temperature"] = None
    assert sayings(found)[0] == f"O{said}: a temperature moves all confidences one way, so try surefoot calibrate " + (
        "--method vector or isotonic."
    )


def test_an_attack_without_right_answers_and_no_family(found):
    found["attacks"]["fgsm"]["success_rate"] = {"value": None, "low": None, "high": None}
    found["attacks"] = {"fgsm": found["attacks"]["fgsm"]}
    found["corruptions"]["families"] = {}
    assert strongest_attack(found) is None
    assert worst_family(found) is None
    assert "not defined" not in " ".join([headline(found), *verdict(found), *advice(found)])
    assert [card.name for card in cards(found)] == ["accuracy", "calibration error (ECE)", "corrupted accuracy"]
    assert "Gaussian noise alone costs 30.0 points: look at its pictures in the table below." in sayings(found)


def test_what_makes_numbers_doubtful(found):
    assert warnings(found) == []
    found["preflight"] = [{"name": "class-order", "message": "Labels differ.", "advice": "Use a class map."}]
    found["masking"] = ["Noise is as strong as PGD."]
    assert [warning["advice"] for warning in warnings(found)] == ["Use a class map.", "Noise is as strong as PGD."]


def test_the_worst(found):
    assert worst_corruption(found) == ("gaussian_noise", pytest.approx(0.3))
    assert worst_family(found) == ("noise", pytest.approx(0.31))
    assert strongest_attack(found) == "fgsm"
    assert strongest_attack(predictions_alone(found)) is None


def test_losses_are_counted_on_the_same_images(found):
    """Of few images fewer may be right as they are: that is no loss by corruption."""
    found["corruptions"] |= {"images": 45, "clean_accuracy": 0.75}
    found["corruptions"]["families"] = {"noise": {"accuracy": number(0.59)}, "weather": {"accuracy": number(0.74)}}
    assert "Corrupted pictures take it down to 72.0 % (75.0 % on the same 45 images as they are)" in plain(headline(found))
    assert worst_corruption(found) == ("gaussian_noise", pytest.approx(0.15))
    assert worst_family(found) == ("noise", pytest.approx(0.16))
    assert [line for line in sayings(found) if line.startswith("Loses")] == [
        "Loses 16.0 points on noise: train with MaCS or MAGNMA."
    ]
    shown = cards(found)[2]
    assert (shown.tone, plain(shown.meaning).endswith("; 75.0 % on the same 45 images as they are")) == ("good", True)
    said = plain(" ".join(verdict(found)))
    assert "Corrupted pictures: 72.0 % right on average (75.0 % on the same 45 images as they are); it loses most on" in said
    found["corruptions"]["clean_accuracy"] = None  # an audit of an older version
    assert "Corrupted pictures take it down to 72.0 % (45 images), and" in plain(headline(found))
    found["corruptions"]["images"] = found["subject"]["images"]
    assert "take it down to 72.0 %, and" in plain(headline(found))


def test_a_calibrated_model_shows_so_much_on_few_corrupted_images(found):
    remains = "On corrupted pictures 15.0 % remain"
    assert any(remains in line for line in sayings(found))
    found["corruptions"]["scaled_ece_if_calibrated"] = [0.08, 0.16]
    assert not any(remains in line for line in sayings(found))


def test_nothing_is_advised_on_top_of_a_fatal_finding(found):
    found["preflight"] = [{"name": "normalisation", "severity": "fatal", "message": "Wrong.", "advice": "Pass --mean 0.5."}]
    assert sayings(found) == ["Wrong. Pass --mean 0.5. Then audit again."]
    found["calibration"]["ece"] = number(0.02)  # which would be believed
    said = " ".join([headline(found), *verdict(found)])
    assert "Temperature" not in said
    assert "believed" not in said
    assert {card.tone for card in cards(found)} == {"", "poor"}
    assert [card.tone for card in cards(found)][1:] == [""] * 4


def test_a_model_at_chance_on_unequal_classes_is_not_called_misused(found):
    found["preflight"] = [{"name": "chance", "severity": "fatal", "message": "At chance.", "advice": "Look."}]
    assert len(sayings(found)) > 1
    found["calibration"]["accuracy"] = number(0.5)
    assert sayings(found)[0].startswith("Its predictions are not clearly better than")


def test_a_temperature_that_does_not_help_is_called_that(found):
    found["temperature"]["calibration"]["ece"] = number(0.08)
    said = plain(" ".join(verdict(found)))
    assert "does not help: it takes ECE from 7.0 % to 8.0 %, and on corrupted pictures from" in said


def test_five_numbers(found):
    shown = cards(found)
    assert [(card.name, plain(card.value), plain(card.interval), card.tone) for card in shown] == [
        ("accuracy", "90.0 %", "89.0 % to 91.0 %", ""),
        ("calibration error (ECE)", "7.0 %", "6.0 % to 8.0 %", "poor"),
        ("corrupted accuracy", "72.0 %", "71.0 % to 73.0 %", "poor"),
        ("worst family: noise", "59.0 %", "58.0 % to 60.0 %", "poor"),
        ("attack success: FGSM", "60.0 %", "59.0 % to 61.0 %", "poor"),
    ]
    assert "1.0 % to 3.0 %" in plain(shown[1].meaning)
    assert plain(shown[2].meaning) == (
        "mean over 3 kinds of damage, 5 strengths of each; 90.0 % on the same 500 images as they are"
    )
    few = cards(predictions_alone(found))
    assert (few[3].value, few[3].interval) == ("0.200", "0.190 to 0.210")
    alone = [card.name for card in few]
    assert alone == ["accuracy", "calibration error (ECE)", "ECE after temperature scaling", "Brier score", "AUROC"]


def test_two_temperatures(found):
    found["temperature"]["temperatures"] = [1.4, 1.6]
    assert "Temperature 1.40 and 1.60" in plain(" ".join(verdict(found)))


def test_names_of_measures_and_their_changes():
    assert measure("calibration.adaptive_ece") == "adaptive ECE"
    assert measure("corruptions.mean_accuracy") == "corrupted accuracy"
    assert measure("corruptions.mean_scaled_ece") == "corrupted ECE after temperature scaling"
    assert measure("temperature.calibration.ece") == "ECE after temperature scaling"
    assert measure("attacks.pgd-weak.success_rate") == "weak PGD success"
    assert measure("nll") == "NLL"
    assert (change("calibration.ece", -0.0123), change("corruptions.mean_nll", 0.5)) == ("-1.2", "+0.500")


def test_equal_thresholds_are_said_once_and_small_risks_in_full():
    row = {"wanted_risk": 0.0005, "thresholds": [1.0, 1.0], "coverage": number(0.7), "risk": number(0.0)}
    assert plain(threshold_words(row)).startswith("Let it decide by itself from 1 confidence on: that is 70.0 %")
    row["coverage"] = number(0.0, 0)
    assert plain(threshold_words(row)).endswith("error rate of 0.05 %.")


def test_classes_that_are_low_by_chance_are_left_alone(found):
    """A thousand equal classes of 50 images: some are at 54 %, and none is worse than the rest."""
    import random

    chance = random.Random(0)
    shares = [sum(chance.random() < 0.75 for _ in range(50)) / 50 for _ in range(1000)]
    found["classes"] = [class_row(f"c{k}", share) | {"images": 50} for k, share in enumerate(shares)]
    found["calibration"]["accuracy"] = {"value": 0.75, "low": 0.746, "high": 0.754}
    assert min(shares) < 0.6
    assert not any("is recognised in only" in line for line in sayings(found))
    found["classes"][7] = class_row("worse", 0.3) | {"images": 50}
    assert any(line.startswith("Class 'worse' is recognised in only 30.0 %") for line in sayings(found))


def test_too_few_images_are_no_praise(found):
    found["calibration"] |= {"ece": number(0.59), "ece_if_calibrated": [0.41, 0.60]}
    assert plain(headline(found)).startswith("Right on 90.0 % of its test images, which are too few to judge its confidence.")
    assert "Too few images to judge its confidence: ECE 59.0 %" in plain(" ".join(verdict(found)))
    assert cards(found)[1].tone == ""


def test_what_guesses_gets_no_praise(found):
    """A model at chance loses nothing by damage."""
    found["subject"]["classes"] = [str(k) for k in range(10)]
    found["calibration"] |= {"accuracy": number(0.1), "ece": number(0.02), "signed_error": number(0.02)}
    found["recognition"] |= {"chance": 0.1}
    found["corruptions"] |= {"mean_accuracy": number(0.1), "clean_accuracy": 0.1}
    for each in (*found["corruptions"]["cells"], *found["corruptions"]["families"].values()):
        each["accuracy"] = number(0.1)
    found["attacks"], found["classes"], found["thresholds"] = {}, [], []
    assert "Corrupted pictures leave it at 10.0 %" in plain(headline(found))
    assert "loses most" not in " ".join(verdict(found))
    assert [card.tone for card in cards(found)[2:]] == ["", ""]
    assert len(sayings(found)) == 1
    assert sayings(found)[0].startswith("Its predictions are not clearly better than a guess among 10 classes")


@pytest.mark.parametrize(("accuracy", "said"), [(1.0, "all predictions are right"), (0.0, "all predictions are wrong")])
def test_auroc_without_two_kinds_of_answers(found, accuracy, said):
    found["calibration"] |= {"accuracy": number(accuracy, 0), "auroc": {"value": None, "low": None, "high": None}}
    card = cards(predictions_alone(found))[-1]
    assert (card.value, card.interval) == ("not defined", said)


def test_attacks_by_name():
    assert (attack_name("patch-5"), the_attack("grey-patch-2.5")) == (
        "trained patch of 5\N{NO-BREAK SPACE}% of the picture",
        "a grey patch of 2.5\N{NO-BREAK SPACE}% of the picture",
    )
    assert (attack_name("patchy-5"), the_attack("mine:attack")) == ("patchy-5", "the attack mine:attack")
