from typing import Any

from grown_dataset import grown
from sqlalchemy import select

from analysis.validators import Answer, judge_as_validator, vote_as_validator
from db.store import Store
from db.tables import Call, Group, Item, Judge, Judgment
from db.words import ROLES


def answered(judge: str, groups: dict[int, str]) -> list[Answer]:
    """Per group three letters, a scenario each: y(es, the right passage), n(o), or a dot."""
    return [
        Answer(judge, group, scenario, scenario if letter == "y" else "none")
        for group, letters in groups.items()
        for scenario, letter in zip(ROLES, letters, strict=True)
        if letter != "."
    ]


KEPT = {1: True, 2: True, 3: False, 4: False}
STRICT = answered("strict", {1: "yyy", 2: "yyn", 3: "nnn", 4: "y.."})
MILD = answered("mild", {1: "yyy", 2: "yyy", 3: "yyy", 4: "yyy"})


def test_a_judge_keeps_the_groups_whose_three_passages_it_finds() -> None:
    assert judge_as_validator(STRICT + MILD, KEPT, "strict") == {
        "judge": "strict",
        "items": 10,
        "items_passed": 0.6,
        "groups": 3,
        "kept": 1,
        "kept_by_both": 1,
        "only_here": 0,
        "only_by_the_run": 1,
    }
    mild = judge_as_validator(STRICT + MILD, KEPT, "mild")
    assert (mild["groups"], mild["kept"], mild["only_here"]) == (4, 4, 2)


def test_a_judge_without_answers_is_undefined() -> None:
    nobody = judge_as_validator(MILD, KEPT, "nobody")
    assert (nobody["items_passed"], nobody["reason"]) == (None, "the judge answered no item")


def test_votes_count_scenario_by_scenario_over_groups_all_answered() -> None:
    third = answered("third", {1: "yyy", 2: "nyy", 3: "yyn", 4: "yyy"})
    everyone = [*STRICT, *MILD, *third]
    kept = {
        policy: vote_as_validator(everyone, KEPT, ["strict", "mild", "third"], policy)["kept"]
        for policy in ("any", "majority", "all")
    }
    # group 2: y/y/n, y/y/y, n/y/y: two of three in each scenario; group 3: mild alone at the last
    assert kept == {"any": 3, "majority": 2, "all": 1}
    assert vote_as_validator(everyone, KEPT, ["strict", "mild"], "all")["groups"] == 3


def test_the_command_tells_cost_and_kept_set(store: Store, inf: Any) -> None:
    run_id = grown(store, groups=3)
    with store.write() as session:
        judges = [
            Judge(name="offline:embedding", kind="model", model="embedding", offline=True),
            Judge(name="openai:gpt", kind="model", model="gpt"),
        ]
        session.add_all(judges)
        for number in range(2):
            session.add(
                Call(
                    key=str(number),
                    task="validation",
                    provider="openai",
                    model="gpt",
                    prompt_sha256="",
                    request={},
                    answer="A",
                    cost_usd=0.001 * (1 + number),
                )
            )
        session.flush()
        for group in session.scalars(select(Group).where(Group.run_id == run_id)):
            for scenario in ROLES:
                item = Item(
                    group_id=group.id,
                    scenario=scenario,
                    instruction="i",
                    query="q",
                    candidates=[{"passage_id": 1, "label": scenario}],
                )
                session.add(item)
                session.flush()
                for judge in judges:
                    session.add(
                        Judgment(
                            event_id=f"{judge.name} {item.id}",
                            judge_id=judge.id,
                            item_id=item.id,
                            run_id=run_id,
                            choice=scenario if judge.offline or group.id > 1 else "none",
                            order_shown=[scenario],
                        )
                    )
        session.commit()
    done = inf("analyze", "validators", "--dataset", "demo", "--json")
    assert done.code == 0, done.err
    offline, gpt = done.json["validators"]
    assert (offline["usd_per_1000_items"], offline["kept"]) == (0.0, 3)
    assert (gpt["usd_per_1000_items"], gpt["kept"]) == (1.5, 2)
    assert (done.json["kept"], done.json["groups"]) == (2, 3)
    assert [row["kept"] for row in done.json["policies"]] == [3, 2, 2]
