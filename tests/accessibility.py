"""What axe finds on an open page."""

from axe_playwright_python.base import AXE_SCRIPT, AxeResults
from playwright.sync_api import Page

# Contrast is by far the slowest rule. Of a table's rows with the same elements and attributes it
# sees the first two, an odd and an even one: further ones have the same colours.
RUN = """async () => {
    const NAMING = new Set(["aria-label", "d", "datetime", "for", "href", "id", "title", "value"]);
    const lookOf = row => [row, ...row.querySelectorAll("*")].map(part =>
        part.tagName + [...part.attributes].filter(one => !NAMING.has(one.name))
            .map(one => `${one.name}=${one.value}`)).join();
    for (const body of document.querySelectorAll("tbody")) {
        const seen = new Map();
        for (const row of body.rows) {
            const look = lookOf(row);
            seen.set(look, (seen.get(look) ?? 0) + 1);
            if (seen.get(look) > 2) row.dataset.alike = "";
        }
    }
    const resultTypes = ["violations"];
    const contrast = await axe.run(
        { exclude: [["[data-alike]"]] }, { resultTypes, runOnly: ["color-contrast"] });
    const others = await axe.run(
        { resultTypes, rules: { "color-contrast": { enabled: false } } });
    return { violations: [...contrast.violations, ...others.violations] };
}"""


def assert_accessible(page: Page) -> None:
    """Fail with a report when axe finds a violation."""
    page.evaluate(AXE_SCRIPT)
    results = AxeResults(page.evaluate(RUN))
    assert results.violations_count == 0, results.generate_report()
