"""The page as a person meets it, in a real browser."""

import pytest
import torch
from made_up import class_row, made_up

from surefoot.auditing.predictions import audit_predictions
from surefoot.calibration.scoring import scores
from surefoot.report.page import read_audit, write_page
from surefoot.types import Predictions

HACK = "<script>document.title = 'hacked'</script><img src=x onerror=\"document.title = 'hacked'\">"

DASH = "\N{EN DASH}"
TWIN = """(name) => {
    const five = ["lowerfence", "q1", "median", "q3", "upperfence"];
    const values = (trace) => {
        if (trace.type === "box") return five.flatMap((key) => trace[key]);
        return Array.isArray(trace.z?.[0]) ? trace.z.flat() : trace.y;
    };
    const shown = document.getElementById(`figure-${name}`).data.filter((trace) => trace.hoverinfo !== "skip");
    const rows = document.querySelectorAll(`details[data-figure="${name}"] tbody tr`);
    return [shown.flatMap(values), [...rows].map((row) => row.cells[2].textContent)];
}"""  # what is drawn, and what the table says


@pytest.fixture
def opened(browser, tmp_path):
    """Open audits as a page from disk; nothing may go wrong and nothing may leave the file."""
    troubles, pages = [], []

    def open_page(*audits, assets="inline", idle=False, **settings):
        path = write_page(tmp_path / "report.html", audits or [made_up()], assets=assets)
        own = (path.as_uri(), (tmp_path / "plotly.min.js").as_uri())
        page = browser.new_page(**settings)
        page.set_default_timeout(60_000)
        if not idle:  # read plotly's script when a figure is drawn, not before
            page.add_init_script("window.requestIdleCallback = () => {};")
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda sent: troubles.append(sent.url[:200]) if not sent.url.startswith((*own, "data:")) else None)
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert troubles == []


def come_to(page, name):
    """Scroll to a figure and wait until it is drawn."""
    page.locator(f"#figure-{name}").scroll_into_view_if_needed()
    page.wait_for_selector(f"#figure-{name}[data-drawn] svg")


def shares(texts):
    """Percentages as they are written, as numbers."""
    return [float(text.replace("%", "").strip()) / 100 for text in texts]


def ece_shown(page):
    return float(page.inner_text("#ece-0").replace("%", "")) / 100


def ece_of(grid, step):
    """ECE of one step from its bins (Guo et al. 2017): sum over bins of |confidence - accuracy| by their share."""
    rows = zip(grid["counts"][step], grid["confidences"][step], grid["correct"][step], strict=True)
    return sum(count * abs(total / count - right / count) for count, total, right in rows if count) / sum(grid["counts"][step])


def test_slider_by_keyboard_shows_the_ece_that_python_computes(opened):
    audit = made_up()
    grid = audit["points"]["temperatures"]
    page = opened(audit)
    start = grid["values"].index(1.0)
    assert ece_shown(page) == pytest.approx(ece_of(grid, start), abs=1e-3)
    page.focus("#slider")
    for keys, step in ((["ArrowRight"] * 3, start + 3), (["ArrowLeft"] * 5, start - 2), (["End"], -1), (["Home"], 0)):
        for key in keys:
            page.keyboard.press(key)
        assert ece_shown(page) == pytest.approx(ece_of(grid, step), abs=1e-3)
        assert float(page.inner_text("#nll-0")) == pytest.approx(grid["nll"][step], abs=1e-3)
        assert float(page.inner_text("#slider-value")) == pytest.approx(grid["values"][step], abs=0.006)
        drawn = page.evaluate("surefoot.sources.reliability().data[1].y")
        held = [(right, count) for right, count in zip(grid["correct"][step], grid["counts"][step], strict=True) if count]
        assert drawn == pytest.approx([right / count for right, count in held])


def test_slider_redraws_the_diagram_and_its_table(opened):
    page = opened()
    come_to(page, "reliability")
    page.click("details[data-figure=reliability] summary")
    page.wait_for_selector("details[data-figure=reliability] table")
    before = page.inner_text("details[data-figure=reliability] table")
    page.click("#slider-marks button:has-text('fitted 1.90')")
    assert page.inner_text("#slider-value") == "1.90"
    drawn = page.evaluate("document.getElementById('figure-reliability').data[1].x")
    assert drawn == page.evaluate("surefoot.sources.reliability().data[1].x")
    assert page.inner_text("details[data-figure=reliability] table") != before


def test_feature_scale_is_the_other_slider(opened):
    audit = made_up()
    grid = audit["points"]["feature_scales"]
    page = opened(audit)
    page.check("#slider-kind input[value=feature_scales]", force=True)
    page.focus("#slider")
    page.keyboard.press("ArrowRight")
    assert ece_shown(page) == pytest.approx(ece_of(grid, grid["values"].index(1.0) + 1), abs=1e-3)
    assert page.inner_text("#slider-name") == "feature scale"


def test_a_cell_opens_its_pictures_by_mouse_and_by_keyboard(opened):
    page = opened(made_up(classes=("cat", "dog")))
    page.click("#heat button[aria-label^='contrast, severity 2']")
    assert page.inner_text("#cell h3") == "contrast, severity 2"
    assert page.locator("#cell img").count() == 4  # two images, as they are and damaged
    assert page.evaluate(
        "[...document.querySelectorAll('#cell img')].every((image) => image.complete && image.naturalWidth > 0)"
    )
    said = [text.replace("\N{NO-BREAK SPACE}", " ") for text in page.locator("#cell li").all_inner_texts()]
    assert "says cat, 90.0 %" in said[0]
    assert "✗ says cat, 60.0 %" in said[1]
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#cell h3") == "contrast, severity 3"
    page.keyboard.press("ArrowUp")
    assert page.inner_text("#cell h3") == "fog, severity 3"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"


def test_heat_map_shows_every_measure(opened):
    audit = made_up()
    page = opened(audit)
    cells = {(cell["name"], cell["severity"]): cell for cell in audit["corruptions"]["cells"]}
    names = ("gaussian_noise", "fog", "contrast")
    for measure, scale in (("accuracy", 100), ("ece", 100), ("nll", 1), ("rms", 100)):
        page.check(f"#heat-measure input[value={measure}]", force=True)
        shown = [float(text) for text in page.locator("#heat button").all_inner_texts()]
        wanted = [scale * cells[name, severity][measure]["value"] for name in names for severity in range(1, 6)]
        assert shown == pytest.approx(wanted, abs=0.051 if scale == 100 else 0.0051)


def test_every_figure_is_drawn_and_has_its_table(opened):
    page = opened()
    page.evaluate("surefoot.drawAll()")
    names = page.evaluate("[...document.querySelectorAll('.plot')].map((place) => place.dataset.figure)")
    assert {"reliability", "sweep", "families", "severities", "noise", "security", "features-0", "plane-0"} <= set(names)
    for name in names:
        assert page.inner_text(f"figure:has(#figure-{name}) figcaption").strip().endswith(".")
        page.click(f"details[data-figure='{name}'] summary")
        page.wait_for_selector(f"details[data-figure='{name}'] table")
        drawn, twin = page.evaluate(TWIN, name)
        read = [None if text == DASH else shares([text])[0] if "%" in text else float(text) for text in twin]
        assert len(read) == len(drawn) > 0
        for said, value in zip(read, drawn, strict=True):
            assert said == (None if value is None else pytest.approx(value, abs=6e-4, rel=6e-4)), name


def test_figures_wait_until_they_come_near(opened):
    page = opened(viewport={"width": 1200, "height": 700}, idle=True)
    come_to(page, "reliability")
    assert page.get_attribute("#figure-curvature-spread", "data-drawn") is None
    come_to(page, "curvature-spread")
    page.wait_for_selector("#figure-curvature-spread .boxlayer .trace")


def test_dark_light_and_the_button(opened):
    page = opened(color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    come_to(page, "reliability")
    ink = "document.getElementById('figure-reliability').layout.font.color"
    assert (page.evaluate(paper), page.evaluate(ink)) == ("rgb(20, 23, 27)", "#e8eaed")
    page.focus("#theme")
    page.keyboard.press("Enter")
    assert (page.evaluate(paper), page.evaluate(ink)) == ("rgb(255, 255, 255)", "#1b1f24")
    page.click("#theme")
    assert page.evaluate(paper) == "rgb(20, 23, 27)"
    other = opened(color_scheme="dark")
    come_to(other, "reliability")
    other.emulate_media(color_scheme="light")
    other.wait_for_function(f"{ink} === '#1b1f24'")


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.stress), 3])
def test_a_narrow_screen_does_not_scroll_sideways(opened, count):
    long = "a-very-long-name-without-a-place-to-break-" * 3
    audits = [made_up(f"{long}{k}", (long, "dog")) for k in range(count)]
    page = opened(*audits, viewport={"width": 390, "height": 800})
    page.evaluate("surefoot.drawAll()")
    for details in page.locator("details").all():
        details.evaluate("(each) => { each.open = true; }")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_names_do_no_harm(opened):
    audit = made_up(HACK, (HACK, "dog"))
    audit["classes"] = [class_row(f"{HACK}{k}", k / 100, taken_for=HACK) for k in range(60)]
    audit["corruptions"]["families"][HACK] = audit["corruptions"]["families"].pop("noise")
    page = opened(audit, made_up("other"))
    page.evaluate("surefoot.drawAll()")
    for details in page.locator("details").all():
        details.evaluate("(each) => { each.open = true; }")
    page.click("#heat button >> nth=3")
    page.wait_for_timeout(100)
    assert page.title().startswith("Surefoot audit")
    assert page.locator("img[src=x]").count() == 0
    page.wait_for_selector("details[data-figure=families] table")
    assert HACK in page.inner_text("details[data-figure=families] table")


def test_all_classes_on_demand_and_sorted_by_heading(opened):
    audit = made_up()
    audit["classes"] = [class_row(f"c{k}", k / 1000, images=1000 - k) for k in range(1000)]
    page = opened(audit)
    assert page.locator("#class-table tbody tr").count() == 20
    page.click("#class-table th:has-text('images') button")
    images = [int(text) for text in page.locator("#class-table tbody tr td:nth-child(2)").all_inner_texts()]
    assert images == list(range(981, 1001))
    page.click("details.rows summary")
    page.wait_for_selector("details.rows table")
    shown = page.evaluate("[...document.querySelectorAll('details.rows tbody tr')].map((row) => row.cells[2].textContent)")
    assert shares(shown) == pytest.approx([k / 1000 for k in range(1000)], abs=6e-4)
    page.click("details.rows th:has-text('recognised') button")
    page.click("details.rows th:has-text('recognised') button")
    assert page.inner_text("details.rows tbody tr:first-child td:first-child") == "c999"


def test_names_of_classes_keep_their_letters(opened):
    audit = made_up()
    audit["classes"] = [class_row(name, 0.1) for name in ("<unknown>", "a<z", "x &lt; y")]
    audit["classes"] += [class_row(f"c{k}", 0.5) for k in range(30)]
    page = opened(audit)
    page.click("details.rows summary")
    page.wait_for_selector("details.rows table")
    names = page.locator("details.rows tbody tr td:first-child").all_inner_texts()
    assert names[:3] == ["<unknown>", "a<z", "x &lt; y"]


def test_several_models_share_the_page(opened):
    first, second = made_up("first"), made_up("second")
    second["points"]["temperatures"] = second["points"]["feature_scales"]
    for cell in second["corruptions"]["cells"]:
        cell["accuracy"]["value"] = 0.5
    page = opened(first, second)
    page.select_option("#slider-model", "1")
    page.focus("#slider")
    page.keyboard.press("End")
    assert float(page.inner_text("#ece-1").replace("%", "")) / 100 == pytest.approx(
        ece_of(second["points"]["temperatures"], -1), abs=1e-3
    )
    grid = first["points"]["temperatures"]
    assert ece_shown(page) == pytest.approx(ece_of(grid, grid["values"].index(1.0)), abs=1e-3)  # stays
    page.select_option("#heat-model", "1")
    assert set(page.locator("#heat button").all_inner_texts()) == {"50.0"}
    come_to(page, "families")
    assert page.evaluate("document.getElementById('figure-families').data.map((trace) => trace.name)") == ["first", "second"]


def test_script_beside_the_page(opened):
    page = opened(assets="beside")
    come_to(page, "reliability")
    assert page.locator("#figure-reliability .scatterlayer .trace").count() == 2


def test_print_draws_everything_in_black(opened):
    page = opened(color_scheme="dark")
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('.plot')].every((place) => place.dataset.drawn)")
    assert page.evaluate("document.getElementById('figure-severities').layout.font.color") == "#000"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    page.set_viewport_size({"width": 720, "height": 1050})  # A4
    assert page.evaluate("document.documentElement.scrollWidth") <= 720


def test_everything_that_can_be_used_has_a_name_of_its_own(opened):
    page = opened(made_up("a"), made_up("b"))
    nameless = page.evaluate(
        """[...document.querySelectorAll('button, select, input, img, summary, a')]
            .filter((each) => !(each.textContent.trim() || each.getAttribute('aria-label') || each.alt || each.labels?.length))
            .map((each) => each.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    names = page.evaluate("[...document.querySelectorAll('[id]')].map((each) => each.id)")
    assert len(names) == len(set(names))
    labels = page.evaluate(
        "[...document.querySelectorAll('[aria-labelledby]')].map((each) => each.getAttribute('aria-labelledby'))"
    )
    assert set(labels) <= set(names)


def test_slider_of_a_real_audit(opened, tmp_path):
    """From logits to the page: every step is the ECE of the logits divided by that temperature."""
    labels = torch.arange(400) % 5
    logits = 3 * torch.nn.functional.one_hot(labels, 5) + 2.5 * torch.randn(400, 5)
    audit_predictions(Predictions.from_logits(logits, labels), output=tmp_path / "audit")
    audit = read_audit(tmp_path / "audit")
    page = opened(audit)
    page.focus("#slider")
    for key in ("ArrowLeft", "Home", "End"):
        page.keyboard.press(key)
        temperature = audit["points"]["temperatures"]["values"][int(page.input_value("#slider"))]
        wanted = scores(Predictions.from_logits(logits / temperature, labels))
        assert ece_shown(page) == pytest.approx(float(wanted.ece), abs=1e-3)
        assert float(page.inner_text("#nll-0")) == pytest.approx(float(wanted.nll), abs=1e-3)
    page.evaluate("surefoot.drawAll()")


def twin_rows(page, name):
    """The table beside a figure: its headings and its rows."""
    come_to(page, name)
    page.click(f"details[data-figure={name}] summary")
    page.wait_for_selector(f"details[data-figure={name}] table")
    rows = page.locator(f"details[data-figure={name}] tr").all()
    return [row.locator("th, td").all_inner_texts() for row in rows]


def test_a_number_without_interval_has_none_in_the_table(opened):
    heading, *rows = twin_rows(opened(), "security")
    assert heading[-2:] == ["from", "to"]
    ends = {row[0]: row[-2:] for row in rows}
    assert ends["mean confidence"] == 2 * ["\N{EN DASH}"]
    assert all("%" in text for text in ends["accuracy"])


def test_sliders_of_two_kinds_share_an_axis_that_says_so(opened):
    page = opened(made_up("first"), made_up("second"))
    page.check("#slider-kind input[value=feature_scales]", force=True)
    assert page.evaluate("surefoot.sources.sweep().layout.xaxis.title.text") == "feature scale or temperature"


def test_models_that_are_called_by_numbers(opened):
    page = opened(made_up("1"), made_up("100"))
    come_to(page, "curvature-spread")
    assert page.evaluate("document.getElementById('figure-curvature-spread')._fullLayout.xaxis.type") == "category"
