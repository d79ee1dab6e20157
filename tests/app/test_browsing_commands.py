"""`inf datasets|runs|groups|recipes|config` and what they say about names that do not exist."""

import functools
import io
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran, count_rows
from full_store import fill
from study_world import make_world

from app.access.identity import owner
from app.cli.kit.table import one_line, table
from app.cli.store import follow_log as following
from app.cli.store.follow_log import follow_log
from app.operations import jobs as operations
from curation.recipe.recipe import FOLDER
from db.events import list_events
from db.jobs import jobs
from db.people import accounts
from db.store.store import Store

NAME = "two words 世界"
PASSWORD = "correct horse battery staple"


@pytest.fixture
def world(sqlite_store: Store) -> Store:
    make_world(sqlite_store, groups=3, name=NAME)
    return sqlite_store


def test_lists_name_what_is_there(world: Store, inf: Callable[..., Ran]) -> None:
    assert inf("datasets", "list", "--json").json["datasets"][0]["dataset"] == NAME
    assert NAME in inf("datasets", "list").out and NAME in inf("runs", "list").out
    shown = inf("datasets", "show", NAME, "--json").json
    assert (shown["pairs"], shown["runs"], shown["dependents"]) == (3, [1], [])
    run = inf("runs", "show", 1, "--json").json
    assert (run["kept"], run["dropped"], run["funnel"]["waiting"]) == (2, 1, 0)
    paused = inf("runs", "list", "--dataset", NAME, "--status", "paused", "--json").json
    assert (paused["data"], paused["runs"], paused["total"]) == ([], [], 0)
    groups = inf("groups", "list", "--run", 1, "--verdict", "dropped", "--json").json
    assert groups["total"] == 1
    group = inf("groups", "show", groups["groups"][0]["group_id"], "--json").json
    assert group["verdict"] == "dropped" and group["dataset"] == NAME


@pytest.mark.parametrize(
    ("words", "there"),
    [
        (["datasets", "show", "two words"], f"existing ones: {NAME}"),
        (["datasets", "delete", ""], f"existing ones: {NAME}"),
        (["runs", "show", "7"], "the newest ones: 1"),
        (["runs", "delete", "7"], "the newest ones: 1"),
        (["runs", "unarchive", "-- -7"], "the newest ones: 1"),
        (["runs", "list", "--dataset", "x"], f"existing ones: {NAME}"),
        (["groups", "list", "--run", "7"], "the newest ones: 1"),
        (["groups", "show", "999"], "inf groups list"),
        (["groups", "list", "--run", "1", "--drop-reason", "no"], "has no drop reason"),
        (["recipes", "show", "msmarc"], "one of leetcode"),
        (["recipes", "show", "--run", "7"], "the newest ones: 1"),
        (["recipes", "check", "/"], "one of leetcode"),
        (["jobs", "logs", "7", "--follow"], "inf jobs list"),
    ],
    ids=str,
)
def test_what_does_not_exist_is_answered_with_what_does(
    world: Store, inf: Callable[..., Ran], words: list[str], there: str
) -> None:
    done = inf(*[part for word in words for part in (word.split(" ") if "-- " in word else [word])])
    assert done.code == 1 and there in done.err and "Traceback" not in done.err
    remedies = re.findall(r"`inf [^`]+`", done.err)
    assert len(remedies) == len({*remedies}), "a remedy is said once"


def test_everything_of_a_full_store_is_printed(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    fill(sqlite_store)
    for words in (
        ["datasets", "list"],
        ["datasets", "show", "world"],
        ["runs", "list"],
        ["runs", "show", 1],
        ["groups", "list", "--run", 1, "--search", "100%_"],
        ["groups", "show", 1],
    ):
        assert inf(*words).code == 0, words
        assert inf(*words, "--json").json
    assert "<script>" in inf("groups", "show", 1).out
    released = inf("releases", "show", 1).out
    assert "reviews: not-rejected, run_id: 1" in released and not {*"{[("} & {*released}


def test_a_store_without_tables_is_a_new_one(
    own_home: Path, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_DATABASE_URL", f"sqlite:///{own_home / 'none.db'}")
    told = inf("status").out
    assert "(new)" in told and told.endswith("next: `inf store upgrade`\n")


def test_delete_archives_and_says_how_it_comes_back(world: Store, inf: Callable[..., Ran]) -> None:
    done = inf("datasets", "delete", NAME)
    assert done.code == 0 and "inf datasets unarchive" in done.out
    assert NAME not in inf("datasets", "list").out and "none" not in inf("runs", "list").err
    assert "archived" in inf("datasets", "list", "--archived").out
    assert "done, archived" in inf("runs", "list", "--archived").out
    assert (
        "is archived" in inf("study", "create", "--dataset", NAME, "--items", 1, "--overlap", 1).err
    )
    assert inf("datasets", "unarchive", NAME).code == 0
    assert NAME in inf("datasets", "list").out


def test_a_dataset_of_a_release_is_not_deleted_and_the_release_is_named(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    fill(sqlite_store)
    for words in (["datasets", "delete", "world"], ["runs", "delete", "1", "--purge"]):
        done = inf(*words)
        assert done.code == 1 and "release 1" in done.err and "review" in done.err
        assert "study 1 (first study" in done.err
    assert "release 1" in inf("datasets", "show", "world").out


def test_purging_writes_the_backup_and_the_audit_log(
    world: Store, inf: Callable[..., Ran], own_home: Path
) -> None:
    done = inf("runs", "delete", 1, "--purge", "--json").json
    assert Path(done["backup"]).parent == own_home / "backups" and Path(done["backup"]).is_file()
    assert count_rows(world, "run") == 0 and count_rows(world, "pair") == 3
    with world.read() as session:
        row = list_events(session)[0][0]
    assert row.name == "run.purge" and row.actor.endswith("(local admin)")
    inf("datasets", "delete", NAME, "--purge", "--backup", own_home / "own name.zip")
    assert (own_home / "own name.zip").is_file() and count_rows(world, "dataset") == 0


@pytest.fixture
def people(world: Store) -> Store:
    with world.write() as session:
        for name, role in (("ada", "admin"), ("cleo", "curator")):
            accounts.add_account(session, name, PASSWORD, role=role, actor="test")
        session.commit()
    return world


@pytest.mark.parametrize(
    ("words", "password", "message"),
    [
        ([], PASSWORD, "--admin NAME"),
        (["--admin", "ada"], "a wrong one", "wrong name or password"),
        (["--admin", "nobody"], PASSWORD, "wrong name or password"),
        (["--admin", "cleo"], PASSWORD, "for admins"),
        (["--admin", "ada"], "", "no password"),
    ],
)
def test_where_there_are_accounts_only_an_admin_purges(
    people: Store,
    inf: Callable[..., Ran],
    monkeypatch: pytest.MonkeyPatch,
    own_home: Path,
    words: list[str],
    password: str,
    message: str,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{password}\n" if password else ""))
    done = inf("datasets", "delete", NAME, "--purge", *words)
    assert done.code == 1 and message in done.err
    assert count_rows(people, "dataset") == 1 and not (own_home / "backups").exists()


def test_an_admin_with_the_password_purges_by_name(
    people: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{PASSWORD}\n"))
    assert inf("datasets", "delete", NAME, "--purge", "--admin", "ada").code == 0
    with people.read() as session:
        row = list_events(session)[0][0]
    assert (row.actor, row.name) == ("ada", "dataset.purge")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cr3t@db.example:5/x",
        "postgresql://me:s3cr3t/@w@db.example:5/x",
        "postgresql://db.example/x?user=me&password=s3cr3t",
    ],
)
def test_the_config_shows_no_secret(
    url: str, inf: Callable[..., Ran], own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_home.mkdir()
    (own_home / "secrets.toml").write_text('HF_TOKEN = "s3cr3t-token"\nMY_OWN = "s3cr3t-own"\n')
    (own_home / "secrets.toml").chmod(0o600)
    (own_home / "prices.toml").write_text('["m"]\ninput = 1.0\noutput = 2.0\n')
    monkeypatch.setenv("OPENAI_BASE_URL", url.replace("postgresql", "https"))
    monkeypatch.setenv("OPENAI_API_KEY", "s3cr3t")
    monkeypatch.setenv("INF_RAY_ADDRESS", "")
    done = inf("config", "--json")
    assert done.code == 0 and "s3cr3t" not in done.out
    rows = {row["name"]: row for row in done.json["settings"]}
    assert rows["HF_TOKEN"]["source"] == "file"
    assert rows["OPENAI_API_KEY"]["source"] == "environment"
    assert rows["INF_RAY_ADDRESS"]["source"] == "default"
    assert rows["price of m"]["value"] == "1 in, 2 out"
    assert rows["revision"]["source"] == "store" and rows["revision"]["value"] is None
    assert rows["INF_DATABASE_URL"]["value"] == f"sqlite:///{own_home / 'inf.db'}"
    assert not (own_home / "inf.db").exists(), "looking creates no store"
    changed = inf("config", "--changed", "--json").json["settings"]
    assert all(row["source"] != "default" for row in changed)
    monkeypatch.setenv("INF_DATABASE_URL", url)
    assert "s3cr3t" not in inf("config", "INF_DATABASE_URL").out


def test_a_recipe_is_checked_and_its_mistake_named(inf: Callable[..., Ran], tmp_path: Path) -> None:
    assert inf("recipes", "check", "msmarco").code == 0
    done = inf("recipes", "check", "msmarco", "--set", "validation.max_tokens=9")
    assert done.code == 1 and "did you mean 'max_output_tokens'" in done.err
    own = tmp_path / "my recipe.toml"
    own.write_text("stages = 5\n")
    assert "is not a table" in inf("recipes", "check", own).err
    assert {row["name"] for row in inf("recipes", "list", "--json").json["recipes"]} >= {"msmarco"}
    assert "prompts" in inf("recipes", "show", "offline", "--json").json


def test_a_table_is_aligned_whatever_the_script() -> None:
    rows = [("世界", 1), ("a\nb\x1b[31m", 22), (None, 333)]
    lines = table(("name", "n"), rows, empty="none").splitlines()
    assert lines == ["name        n", "世界        1", "a b [31m   22", "–         333"]
    assert "\x1b" not in "".join(lines)
    assert one_line("x" * 100, 10) == "x" * 9 + "…"
    assert table(("a",), [], empty="none") == "none"


def test_a_log_is_followed_to_the_end_and_shows_no_secret(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "a-long-secret")
    monkeypatch.setattr(following, "POLL_SECONDS", 0.02)
    log = tmp_path / "job.log"
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    log.write_bytes("first\nsecond ü\nthird, unfin".encode())
    with sqlite_store.write() as session:
        job = jobs.enqueue_job(session, "backup", {})
        jobs.claim_job(session, job.id)
        jobs.note_log(session, job.id, 1, str(log))
        session.commit()
    seen: list[str] = []
    parts = [b"ished a-long-", b"secret\nfourth\n", b"no newline at the end"]

    def feed() -> None:
        with log.open("ab") as file:
            for each in parts:
                file.write(each)
                file.flush()
        with sqlite_store.write() as session:
            jobs.finish_job(session, job.id, 1, "done")
            session.commit()

    feeder = threading.Timer(0.2, feed)
    feeder.start()
    now = functools.partial(operations.find, owner("ada"), job.id)
    assert follow_log(now, 2, write=seen.append) == "done"
    feeder.join()
    text = "\n".join(seen)
    assert text == "first\nsecond ü\nthird, unfinished [MY_TOKEN]\nfourth\nno newline at the end"


def test_follow_prints_and_ends_with_the_status(
    sqlite_store: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    inf("backup", tmp_path / "b.zip")
    done = inf("jobs", "logs", 1, "--follow")
    assert done.code == 0 and done.out.rstrip().endswith("job 1: done")
    assert inf("jobs", "logs", 1, "--follow", "--json").code == 2


@pytest.mark.parametrize(
    ("old", "new", "line", "sentence", "remedy"),
    [
        ('["Q", "P+", "style"', '["N", "style"', "steps.'instruct'", "are a cycle", "take one of"),
        ('inputs = ["Q", "P+", "I"]', 'inputs = ["J"]', "[steps.passages]", "'J'", "name some of"),
        ('2 = "P+", 1 = "N"', '1 = "N"', "[claims.'(I, Q)']", "no passage", "name one passage"),
        (
            'over = ["N"]',
            "over = []",
            "[checks.answers]",
            "over names the texts",
            'write over = ["N"]',
        ),
        ("medium = 2", "medium = 0", "[vary.'length']", "is no weight", "raise it"),
    ],
)
def test_a_wrong_recipe_is_one_sentence_with_file_line_and_remedy(
    inf: Callable[..., Ran],
    tmp_path: Path,
    old: str,
    new: str,
    line: str,
    sentence: str,
    remedy: str,
) -> None:
    text = (FOLDER / "promptriever.toml").read_text()
    assert old in text
    own = tmp_path / "mine.toml"
    own.write_text(text.replace(old, new, 1))
    for words in (["recipes", "check", own], ["recipes", "show", own]):
        done = inf(*words)
        assert done.code == 1 and "Traceback" not in done.err
        said = " ".join(done.err.split())
        assert re.search(r"the recipe mine\.toml, line \d+, ", said) and line in said, said
        assert sentence in said and remedy in said, said
    assert "promptriever" in {
        row["name"] for row in inf("recipes", "list", "--json").json["recipes"]
    }
