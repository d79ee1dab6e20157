"""The Releases page: live counts, the preview that writes nothing, and where a release went."""

from base64 import b64encode
from pathlib import Path

import pytest
from app_pages import open_page, words
from exporting import export
from records_world import group_ids, make_run
from sqlalchemy import select
from streamlit.testing.v1 import AppTest

from app.releases.card import parts_of
from curation.release.card.markdown import fenced
from curation.release.plan import PICTURE
from db.jobs import jobs
from db.review.reviews import approve_group, reject_group
from db.store.store import Store
from db.tables import Job, Pair, Release


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing starts: jobs stay queued."""
    monkeypatch.setattr("app.jobs.supervisors.ensure_supervisor", lambda store: None)
    return tmp_path


def opened(store: Store) -> AppTest:
    return open_page("releases")


def test_the_counts_follow_the_filters(sqlite_store: Store, home: Path) -> None:
    run_id = make_run(sqlite_store, kept=5)
    with sqlite_store.write() as session:
        approve_group(session, group_ids(sqlite_store, run_id)[0], reviewed_by="ada")
        session.commit()
    at = opened(sqlite_store)
    assert "**5 groups** selected" in words(at)
    assert "not reviewed 4, approved 1" in words(at).replace("\\", "")
    at.multiselect(key="releases.sources").select("nq").run()
    assert "**2 groups** selected" in words(at)
    at.selectbox(key="releases.reviews").select("approved only").run()
    assert at.button(key="releases.start").disabled, "q0 is of boolq: nothing passes"
    assert "Remove one" in at.warning[0].value


def test_the_preview_shows_rows_and_card_and_writes_nothing(
    sqlite_store: Store, home: Path, tmp_path: Path
) -> None:
    make_run(sqlite_store, licence="cc-by-sa-4.0")
    with sqlite_store.write() as session:
        pair = session.scalars(select(Pair).where(Pair.external_id == "q1")).one()
        pair.meta = {"source": "msmarco", "licence": "cc-by-nc-4.0"}
        session.commit()
    before = sorted(tmp_path.rglob("*"))
    at = opened(sqlite_store)
    at.number_input(key="releases.held_out").set_value(0.25).run()
    at.toggle(key="releases.preview").set_value(True).run()
    assert not at.exception
    assert "train 3, test 1" in words(at)
    shown = words(at)
    assert "A preview: this release has not been made." in shown and "| all | 8 |" in shown
    assert "licences conflict" in at.warning[0].value
    assert list(at.dataframe[0].value["query_id"]) == ["q0", "q1", "q2", "q3"]
    assert sorted(path for path in tmp_path.rglob("*") if ".db" not in path.name) == [
        path for path in before if ".db" not in path.name
    ]


def test_a_release_is_queued_as_the_form_says(sqlite_store: Store, home: Path) -> None:
    run_id = make_run(sqlite_store)
    at = opened(sqlite_store)
    at.multiselect(key="releases.views").select("tevatron").run()
    at.selectbox(key="releases.balance").set_value("source").run()
    at.button(key="releases.start").click().run()
    with sqlite_store.read() as session:
        (job,) = jobs.list_jobs(session, kind="export")
    wanted = {"runs": [run_id], "views": ["tevatron"], "balance": "source", "name": "release-1"}
    assert wanted.items() <= job.config.items() and job.status == "queued"


def test_an_export_that_failed_is_on_the_page_of_the_next_visit(
    sqlite_store: Store, home: Path
) -> None:
    make_run(sqlite_store)
    with sqlite_store.write() as session:
        job = jobs.enqueue_job(session, "export", {})
        job.status, job.error = "failed", "no space left on the device"
        session.commit()
    assert [each.value for each in opened(sqlite_store).warning if "no space left" in each.value]


def test_a_push_that_failed_is_on_the_page_of_its_release_alone(
    sqlite_store: Store, home: Path, tmp_path: Path
) -> None:
    make_run(sqlite_store)
    release = export(sqlite_store, tmp_path / "out")["release_id"]
    for number, is_shown in ((release + 1, False), (release, True)):
        with sqlite_store.write() as session:
            job = jobs.enqueue_job(session, "push", {"release_id": number, "repo": "ada/mine"})
            job.status, job.error = "failed", "the Hub refuses the token"
            session.commit()
        found = [each.value for each in opened(sqlite_store).warning]
        assert [each.startswith(f"Job {job.id} failed") for each in found] == [True] * is_shown


def test_a_release_is_described_without_codes_and_its_path_stands_in_the_code_to_load_it(
    sqlite_store: Store, home: Path, tmp_path: Path
) -> None:
    make_run(sqlite_store)
    export(sqlite_store, tmp_path / "out")
    at = opened(sqlite_store)
    (row,) = at.dataframe[0].value.to_dict("records")
    assert (row["reviewed"], row["offline"]) == ("all but rejected", True)
    assert not [each for each in at.selectbox if each.key == "releases.reviews"]
    at.session_state["releases.new"] = True  # the drawer is opened, and counts
    at.run()
    assert at.selectbox(key="releases.reviews").options == ["all but rejected", "approved only"]
    captions = "\n".join(each.value for each in at.caption).replace("\\", "")
    assert "4 groups as parquet files · made by ada on " in captions
    assert str(tmp_path) not in captions
    assert f'load_dataset("{tmp_path / "out"}")' in "\n".join(each.value for each in at.code)
    assert "not-rejected" not in captions + "\n".join(each.value for each in at.markdown)
    with sqlite_store.write() as session:
        session.scalars(select(Release)).one().offline = False
        session.commit()
    assert not opened(sqlite_store).dataframe[0].value["offline"].any()


def test_pushes_are_told_and_a_wrong_name_is_refused(
    sqlite_store: Store, home: Path, tmp_path: Path
) -> None:
    make_run(sqlite_store)
    release = export(sqlite_store, tmp_path / "out")["release_id"]
    with sqlite_store.write() as session:
        job = jobs.enqueue_job(session, "push", {"release_id": release})
        jobs.claim_job(session, job.id)
        session.commit()
        pushed = {"pushed": True, "repo": "ada/books", "url": "https://hub/c/1", "tag": "release-1"}
        jobs.finish_job(session, job.id, 1, status="done", result=pushed)
        session.commit()
    at = opened(sqlite_store)
    assert "[ada/books](https://hub/c/1) · tag release-1" in words(at).replace("\\", "")
    assert [list(each) for each in at.dataframe[0].value["pushed_to"]] == [["ada/books"]]
    at.text_input(key="releases.repo").set_value("books").run()
    at.button(key="releases.push_start").click().run()
    assert "a repository is named USER/NAME" in words(at).replace("\\", "")
    at.text_input(key="releases.repo").set_value("ada/books").run()
    at.button(key="releases.compare").click().run()
    with sqlite_store.read() as session:
        queued = session.scalars(
            select(Job).where(Job.kind == "push", Job.status == "queued")
        ).one()
    assert queued.config["dry_run"] is True and queued.config["repo"] == "ada/books"


def test_what_changed_between_two_releases_is_told(
    sqlite_store: Store, home: Path, tmp_path: Path
) -> None:
    run_id = make_run(sqlite_store)
    with sqlite_store.write() as session:
        for pair in session.scalars(select(Pair)):
            pair.meta = {"language": "python" if pair.external_id == "q1" else "java"}
        session.commit()
    export(sqlite_store, tmp_path / "one")
    with sqlite_store.write() as session:
        reject_group(session, group_ids(sqlite_store, run_id)[0], reason="x", reviewed_by="ada")
        session.commit()
    export(sqlite_store, tmp_path / "two")
    at = opened(sqlite_store)
    at.selectbox(key="releases.before").select(1).run()
    table = at.dataframe[-1].value
    assert list(table["query_id"]) == ["q0"] and list(table["change"]) == ["removed"]
    at.session_state["releases.new"] = True  # the drawer is opened
    at.run().multiselect(key="releases.languages").select("python").run()
    assert "**1 group** selected" in words(at)


def test_a_release_of_several_runs_is_queued_in_their_order(
    sqlite_store: Store, home: Path
) -> None:
    first, second = make_run(sqlite_store), make_run(sqlite_store, name="films", kept=2)
    at = open_page("releases", dataset="books")
    at.selectbox(key="releases.run").select(first).run()
    at.multiselect(key="releases.further_runs").select(second).run()
    assert not at.exception
    assert "**6 groups** selected, before duplicates between runs are left out" in words(at)
    at.button(key="releases.start").click().run()
    with sqlite_store.read() as session:
        (job,) = jobs.list_jobs(session, kind="export")
    assert job.config["runs"] == [first, second]


def test_the_card_is_rendered_with_prompts_and_metadata_on_request(
    sqlite_store: Store, home: Path, tmp_path: Path
) -> None:
    make_run(sqlite_store)
    export(sqlite_store, tmp_path / "out")
    at = opened(sqlite_store)
    assert not at.exception
    body = [each.value for each in at.markdown]
    assert any(value.startswith("### Counts") or "\n### Counts" in value for value in body)
    assert not any(value.startswith("---") or "<details>" in value for value in body)
    assert (tmp_path / "out" / "README.md").read_text().strip() in [each.value for each in at.code]
    popovers = [each.proto.popover.label for each in at.get("popover")]
    assert "The file as it is, with its metadata (YAML)" in popovers


def test_the_card_has_its_picture_where_the_release_has_one(
    sqlite_store: Store, home: Path, tmp_path: Path
) -> None:
    make_run(sqlite_store)
    export(sqlite_store, tmp_path / "out")
    with sqlite_store.write() as session:
        (release,) = session.scalars(select(Release))
        release.card += f"\n\n![Map of the texts by role]({PICTURE})\n"
        session.commit()
    assert not [each for each in opened(sqlite_store).get("html") if "<img" in each.proto.body]
    (tmp_path / "out" / PICTURE).write_bytes(b"a picture")
    at = opened(sqlite_store)
    assert not at.exception
    (image,) = [each.proto.body for each in at.get("html") if "<img" in each.proto.body]
    assert b64encode(b"a picture").decode() in image and 'alt="Map of the texts by role"' in image


HOSTILE = "</details> $x$ :material/home: ![a](http://x/y.png)\n````\n# head\n[l](http://x)"


def test_nothing_in_a_card_becomes_a_formula_an_icon_or_a_picture() -> None:
    card = (
        "---\nlicense: x\n---\n\n# name\n\n> [!WARNING]\n> of :smile: costs $1 and $2\n\n"
        "## Counts\n`$code:s$`\n\n<details><summary>Prompt <code>a&lt;b.md</code></summary>\n\n"
        f"{fenced(HOSTILE)}\n\n</details>\n\n"
        "## Use\n\n```python\nx = '$1:a'\n```\n\n![Map](map.png)\n"
    )
    before, (name, prompt), (_, after) = parts_of(card)
    assert before == (
        "",
        "> of \\:smile: costs \\$1 and \\$2\n\n### Counts\n`$code:s$`",
    )
    assert (name, prompt) == ("a<b.md", HOSTILE)
    assert after == "### Use\n\n```python\nx = '$1:a'\n```"
