"""Verdict versions of runs whose rules drop single texts: the texts of a new run, nothing asked."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from curation_runs import add_dataset, run_curation, slots_of, texts_of
from decided_runs import ME, decide, require_whole
from exporting import export, rows_of
from openai_server import Server
from records_world import list_groups
from sqlalchemy import select

from app.operations import runs
from curation.recipe.recipe import FOLDER
from db.errors import Refused
from db.run.group_detail import get_group
from db.run.versions import VersionChoice, VersionComparison
from db.shape import SPARE, STANDS_IN
from db.store.store import Store
from db.tables import Group, Pair, SlotText, TextVerdict, VerdictVersion

PAIRS = 24
FAULTS = {"wrong_form": 0.04}
# P1 is written by the run, and B takes its place where it fails
WRITTEN = """
name = "written"
[texts]
"Q" = { field = "query", column = "query", from_source = true }
"P+" = { field = "passage", column = "passage", from_source = true }
"I" = { field = "instruction", column = "instruction" }
"J" = { field = "instruction", column = "other_instruction" }
"P1" = { field = "passage", column = "other" }
"B" = { field = "passage", column = "backup" }
[steps.instruct]
gives = ["I"]
inputs = ["Q", "P+"]
model = "small"
prompt = "instruct.md"
[steps.turn]
gives = ["J"]
inputs = ["Q", "I"]
model = "small"
prompt = "turn.md"
[steps.passages]
gives = ["P1", "B"]
inputs = ["Q", "J"]
model = "small"
prompt = "passages.md"
[checks.fits]
question = "yes_no"
prompt = "promptriever_fits.md"
model = "small"
over = ["P1", "B"]
with = ["J", "Q"]
expected = { "P1" = "yes", "B" = "yes" }
[rules]
"P1" = "else B"
[claims]
"(I, Q)" = { 2 = "P+" }
"(J, Q)" = { 2 = "P1" }
[validation]
distractors = 0
"""
PROMPTS = {
    "instruct.md": "Query: {query}\nDocument: {passage}\nInstruction: <your instruction>\n",
    "turn.md": "Query: {query}\nInstruction: {instruction}\nInstruction: <your new instruction>\n",
    "passages.md": "Keys: other, backup\nQuery: {query}\nInstruction: {other_instruction}\n",
    "answers.md": "Query: {query}\nInstruction: {instruction}\n<passage>\n{passage}\n</passage>\n"
    "Score: <a number>\n",
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(schema="taken", faults=FAULTS, seed=7) as one:
        monkeypatch.setenv("OPENAI_BASE_URL", one.url)
        yield one


ASKED: dict[str, Any] = {"dataset": "small", "provider": "openai", "recipe": "promptriever"}
SETTINGS = ["model=small", "checks.fits.votes=3"]


def ended(store: Store, run_id: int) -> dict[str, Any]:
    """By query: how its group ended, all its texts, and why those of lists are not the group's."""
    slots = slots_of(store, run_id)
    with store.read() as session:
        rows = session.execute(
            select(Group.id, Pair.external_id, Group.verdict, Group.drop_reason)
            .join(Pair, Pair.id == Group.pair_id)
            .where(Group.run_id == run_id)
        ).all()
        texts = {row[0]: get_group(session, row[0]).texts for row in rows}
    return {row[1]: (row[2], row[3], texts[row[0]], slots.get(row[0])) for row in rows}


def require_texts_whole(store: Store, run_id: int) -> int:
    """As `require_whole`, and of the lists' texts: the run has exactly what its version holds."""
    used = require_whole(store, run_id)
    with store.read() as session:
        of_run = select(SlotText.group_id, SlotText.slot, SlotText.ordinal, SlotText.dropped_reason)
        now = {
            tuple(row[:3]): row[3]
            for row in session.execute(
                of_run.join(Group, Group.id == SlotText.group_id).where(
                    Group.run_id == run_id, SlotText.slot.in_(["B", "N"])
                )
            )
        }
        for row in session.scalars(select(VerdictVersion).where(VerdictVersion.run_id == run_id)):
            held = {
                (one.group_id, one.slot, one.ordinal): one.dropped_reason
                for one in session.scalars(
                    select(TextVerdict).where(TextVerdict.version_id == row.id)
                )
            }
            assert held.keys() == now.keys()
            assert row.number != used or held == now
    return used


RULES = (
    ("checks.fits.expected.N=any",),
    ("checks.fits.expected.P+=no",),  # the backup where the passage fits, else nothing
    ("checks.fits.expected.B=no", "checks.answers.expected.N=no"),
    ("checks.fits.votes=1",),
    ("filters.max_passage_words=9",),
    ("filters.max_passage_words=18", "checks.fits.expected.N=any"),
)


@pytest.mark.long
def test_a_run_decided_again_has_the_texts_of_a_new_run_by_these_rules(
    store: Store, server: Server
) -> None:
    add_dataset(store, pairs=PAIRS)
    run_id = run_curation(store, **ASKED, settings=SETTINGS)["run_id"]
    first, answered = ended(store, run_id), server.answered.total()
    places = Counter(str(one[3]["B"][1]) for one in first.values() if "B" in one[3])
    assert places[SPARE] and places[STANDS_IN], places
    seen = set()
    for number, rules in enumerate(RULES, 2):
        before = ended(store, run_id)
        found = decide(run_id, *rules)
        again = ended(store, run_id)
        new = run_curation(store, **ASKED, settings=[*SETTINGS, *rules])
        assert new["calls"]["made"] == 0 and server.answered.total() == answered
        expected = ended(store, new["run_id"])
        for name, group in again.items():
            assert group == expected[name], (rules, name)
        assert found.version == require_texts_whole(store, run_id) == number
        changed = sum(each.texts for each in found.texts if each.first != each.second)
        pairs = [
            (was[1], now[1])
            for name, group in again.items()
            for key, was in before[name][3].items()
            for now in [group[3][key]]
            if key[0] in "BN"
        ]
        assert changed == sum(was != now for was, now in pairs) > 0, rules
        assert sum(each.texts for each in found.texts) == len(pairs)
        seen.add(str(again))
    assert len(seen) == len(RULES)
    runs.use_version(ME, VersionChoice(run_id=run_id, number=1))
    assert ended(store, run_id) == first and require_texts_whole(store, run_id) == 1


def test_a_preview_and_a_comparison_name_the_texts_that_end_otherwise(
    store: Store, server: Server
) -> None:
    add_dataset(store, pairs=PAIRS)
    run_id = run_curation(store, **ASKED, settings=SETTINGS)["run_id"]
    first = ended(store, run_id)
    rule = "checks.fits.expected.N=any"
    preview = decide(run_id, rule, preview=True)
    assert preview.version is None and ended(store, run_id) == first
    done = decide(run_id, rule)
    assert done.texts == preview.texts and done.only_in_first == done.only_in_second == 0
    back = next(each for each in done.texts if (each.first, each.second) == ("check_fits", "kept"))
    compared = runs.compare_versions(ME, VersionComparison(run_id=run_id), limit=None)
    assert compared.texts == done.texts
    listed = [
        (each.name, (each.first, each.second))
        for group in compared.groups.data
        for each in group.texts
    ]
    changed = sum(each.texts for each in done.texts if each.first != each.second)
    assert len(listed) == changed >= back.texts > 0
    assert {name.partition("[")[0] for name, _ in listed} == {"N"}
    assert {ends for _, ends in listed} <= {("check_fits", "kept"), ("unparsable", "kept")}
    both_kept = VersionComparison(run_id=run_id, was="kept", now="kept")
    listed_kept = runs.compare_versions(ME, both_kept, limit=None).groups
    assert 0 < listed_kept.total <= compared.groups.total
    other_way = runs.compare_versions(ME, VersionComparison(run_id=run_id, first=2, second=1))
    assert {(one.second, one.first, one.texts) for one in other_way.texts} == {
        (one.first, one.second, one.texts) for one in compared.texts
    }


def test_commands_count_the_texts(
    sqlite_store: Store, server: Server, inf: Callable[..., Any]
) -> None:
    add_dataset(sqlite_store, pairs=PAIRS)
    run_id = str(run_curation(sqlite_store, **ASKED, settings=SETTINGS)["run_id"])
    shown = inf("runs", "show", run_id).out
    assert "their lists' texts" in shown and "spare: it stands in for" in shown
    decided = inf("runs", "decide", run_id, "--set", "checks.fits.expected.N=any")
    assert decided.code == 0 and "check_fits: " in decided.out, decided.out
    compared = inf("runs", "compare-versions", run_id, "--was", "kept", "--now", "kept").out
    assert "N[1]: check_fits → kept" in compared, compared
    texts = json.loads(inf("runs", "show", run_id, "--json").out)["texts"]
    kept = [g for g in ended(sqlite_store, int(run_id)).values() if g[0] == "kept"]
    assert texts["kept"] == sum(name[0] == "N" for group in kept for name in group[2])


@pytest.mark.long
def test_a_release_has_the_texts_of_the_version_and_says_which(
    store: Store, server: Server, tmp_path: Path
) -> None:
    add_dataset(store, pairs=PAIRS)
    run_id = run_curation(store, **ASKED, settings=SETTINGS)["run_id"]
    config: dict[str, Any] = {"dataset": "small", "runs": [run_id], "format": "jsonl"}
    counts = {}
    for version, rule in ((1, None), (2, "checks.fits.expected.N=any"), (1, None)):
        if rule:
            decide(run_id, rule)
        else:
            runs.use_version(ME, VersionChoice(run_id=run_id, number=version))
        out = tmp_path / f"{version}-{len(counts)}"
        made = export(store, out, **config)
        rows = [row for row in rows_of(out)["small"] if row["has_instruction"]]
        kept = {
            query: group[2] for query, group in ended(store, run_id).items() if group[0] == "kept"
        }
        assert len(rows) == len(kept) == made["groups"]
        negatives = sum(len(row["negative_passages"]) for row in rows)
        assert negatives == sum(name.startswith("N") for texts in kept.values() for name in texts)
        counts.setdefault(version, set()).add((negatives, made["content_sha256"]))
    assert len(counts[1]) == 1 and counts[1] != counts[2]
    (one,), (two,) = counts[1], counts[2]
    assert two[0] > one[0]
    assert [len(row.releases) for row in runs.list_versions(ME, run_id).data] == [2, 1]


def recipe_in(folder: Path, text: str) -> str:
    for name, prompt in PROMPTS.items():
        (folder / name).write_text(f"You write and judge.\n---\n{prompt}")
    (folder / "own.toml").write_text(text)
    return str(folder / "own.toml")


def test_a_scored_threshold_moves_texts_out_and_back(
    sqlite_store: Store, tmp_path: Path, server: Server
) -> None:
    add_dataset(sqlite_store, pairs=PAIRS)
    text = (FOLDER / "promptriever.toml").read_text()
    head, _, rest = text.partition("[checks.answers]")
    scored = """[checks.violates]
question = "score"
prompt = "answers.md"
model = "small"
over = ["N"]
with = ["I", "Q"]
expected = { "N" = "< 0.5" }
"""
    head = head.replace('over = ["P+", "B", "N"]', 'over = ["P+", "B"]').replace(', "N" = "no"', "")
    own = recipe_in(tmp_path, head + scored + rest[rest.index("[rules]") :])
    asked = {"dataset": "small", "provider": "openai", "recipe": own, "settings": ["model=small"]}
    run_id = run_curation(sqlite_store, **asked)["run_id"]
    first = ended(sqlite_store, run_id)
    kept = []
    for at in (0.1, 0.3, 0.95):
        decide(run_id, f"checks.violates.expected.N=< {at}")
        require_texts_whole(sqlite_store, run_id)
        texts = [group[2] for group in ended(sqlite_store, run_id).values() if group[0] == "kept"]
        kept.append(sum(name.startswith("N") for group in texts for name in group))
    assert kept == sorted(kept) and len(set(kept)) == 3, kept
    runs.use_version(ME, VersionChoice(run_id=run_id, number=1))
    assert ended(sqlite_store, run_id) == first


@pytest.mark.long
def test_a_written_text_comes_back_from_its_stand_in(
    store: Store, tmp_path: Path, server: Server
) -> None:
    add_dataset(store, pairs=PAIRS)
    asked = {
        "dataset": "small",
        "provider": "openai",
        "recipe": recipe_in(tmp_path, WRITTEN),
    }
    run_id = run_curation(store, **asked)["run_id"]
    first = ended(store, run_id)
    stood_in = {q for q, group in first.items() if group[3].get("B", ("", ""))[1] == STANDS_IN}
    assert 2 < len(stood_in) < PAIRS - 2
    rules = ["checks.fits.expected.P1=any"]
    decide(run_id, *rules)
    new = run_curation(store, **asked, settings=rules)
    assert new["calls"]["made"] == 0
    again = ended(store, run_id)
    assert again == ended(store, new["run_id"])
    assert all(again[q][2]["P1"] != again[q][3]["B"][0] for q in stood_in)
    shorter = ["filters.max_passage_words=15"]
    decide(run_id, *shorter)
    new = run_curation(store, **asked, settings=shorter)
    now, by_run = ended(store, run_id), ended(store, new["run_id"])
    assert {q: one[0] for q, one in now.items()} == {q: one[0] for q, one in by_run.items()}
    runs.use_version(ME, VersionChoice(run_id=run_id, number=1))
    assert ended(store, run_id) == first


def test_texts_that_were_never_judged_are_not_brought_back(store: Store, server: Server) -> None:
    add_dataset(store, pairs=PAIRS)
    rule = "filters.max_passage_words=9"
    run_id = run_curation(store, **ASKED, settings=[*SETTINGS, rule])["run_id"]
    lost = {
        str(why) for group in ended(store, run_id).values() for _, why in (group[3] or {}).values()
    }
    assert "too_long" in lost
    with pytest.raises(Refused, match="texts through that were dropped") as refused:
        decide(run_id, "filters.max_passage_words=100")
    assert refused.value.code == "rules_need_answers"
    decide(run_id, "checks.fits.expected.N=any")
    again = {
        str(why) for group in ended(store, run_id).values() for _, why in (group[3] or {}).values()
    }
    assert "too_long" in again and require_texts_whole(store, run_id) == 2


def test_an_edited_text_stays_where_a_version_takes_its_stand_in_away(
    store: Store, server: Server
) -> None:
    from db.review.reviews import edit_group

    add_dataset(store, pairs=PAIRS)
    run_id = run_curation(store, **ASKED, settings=SETTINGS)["run_id"]
    with store.write() as session:
        row = list_groups(session, run_id, verdict="kept").rows[0]
        edit_group(session, row.id, {"instruction": "Only what Ann wrote."}, reviewed_by="ann")
        session.commit()
    decide(run_id, "checks.fits.expected.P+=any", "checks.fits.expected.N=any")
    with store.read() as session:
        found = get_group(session, row.id)
        assert found.texts["I"] == "Only what Ann wrote."
        assert found.texts["P+"] == found.passage
    assert texts_of(store, run_id)
