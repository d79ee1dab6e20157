"""Another package adds a judge, a provider and a source; `tests/example_plugin` is that package."""

import os
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran
from curation_runs import add_dataset, run_curation, texts_of
from study_world import make_world

from curation.judges.openai_compatible import OpenAIJudge
from curation.judges.registry import JUDGES, describe_judges, judge_named
from curation.providers.registry import PROVIDERS
from curation.run.revalidation import validator_of
from curation.sources.registry import SOURCES
from db.errors import BadInput
from db.store.store import Store

PLUGIN = Path(__file__).parent.parent / "example_plugin"


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example plugin as an installer leaves it, in a folder on the path of every process."""
    site = tmp_path / "site"
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    (info / "entry_points.txt").write_text(
        "\n".join(
            "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())])
            for group, entries in project["entry-points"].items()
        )
    )
    shutil.copy(PLUGIN / "inf_studio_example.py", site)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]).rstrip(":")
    )
    monkeypatch.delitem(sys.modules, "inf_studio_example", raising=False)
    return site


def test_without_the_package_there_are_only_our_own() -> None:
    assert JUDGES.names() == [
        *("offline", "openai", "connection", "transformers", "recorded", "simulated")
    ]
    assert PROVIDERS.names() == ["offline", "openai", "recorded"]
    assert {"msmarco", "trec", "leetcode", "math"} <= set(SOURCES.names())
    assert "faq" not in SOURCES.names()


def test_a_package_adds_names_and_help_to_every_registry(plugin: Path) -> None:
    assert "longest" in JUDGES.names() and "longest: the longest candidate" in describe_judges()
    assert "sun-and-moon" in PROVIDERS.names() and "faq" in SOURCES.names()


def test_a_built_in_name_cannot_be_taken(
    plugin: Path, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    assert isinstance(judge_named("openai:gpt", sqlite_store), OpenAIJudge)
    assert JUDGES.names().count("openai") == 1


def test_a_plugin_that_cannot_be_loaded_costs_only_those_who_use_it(
    plugin: Path, sqlite_store: Store
) -> None:
    with pytest.raises(BadInput, match=r"'broken' \(inf_studio.judges: .*NOWHERE.*cannot be load"):
        judge_named("broken", sqlite_store)
    assert "broken" not in JUDGES.all()
    assert judge_named("longest", sqlite_store).name == "longest"


def test_an_object_of_another_kind_is_refused_by_name(
    plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (plugin / "inf_studio_example.py").read_text().replace("NOWHERE", "")
    (plugin / "inf_studio_example.py").write_text(text + "\nNOWHERE = FAQ\n")
    with pytest.raises(BadInput, match="is a SourceKind, not a JudgeKind"):
        JUDGES.find("broken")


@pytest.mark.long
def test_a_study_is_judged_by_a_judge_of_another_package(
    plugin: Path, sqlite_store: Store, inf_process: Callable[..., Ran]
) -> None:
    make_world(sqlite_store, 4)
    inf_process("study", "create", "--dataset", "world", "--items", 3, "--overlap", 1)
    judged = inf_process("study", "judge", "--study", 1, "--judge", "longest", "--json")
    assert (judged.json["judged"], judged.json["judge"]) == (3, "longest")
    assert "longest: the longest candidate" in " ".join(
        inf_process("study", "judge", "--help").out.split()
    )


def test_a_run_is_written_and_validated_by_a_provider_of_another_package(
    plugin: Path, sqlite_store: Store
) -> None:
    add_dataset(sqlite_store, pairs=3)
    done = run_curation(sqlite_store, dataset="small", provider="sun-and-moon")
    assert (done["status"], done["provider"], done["offline"]) == ("done", "sun-and-moon", False)
    groups = texts_of(sqlite_store, done["run_id"])
    chosen = {one[0]: one[1] for group in groups.values() for one in group[5]}
    assert chosen["instruction_negative"] == "instruction_negative"
    assert chosen["query_negative"] == "query_negative"
    assert validator_of(sqlite_store, done["run_id"]).name.startswith("longest:")


@pytest.mark.long
def test_a_collection_is_converted_by_a_source_of_another_package(
    plugin: Path, tmp_path: Path, inf_process: Callable[..., Ran]
) -> None:
    (tmp_path / "faq.txt").write_text("who lives here? | a fox lives here\nno answer\n")
    done = inf_process("convert", "faq", tmp_path / "faq.txt", "--out", tmp_path / "out", "--json")
    assert (done.json["pairs"], done.json["passages"], done.json["left_out"]) == (
        1,
        1,
        {"no bar": 1},
    )
    assert "Questions and answers" in inf_process("convert", "--help").out
