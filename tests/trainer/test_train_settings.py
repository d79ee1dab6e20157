import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from reference_pages import training_settings_page

from app.cli.trainings import train
from db.errors import BadInput
from trainer.objectives.names import OBJECTIVES, parse_objective
from trainer.settings.settings import (
    TrainSettings,
    check_processes,
    parse_settings,
    split_pairs,
)
from trainer.settings.table import GROUPS, SETTINGS, SettingFields, settings_of
from trainer.settings.template import Template


def test_the_defaults_are_the_papers() -> None:
    settings = parse_settings({})
    assert (settings.objective, settings.temperature, settings.learning_rate) == ("P", 0.05, 5e-5)
    assert (settings.query_tokens, settings.passage_tokens, settings.epochs) == (256, 512, 2.0)
    assert settings.template == "{instruction} {query}"


def test_texts_become_values() -> None:
    settings = parse_settings(
        split_pairs(["epochs=3", "rows_per_batch=4", "template={query} {instruction}"])
    )
    assert settings.epochs == 3.0 and settings.rows_per_batch == 4
    assert settings.parsed_template.apply("In metres.", "how long") == "how long In metres."


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"learning_rat": "1"}, "did you mean 'learning_rate'"),
        ({"epochs": "many"}, "epochs='many': a number is needed"),
        ({"rows_per_batch": "2.5"}, "a whole number is needed"),
        ({"rows_per_batch": "0"}, "at least 1"),
        ({"temperature": "0"}, "more than 0"),
        ({"learning_rate": "nan"}, "a finite number"),
        ({"held_out": "1"}, "held_out=1.0: it must be at least 0 and less than 1"),
        ({"seed": "-1"}, "seed=-1: it must be at least 0"),
        ({"epochs": "0"}, "more than 0: give more, or max_steps"),
        ({"held_out": "0", "evaluate_steps": "2"}, "needs held-out groups"),
        ({"template": "{instruction}"}, "has no {query}"),
        ({"template": "{instruction} {query} {other}"}, "{other}"),
        ({"template": "{query} {query} {instruction}"}, "more than one {query}"),
        ({"template": "{instruction {query}"}, "template"),
        ({"objective": "P,Q"}, "did you mean"),
        ({"instructions_sampled": "2"}, "has the term I"),
        ({"positive_counted": "as-printed"}, "only for multi"),
        ({"positive_counted": "twice", "objective": "P,I:multi"}, "one of once, as-printed"),
        ({"fsdp": "on", "texts_at_once": "5"}, "texts_at_once=0"),
        ({"fsdp": "on", "encoders": "two"}, "fsdp=on needs encoders=shared"),
        ({"fsdp": "on", "interaction": "II"}, "fsdp=on needs interaction=I"),
        ({"base_model": " "}, "base_model is empty"),
        ({"max_steps": True}, "a whole number"),
    ],
)
def test_a_conflict_is_refused_with_the_reason(given: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_settings(given)
    assert message in str(refused.value)


def test_settings_unsupported_with_several_processes_are_refused() -> None:
    shared_out = parse_settings({"fsdp": "on"})
    with pytest.raises(BadInput, match="give `nproc=2` or more"):
        check_processes(shared_out, 1)
    check_processes(shared_out, 2)
    two = parse_settings({"encoders": "two", "texts_at_once": "4"})
    with pytest.raises(BadInput, match="give texts_at_once=0, or one process"):
        check_processes(two, 2)
    check_processes(two, 1)


def test_an_argument_without_equals_or_a_key_given_twice_is_refused() -> None:
    with pytest.raises(BadInput, match="is not key=value"):
        split_pairs(["epochs"])
    with pytest.raises(BadInput, match="given twice"):
        split_pairs(["epochs=1", "epochs=2"])


def test_there_are_eleven_objectives_under_the_names_of_table_3() -> None:
    assert len(OBJECTIVES) == 11
    assert parse_objective("P,I:multi").label == "ℓ_{P,I}^multi"
    assert parse_objective("IQ").label == "ℓ_IQ"


def test_a_query_without_an_instruction_is_the_query_alone() -> None:
    assert Template().apply("", "how long") == "how long"
    assert Template().instruction_first and not Template("{query} {instruction}").instruction_first


def test_braces_in_a_text_are_kept() -> None:
    assert Template().apply("Give {x}.", "{query}") == "Give {x}. {query}"


def test_the_table_alone_knows_names_types_and_defaults() -> None:
    assert [name for group in GROUPS for name in (s.name for s in settings_of(group))] == [
        field.name for field in dataclasses.fields(TrainSettings)
    ]
    assert dataclasses.fields(TrainSettings)[0].default == SETTINGS["base_model"].default
    assert not set(TrainSettings.__annotations__) and TrainSettings.__base__ is SettingFields


def test_every_default_is_allowed_and_every_help_is_a_sentence() -> None:
    for setting in SETTINGS.values():
        assert setting.parse(str(setting.default)) == setting.default
        setting.check(setting.default)
        assert setting.help[0].isupper() and setting.help.endswith((".", ")."))
        assert setting.label[0].isupper() and "None" not in setting.help


def test_the_help_of_the_command_has_every_setting_with_its_default_and_range() -> None:
    shown = CliRunner().invoke(train, ["--help"], terminal_width=500).output
    for setting in SETTINGS.values():
        (line,) = [row for row in shown.splitlines() if row.split()[:1] == [setting.name]]
        assert setting.help in line and str(setting.default) in line and setting.range_text in line


def test_the_documented_table_is_the_table() -> None:
    file = next((Path(__file__).parents[2] / "docs").rglob("training-settings.md"))
    assert file.read_text(encoding="utf-8") == training_settings_page(), (
        f"write it again: python tests/reference_pages.py training-settings > {file}"
    )


def test_the_table_loads_no_torch() -> None:
    code = "import sys, trainer.settings.settings; sys.exit('torch' in sys.modules)"
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], cwd=root, env=os.environ, check=True)
