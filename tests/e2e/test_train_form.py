"""The Train page checks what is typed while it is typed, and takes nothing away: neither the field
from who types, nor the zoom from who looks at a curve that grows."""

from datetime import timedelta
from typing import Final

import pytest
from browser import settled, wait_until
from full_store import fill
from page_hands import place
from playwright.sync_api import Browser, Locator, expect
from restartable import Restartable

from db.jobs import jobs
from db.store.store import Store
from db.tables import utc_now

STEPS: Final = 100


@pytest.mark.browser
@pytest.mark.long
def test_a_wrong_value_is_told_while_it_is_typed_and_going_on_makes_it_right(
    served: Restartable, store: Store, browser: Browser
) -> None:
    """20 groups, 2 held out, are 3 batches of 8: 2 epochs are 6 steps, 1e1 are 30, 21e1 are 630."""
    fill(store)
    with store.read() as session:
        before = len(jobs.list_jobs(session))
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{served.url}/train")
    settled(page)
    launch = place(page, "train.start").get_by_role("button")
    if not launch.is_visible():
        page.get_by_text("New training", exact=True).click()
    field = place(page, "train.epochs").locator("input")
    expect(page.get_by_text("about 6 steps", exact=False)).to_be_visible()
    field.click()
    field.press("Control+a")
    page.keyboard.type("1e", delay=30)
    wrong = page.get_by_text("epochs='1e': a number is needed", exact=True)
    expect(wrong).to_have_count(2)  # in its place, and above the button
    expect(launch).to_be_disabled()
    expect(page.get_by_text("about 6 steps", exact=False)).to_have_count(0)
    expect(field).to_be_focused()
    page.keyboard.type("1")
    expect(page.get_by_text("about 30 steps", exact=False)).to_be_visible()
    expect(wrong).to_have_count(0)
    expect(launch).to_be_enabled()
    expect(field).to_be_focused()
    field.press("Home")
    page.keyboard.type("2")
    expect(page.get_by_text("about 630 steps", exact=False)).to_be_visible()
    assert field.evaluate("field => field.selectionStart") == 1
    page.keyboard.type("x3", delay=900)  # each is sent while the page is drawn for the one before
    expect(place(page, "train.epochs").locator("input")).to_have_value("2x31e1")
    expect(page.get_by_text("epochs='2x31e1'", exact=False).first).to_be_visible()
    expect(field).to_be_focused()
    assert field.evaluate("field => field.selectionStart") == 3
    with store.read() as session:
        assert len(jobs.list_jobs(session)) == before
    page.close()


def shown_steps(chart: Locator) -> tuple[float, float]:
    """The ends of a chart's axis of steps."""
    plot = chart.locator(".js-plotly-plot")
    first, last = plot.evaluate("plot => plot._fullLayout.xaxis.range")
    return float(first), float(last)


def points(chart: Locator) -> list[int]:
    """The first and the last step of its first line."""
    drawn = chart.locator(".js-plotly-plot")
    if not drawn.count():
        return []
    steps = drawn.evaluate("plot => Array.from(plot._fullData?.[0]?.x ?? [])")
    return [steps[0], steps[-1]] if steps else []


def running_training(store: Store) -> int:
    """A training that somebody else runs, and has logged so many steps."""
    with store.write() as session:
        job = jobs.enqueue_job(session, "train", {"settings": {}})
        job.status, job.started_at = "running", utc_now()
        job.heartbeat_at = utc_now() + timedelta(hours=1)
        for step in range(1, STEPS + 1):
            jobs.record_metrics(session, job.id, step, {"loss": 1 / step})
        session.commit()
        return job.id


@pytest.mark.browser
@pytest.mark.long
def test_a_curve_shows_the_last_steps_while_new_points_come(
    served: Restartable, store: Store, browser: Browser
) -> None:
    job_id = running_training(store)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{served.url}/train?job={job_id}")
    settled(page)
    chart = page.get_by_test_id("stPlotlyChart").first
    wait_until(lambda: points(chart) == [1, STEPS])
    page.get_by_role("radio", name="Last tenth").click()
    wait_until(lambda: points(chart) == [91, STEPS])
    with store.write() as session:
        jobs.record_metrics(session, job_id, STEPS + 10, {"loss": 0.5})
        session.commit()
    wait_until(lambda: points(chart) == [100, STEPS + 10])
    first, last = shown_steps(chart)
    assert 90 < first < 101 and last >= STEPS + 10
    page.close()
