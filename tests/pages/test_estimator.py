"""The estimator in a real browser: sliders, a dropped config.json, faults, the keyboard."""

import json
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Locator, Page, expect

from projects.records import OrganisationRole
from tests.builders import organisation, person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]

CONFIG = {
    "model_type": "llama",
    "hidden_size": 8192,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "intermediate_size": 28672,
    "vocab_size": 128256,
}
# Drops a file where a person would, without the file manager of a desktop.
DROP = """(zone, text) => {
    const files = new DataTransfer();
    files.items.add(new File([text], "config.json", { type: "application/json" }));
    const kind = { dataTransfer: files, bubbles: true, cancelable: true };
    zone.dispatchEvent(new DragEvent("drop", kind));
}"""


@pytest.fixture
def estimator(transactional_db: None, page: Page) -> Iterator[Page]:
    """The page of a new question, open."""
    organisation()  # an earlier test's flush took the one that set-up made
    ada = person("ada", role=OrganisationRole.ADMIN)
    ada.set_password("a long one, of words")
    ada.save()
    page.goto(reverse("login"))
    page.locator("input[name=username]").fill("ada")
    page.locator("input[name=password]").fill("a long one, of words")
    page.locator("input[name=password]").press("Enter")
    page.wait_for_url("**/")
    page.goto(reverse("estimate_new"))
    page.wait_for_load_state("networkidle")
    return page


def days(page: Page) -> Locator:
    return page.locator("[data-quantity=days]")


def slider(page: Page, field: str) -> Locator:
    return page.locator(f"[data-slider]:has(#id_{field}) input[type=range]")


def test_moving_a_slider_changes_the_answer_and_clearing_it_brings_the_prior_back(
    estimator: Page,
) -> None:
    at_first = days(estimator).inner_text()
    slider(estimator, "step_mfu").press("PageUp")
    expect(days(estimator)).not_to_have_text(at_first)
    assert float(estimator.input_value("#id_step_mfu")) > 0.3
    estimator.get_by_role("button", name="Use the prior: MFU").click()
    expect(days(estimator)).to_have_text(at_first)
    expect(estimator.locator("#id_step_mfu")).to_have_value("")


def test_a_typed_number_moves_its_slider(estimator: Page) -> None:
    estimator.fill("#id_tokens", "1T")
    place = slider(estimator, "tokens").input_value()
    estimator.fill("#id_tokens", "10T")
    assert int(slider(estimator, "tokens").input_value()) > int(place)
    slider(estimator, "tokens").press("Home")
    expect(estimator.locator("#id_tokens")).to_have_value("1B")


def test_a_dropped_config_json_fills_the_fields_and_is_answered(estimator: Page) -> None:
    at_first = days(estimator).inner_text()
    estimator.get_by_role("radio", name="config.json").check()
    estimator.locator("[data-drop]").evaluate(DROP, json.dumps(CONFIG))
    expect(estimator.locator("#id_layers")).to_have_value("80")
    expect(estimator.locator("#id_ffn_hidden")).to_have_value("28672")
    expect(estimator.locator("#config-read")).to_contain_text("Read from config.json")
    expect(days(estimator)).not_to_have_text(at_first)


def test_a_fault_is_named_at_its_field_and_the_answer_before_stays(estimator: Page) -> None:
    at_first = days(estimator).inner_text()
    estimator.fill("#id_step_mfu", "55")
    expect(estimator.locator("#problems")).to_contain_text("55 % is 0.55")
    expect(estimator.locator("#id_step_mfu")).to_have_attribute("aria-invalid", "true")
    expect(days(estimator)).to_have_text(at_first)
    estimator.fill("#id_step_mfu", "")
    expect(estimator.locator("#problems")).to_be_empty()
    expect(estimator.locator("#id_step_mfu")).not_to_have_attribute("aria-invalid", "true")


def test_an_unfolded_part_stays_unfolded_and_a_reload_asks_the_same(estimator: Page) -> None:
    estimator.get_by_text("All percentiles and the mean").click()
    slider(estimator, "step_mfu").press("PageUp")
    estimator.wait_for_url("**/estimates/new/?q=**")
    expect(estimator.locator("#all-levels")).to_have_attribute("open", "")
    given, answered = estimator.input_value("#id_step_mfu"), days(estimator).inner_text()
    estimator.reload()
    expect(estimator.locator("#id_step_mfu")).to_have_value(given)
    expect(days(estimator)).to_have_text(answered)


@pytest.mark.parametrize("width", [390, 1280])
def test_every_part_unfolded_is_accessible_at_any_width(estimator: Page, width: int) -> None:
    estimator.set_viewport_size({"width": width, "height": 900})
    estimator.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")
    estimator.select_option("#id_lines", "own")
    estimator.get_by_role("button", name="Other hardware").click()
    estimator.locator("#alternatives table").wait_for()
    estimator.wait_for_load_state("networkidle")
    results = Axe().run(estimator)
    assert results.violations_count == 0, results.generate_report()
    assert estimator.evaluate("document.documentElement.scrollWidth <= innerWidth")
