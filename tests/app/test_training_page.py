"""The Train page: presets, checks before a job, estimates, sweeps and their leaderboard."""

import tomllib

import pytest
from app_pages import open_drawers, open_page, page_path, sign_in, words
from full_store import fill
from sqlalchemy import select
from streamlit.testing.v1 import AppTest

from app.access.identity import owner
from app.jobs import supervisors
from app.jobs_page.curves import smoothed
from app.operations import trainings as trainings_of
from app.operations.overview.demo import store_recorded_training
from app.training.actions import as_command, as_toml
from app.training.form import MAIN
from app.training.sweeps import job_name
from app.training.wording import equation
from db.errors import BadInput
from db.jobs import jobs
from db.release.releases import licence_of_card
from db.store.store import Store
from db.tables import Checkpoint, Job
from trainer.launch.forecast import Forecast, forecast
from trainer.launch.request import TrainSweep
from trainer.objectives.names import ALL_OBJECTIVES, OBJECTIVES
from trainer.settings.experiment_files import list_experiments, read_experiment
from trainer.settings.settings import TrainSettings, parse_settings
from trainer.settings.table import GROUPS, SETTINGS


@pytest.fixture
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are queued, no supervisor takes them."""
    monkeypatch.setattr(supervisors, "ensure_supervisor", lambda store: None)


DRAWERS = ("train.new", "train.advanced", "train.sweep_drawer")


def trainings(store: Store) -> list[Job]:
    with store.read() as session:
        return jobs.list_jobs(session, kind="train", statuses=("queued",))


def open_form() -> AppTest:
    """The Train page with every drawer open."""
    at = open_page("train")
    for drawer in DRAWERS:
        at.session_state[drawer] = True
        at.run()
    assert not at.exception
    return at


def field_keys(at: AppTest) -> set[str]:
    return {field.key for field in (*at.text_input, *at.selectbox)}


@pytest.mark.long
def test_fields_are_sent_once_their_drawer_is_opened_and_kept_while_it_is_folded(
    sqlite_store: Store,
) -> None:
    fill(sqlite_store)
    at = open_page("train")
    assert not field_keys(at) & {"train.base_model", "train.seed", "train.sweep_name"}
    at.session_state["train.new"] = True
    at.run()
    assert "train.base_model" in field_keys(at)
    assert not field_keys(at) & {"train.seed", "train.sweep_name"}
    at = open_form()
    at.text_input("train.seed").set_value("7").run()
    at.text_input("train.max_steps").set_value("9").run()
    at.text_input("train.sweep_name").set_value("mine").run()
    for drawer in reversed(DRAWERS):
        at.session_state[drawer] = False
        at.run()
        assert not at.exception
    at.session_state["train.new"] = True
    at.run()
    assert "max_steps=9" in words(at) and "seed=7" in words(at)
    assert at.text_input("train.sweep_name").value == "mine"


def test_every_setting_of_the_table_has_a_field_with_its_label_and_help(
    sqlite_store: Store,
) -> None:
    fill(sqlite_store)
    at = open_form()
    labels = {field.key: field.label for field in (*at.text_input, *at.selectbox)}
    shown = words(at).replace("\\", "")
    for name, setting in SETTINGS.items():
        assert labels[f"train.{name}"] == setting.label
        assert setting.help.replace("`", "") in shown.replace("`", "")


def test_four_settings_and_the_preset_are_open_and_the_estimate_stands_beside_the_button(
    sqlite_store: Store,
) -> None:
    fill(sqlite_store)
    at = open_page("train")
    at.session_state["train.new"] = True
    at.run()
    (advanced,) = [each for each in at.expander if each.label == "Advanced"]
    assert not advanced.proto.expanded and not advanced.children
    at = open_form()
    (advanced,) = [each for each in at.expander if each.label == "Advanced"]
    folded = {field.key for field in (*advanced.text_input, *advanced.selectbox)}
    shown = {f"train.{name}" for name in SETTINGS} - folded
    assert shown == {f"train.{name}" for name in MAIN} and len(MAIN) == 4
    assert "train.preset" not in folded
    assert [tab.label for tab in advanced.tabs] == list(GROUPS)
    order = [getattr(each, "key", None) or str(getattr(each, "value", "")) for each in at.main]
    place = order.index("train.estimate")
    assert order[place - 1] == "train.start" and order[place + 1].startswith("about ")


@pytest.mark.long
def test_the_form_becomes_a_job_with_all_its_settings(
    sqlite_store: Store, nothing_starts: None
) -> None:
    fill(sqlite_store)
    at = open_form()
    at.text_input("train.max_steps").set_value("7").run()
    at.selectbox("train.objective").select("P,I:multi").run()
    at.button("train.start").click().run()
    assert not at.exception
    job = trainings(sqlite_store)[0]
    settings = parse_settings(job.config["settings"])
    assert (settings.max_steps, settings.objective) == (7, "P,I:multi")
    assert job.started_by == "local admin"


def test_a_config_that_fails_validation_never_becomes_a_job(
    sqlite_store: Store, nothing_starts: None
) -> None:
    fill(sqlite_store)
    at = open_form()
    at.text_input("train.template").set_value("{query} only").run()
    assert "instruction" in at.error[0].value
    assert at.button("train.start").disabled
    assert not trainings(sqlite_store)


def test_a_models_own_code_is_run_for_an_admin_only(
    sqlite_store: Store, nothing_starts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite_store)
    sign_in(sqlite_store, monkeypatch, "curator")
    at = open_form()
    at.selectbox("train.remote_code").select("run").run()
    at.button("train.start").click().run()
    assert any("an admin" in error.value for error in at.error)
    assert not trainings(sqlite_store)
    at.selectbox("train.remote_code").select("refuse").run()
    at.button("train.start").click().run()
    assert len(trainings(sqlite_store)) == 1


def test_a_model_that_cannot_fit_is_refused(sqlite_store: Store, nothing_starts: None) -> None:
    fill(sqlite_store)
    at = open_form()
    at.text_input("train.base_model").set_value("Qwen/Qwen2.5-3B").run()
    huge = forecast(TrainSettings(base_model="Qwen/Qwen2.5-3B"), 20, [], 16e9)
    assert not huge.fits
    if any("cannot fit" in error.value for error in at.error):
        assert at.button("train.start").disabled


def test_a_preset_fills_the_form_with_the_papers_row(sqlite_store: Store) -> None:
    fill(sqlite_store)
    at = open_form()
    at.selectbox("train.preset").select("table2-modernbert-base").run()
    assert at.text_input("train.base_model").value == "answerdotai/ModernBERT-base"
    assert at.selectbox("train.objective").value == "P,I,IQ:multi"
    assert at.text_input("train.rows_per_batch").value == "32"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("epochs", "2,5", "epochs='2,5': a number is needed"),
        ("max_steps", "", "max_steps='': a whole number is needed"),
        ("learning_rate", "-1", "learning_rate=-1.0: it must be more than 0"),
        ("template", "{query}", "template '{query}' has no {instruction}"),
    ],
)
def test_what_is_wrong_stands_under_its_field_and_above_the_button(
    sqlite_store: Store, name: str, value: str, told: str
) -> None:
    fill(sqlite_store)
    at = open_form()
    at.text_input(f"train.{name}").set_value(value).run()
    assert words(at).replace("\\", "").count(told) == 2
    assert at.button("train.start").disabled


def test_an_objective_is_offered_by_its_sign_and_an_interaction_by_its_name(
    sqlite_store: Store,
) -> None:
    """Both have an option I."""
    fill(sqlite_store)
    at = open_form()
    assert at.selectbox("train.interaction").options == ["I", "II"]
    assert ALL_OBJECTIVES["I"].label in at.selectbox("train.objective").options


@pytest.mark.parametrize("name", list_experiments())
def test_the_shown_file_reads_back_as_the_same_settings(name: str) -> None:
    settings = parse_settings(read_experiment(name))
    assert parse_settings(tomllib.loads(as_toml(settings))) == settings
    assert f"base_model={settings.base_model}" in as_command(settings, 3)


def test_a_quote_or_backslash_in_a_text_survives_the_shown_file() -> None:
    settings = parse_settings({"query_prefix": 'say "x" \\ '})
    assert parse_settings(tomllib.loads(as_toml(settings))) == settings


@pytest.mark.long
def test_a_sweep_queues_every_combination_and_the_leaderboard_orders_them(
    sqlite_store: Store, nothing_starts: None
) -> None:
    fill(sqlite_store)
    at = open_form()
    at.text_input("train.sweep_name").set_value(" ").run()
    assert "sweep has no name" in at.error[0].value
    assert at.button("train.sweep_start").disabled
    at.text_input("train.sweep_name").set_value("table 3").run()
    assert at.button("train.sweep_start").label == "Queue 11 trainings"
    at.button("train.sweep_start").click().run()
    assert not at.exception and not at.error
    queued = trainings(sqlite_store)
    assert {job.config["settings"]["objective"] for job in queued} == set(OBJECTIVES)
    assert "held out of the training" in words(at)
    with sqlite_store.write() as session:
        for job, reached in zip(queued, (0.2, 0.9), strict=False):
            found = session.get_one(Job, job.id)
            found.status, found.result = "done", {"held_out": {"after": {"ndcg@10": reached}}}
        session.commit()
    at = open_page("train")
    at.selectbox("train.sweep_chosen").select("table 3").run()
    (shown,) = [table.value for table in at.dataframe if "sweep" in table.value]
    assert shown["ndcg@10"].tolist()[:2] == [0.9, 0.2] and len(shown) == 11


def test_a_sweep_of_nothing_or_of_too_much_is_refused() -> None:
    with pytest.raises(BadInput, match="0 trainings"):
        TrainSweep.read({"release": "1", "name": "a", "objectives": ()})
    with pytest.raises(BadInput, match="choose 1 to 200"):
        TrainSweep.read({"release": "1", "name": "a", "objectives": ("P",), "seeds": range(201)})
    with pytest.raises(BadInput, match="seeds"):
        TrainSweep.read({"release": "1", "name": "a", "seeds": ("x",)})


def test_steps_time_and_memory_by_hand() -> None:
    """100 groups, a tenth held out: 90 in batches of 8 are 12 steps an epoch, 24 in two.

    An earlier training took 50 s for 10 steps of 4 groups: 1.25 s a group; 24 · 8 · 1.25 = 240 s.
    MiniLM: 22.7 million parameters of 16 bytes are 363.2 MB.
    """
    earlier = Checkpoint(
        path="x",
        base_model=TrainSettings().base_model,
        config={"rows_per_batch": 4},
        summary={"steps": 10, "seconds": 50.0},
    )
    found = forecast(TrainSettings(), 100, [earlier], 1e9)
    assert found == Forecast(24, 240.0, 1, 22.7e6 * 16, 1e9)
    assert found.fits
    small = forecast(TrainSettings(lora_rank=8, encoders="two"), 100, [], 1e9)
    assert small.least_bytes == 2 * 22.7e6 * 2  # frozen, maybe stored in 16 bits
    for given, each in (
        ({}, 16),
        ({"optimizer": "adamw-8bit"}, 10),
        ({"base_share": 0.5}, 20),
        ({"freeze": "*embeddings*"}, 4),
        ({"lora_rank": 8, "quantize": "4bit"}, 0.5),
        ({"lora_rank": 8, "base_share": 0.5}, 4),
    ):
        assert forecast(TrainSettings(**given), 100, [], 1e9).least_bytes == 22.7e6 * each, given
    assert forecast(TrainSettings(fsdp="on"), 100, [], 1e9).least_bytes is None
    unknown = forecast(TrainSettings(base_model="no/such"), 100, [earlier], 1e9)
    assert unknown.seconds is None and unknown.least_bytes is None and unknown.fits


def test_smoothing_is_a_weighted_mean_of_the_past() -> None:
    """Weight 0.5 over 4, 1, 1: 4; (4·½ + 1)/(½ + 1) = 2; (4·¼ + 1·½ + 1)/1.75 = 2.5/1.75."""
    values = [(1, 4.0), (2, 1.0), (3, 1.0)]
    assert smoothed(values, 0.0) == values
    assert [value for _, value in smoothed(values, 0.5)] == pytest.approx([4, 2, 2.5 / 1.75])


@pytest.mark.parametrize("name", ALL_OBJECTIVES)
def test_an_equation_names_every_term_of_its_objective(name: str) -> None:
    latex = equation(ALL_OBJECTIVES[name])
    assert all(term in latex for term in ALL_OBJECTIVES[name].terms)
    assert latex.count("{") == latex.count("}")


def test_the_chosen_release_is_told_with_its_splits_licence_and_approved_share(
    sqlite_store: Store,
) -> None:
    fill(sqlite_store)
    shown = words(open_form()).replace("\\", "")
    for told in ("20 groups", "splits: world 1", "licence: cc0-1.0", "100% approved by a person"):
        assert told in shown


def test_a_watched_training_shows_its_batch_and_where_its_probes_stand(
    sqlite_store: Store,
) -> None:
    fill(sqlite_store)
    probe = {
        "query": "how long is it",
        "instruction_positive": "Give the figure.",
        "instruction_negative": "No <b>figures</b>.",
        "passage": "It is 80 metres long.",
        "passages": 6,
    }
    with sqlite_store.write() as session:
        job = jobs.list_jobs(session, kind="train")[0]
        job.shown = {"batch": {"passages": ["[CLS] it is 80 [SEP]"]}, "probes": [probe]}
        for name, ranks in (("asked", (3, 1)), ("other", (2, 5))):
            for step, rank in enumerate(ranks):
                jobs.record_metrics(session, job.id, step, {f"probe/0/{name}": rank})
        session.commit()
    at = open_drawers(open_page("train"), "train.batch", "train.probes_drawer")
    shown = words(at)
    assert "[CLS] it is 80 [SEP]" in shown and "No &lt;b&gt;figures&lt;/b&gt;." in shown
    rows = [table.value for table in at.dataframe if "Rank under its instruction" in table.value]
    assert rows[0]["Rank under its instruction"].tolist() == ["3 → 1"]
    assert rows[0]["Rank under the contrasting one"].tolist() == ["2 → 5"]


def test_no_curve_is_drawn_of_fewer_than_three_points(sqlite_store: Store) -> None:
    with sqlite_store.write() as session:
        job = jobs.enqueue_job(session, "train", {"settings": {"seed": 1}})
        job.status = "done"
        for step in range(1, 11):
            jobs.record_metrics(session, job.id, step, {"loss": 1 / step})
        session.commit()
    at = open_page("train")
    assert len(at.get("plotly_chart")) == 1
    at.segmented_control("train.curves.part").set_value("Last tenth").run()
    assert not at.exception and not at.get("plotly_chart"), "two points"
    at.segmented_control("train.curves.part").set_value("Last half").run()
    assert len(at.get("plotly_chart")) == 1


def test_folded_figures_come_once_they_are_opened(sqlite_store: Store) -> None:
    """Drawn with the page, they made an empty browser wait for 0.4 s more."""
    fill(sqlite_store)
    at = open_page("train")
    assert len(at.get("plotly_chart")) == 1  # the loss
    at = open_drawers(at, "train.curves.more", "train.frontier_drawer")
    assert len(at.get("plotly_chart")) == 5


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ("---\nlicense: cc0-1.0\n---\n# x", "cc0-1.0"),
        ('---\nlicense: other\nlicense_name: "house rules"\n---\n', "house rules"),
        ("# no head\nlicense: mit", ""),
        ("", ""),
    ],
)
def test_the_licence_is_read_from_the_cards_head(card: str, licence: str) -> None:
    assert licence_of_card(card) == licence


@pytest.mark.long
def test_on_a_cluster_several_processes_train_together_and_its_memory_is_not_ours(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite_store)
    monkeypatch.setenv("INF_RAY_ADDRESS", "http://127.0.0.1:8265")
    monkeypatch.setattr(supervisors, "ensure_ray_supervisor", lambda store, address: None)
    at = open_form()
    at.text_input("train.base_model").set_value("Qwen/Qwen2.5-3B").run()
    at.text_input("train.workers").set_value("4").run()
    shown = words(at)
    assert "--launcher ray --address http://127.0.0.1:8265 --workers 4" in shown
    assert "more than 49.4 GB of memory (in each process)" in shown.replace("\\", "")
    at.text_input("train.workers").set_value("0").run()
    assert "workers='0': it should be greater than or equal to 1" in at.error[0].value.replace(
        "\\", ""
    )
    assert at.button("train.start").disabled
    at.text_input("train.workers").set_value("4").run()
    at.button("train.start").click().run()
    assert not at.exception
    (job,) = trainings(sqlite_store)
    assert job.config["workers"] == 4 and job.launcher == "http://127.0.0.1:8265"


def test_a_trained_model_is_pushed_from_its_training(
    sqlite_store: Store, nothing_starts: None
) -> None:
    fill(sqlite_store)
    with sqlite_store.write() as session:
        checkpoint = session.scalars(
            select(Checkpoint).where(Checkpoint.job_id.is_not(None))
        ).first()
        assert checkpoint is not None
        number, job = checkpoint.id, checkpoint.job_id
        session.commit()
    at = open_page("train", job=str(job))
    at.text_input(key="train.model.repo").set_value("lab").run()
    at.button(key="train.model.push_start").click().run()
    assert "a repository is named USER/NAME" in words(at).replace("\\", "")
    at.text_input(key="train.model.repo").set_value("lab/mine").run()
    at.button(key="train.model.push_start").click().run()
    assert not at.exception
    with sqlite_store.read() as session:
        (queued,) = jobs.list_jobs(session, kind="push", statuses=("queued",))
    assert queued.config["checkpoint_id"] == number and queued.config["repo"] == "lab/mine"
    assert not queued.config["dry_run"]


def test_any_training_can_be_watched_by_the_page_and_by_its_address(sqlite_store: Store) -> None:
    """Twenty-two trainings; the page offers the twenty newest, and what the address names."""
    with sqlite_store.write() as session:
        for seed in range(22):
            job = jobs.enqueue_job(session, "train", {"settings": {"seed": seed}})
            job.status = "done"
        session.commit()
    at = open_page("train", job="1")
    assert at.selectbox("train.watched").value == "1" and "**Job 1**" in words(at)
    assert "No curve: " in words(at) and not at.get("slider")  # nothing to smooth
    at.selectbox("train.watched").set_value("22").run()
    assert not at.exception and "**Job 22**" in words(at) and "**Job 1**" not in words(at)
    assert at.query_params["job"] == "22"
    assert at.multiselect("train.others").options[0].startswith("job 21")
    at.multiselect("train.others").set_value([21, 20]).run()
    at.switch_page(page_path("home")).run()
    at.switch_page(page_path("train")).run()
    assert at.multiselect("train.others").value == [21, 20], "what is compared stays pinned"
    assert at.query_params["others"] == "21,20"
    linked = open_page("train", job="3", others="1,5")
    assert not linked.exception and linked.multiselect("train.others").value == [1, 5]
    at.selectbox("train.watched").set_value("21").run()
    assert not at.exception and at.multiselect("train.others").value == [20]


def test_the_page_opens_on_the_newest_good_training_and_names_a_failed_one_with_its_remedy(
    sqlite_store: Store,
) -> None:
    with sqlite_store.write() as session:
        for status in ("done", "cancelled", "failed"):
            job = jobs.enqueue_job(session, "train", {"settings": {}})
            job.status = status
        job.error, job.remedy = "the GPU's memory is full", "lower `rows_per_batch=`"
        session.commit()
    at = open_page("train")
    assert at.selectbox("train.watched").value == "1" and "**Job 1**" in words(at)
    (told,) = [each.value.replace("\\", "") for each in at.warning]
    assert told.startswith("Job 3 failed: the GPU's memory is full. Lower"), told
    at = open_page("train", job="3")
    assert "**Job 3**" in words(at) and not at.warning, "its own card has all of it"
    with sqlite_store.write() as session:
        session.get_one(Job, 1).status = "failed"
        session.commit()
    at = open_page("train")
    assert "**Job 3**" in words(at) and not at.warning, "none ended well: the newest"


def test_the_name_of_a_training_stays_the_same_while_it_runs(sqlite_store: Store) -> None:
    config = {"settings": {"objective": "P,I:multi", "seed": 3}}
    with sqlite_store.write() as session:
        job = Job(kind="train", config=config, started_by="ann")
        job.id = 7
        session.add(job)
        session.commit()
    names = set()
    for status in ("queued", "running", "done"):
        with sqlite_store.write() as session:
            session.get_one(Job, 7).status = status
            session.commit()
        names.add(job_name(trainings_of.show(owner("ann"), 7)))
    assert names == {"job 7 · P,I:multi · seed 3"}


def test_a_recorded_training_is_labelled_in_the_choice_and_above_its_scores(
    sqlite_store: Store,
) -> None:
    fill(sqlite_store)
    store_recorded_training(owner("test"))
    at = open_page("train")
    assert not at.exception
    (training, *_) = trainings_of.list_some(owner("test")).data
    assert training.checkpoint_id is None and job_name(training).endswith("recorded")
    shown = trainings_of.show(owner("test"), training.id)
    assert isinstance(shown.result, dict)
    shown_above = [each.value.replace("\\", "") for each in at.info]
    assert shown.result["recorded"] in shown_above, shown_above
