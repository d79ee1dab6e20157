from collections import Counter
from typing import Any

from grown_dataset import grown
from sqlalchemy import select

from analysis.agreement.validators import (
    Patterns,
    choosing_report,
    judge_as_validator,
    vote_as_validator,
)
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Call, Group, Item, Judge, Judgment

KEPT = {1: True, 2: True, 3: False, 4: False}
# per group three letters, a scenario each: y(es, the right passage), n(o), or a dot
STRICT = {1: "yyy", 2: "yyn", 3: "nnn", 4: "y.."}
MILD = dict.fromkeys(KEPT, "yyy")


def counted(**judges: dict[int, str]) -> Patterns:
    """The groups of `KEPT` by verdict and the judges' answers."""
    found: Counter[Any] = Counter()
    for group, is_kept in KEPT.items():
        seen = [
            (judge, _bits(groups[group], "yn"), _bits(groups[group], "y"))
            for judge, groups in judges.items()
            if group in groups
        ]
        found[is_kept, tuple(seen)] += 1
    return found


def _bits(letters: str, wanted: str) -> int:
    return sum(1 << place for place, letter in enumerate(letters) if letter in wanted)


def test_a_judge_keeps_the_groups_whose_three_passages_it_finds() -> None:
    assert judge_as_validator(counted(strict=STRICT, mild=MILD), "strict", INF_IR) == {
        "judge": "strict",
        "items": 10,
        "items_passed": 0.6,
        "groups": 3,
        "kept": 1,
        "kept_by_both": 1,
        "only_here": 0,
        "only_by_the_run": 1,
        "kept_groups_in_part": 0,  # group 4 was seen in part, but the run dropped it
        "surely_dropped_of_them": 0,
    }
    mild = judge_as_validator(counted(strict=STRICT, mild=MILD), "mild", INF_IR)
    assert (mild["groups"], mild["kept"], mild["only_here"]) == (4, 4, 2)


def test_of_groups_seen_in_part_one_missed_scenario_is_enough_to_drop() -> None:
    partly = {1: "n..", 2: "yy.", 3: "n..", 4: "..y"}
    found = judge_as_validator(counted(partly=partly), "partly", INF_IR)
    assert (found["groups"], found["kept_groups_in_part"], found["surely_dropped_of_them"]) == (
        (0, 2, 1)
    )
    # both answered the first scenario of group 1: one passed it, which is enough for `any` only
    both = counted(partly=partly, other={1: "yy.", 2: "..y"})
    votes = {
        policy: vote_as_validator(both, ["partly", "other"], policy, INF_IR)
        for policy in ("any", "all")
    }
    assert votes["any"]["surely_dropped_of_them"] == 0
    assert votes["all"]["surely_dropped_of_them"] == 1
    assert votes["all"]["kept_groups_in_part"] == 1  # of group 2 they answered nothing in common


def test_a_price_that_was_never_paid_is_undefined_and_an_offline_judge_is_free() -> None:
    everyone = counted(strict=STRICT, mild=MILD, free={1: "yyy"})
    models = {"strict": ("m1", False), "mild": ("m2", False), "free": ("m3", True)}
    report = choosing_report(everyone, INF_IR, models, {"m1": (4, 0.02)}, {}, ["strict", "mild"])
    prices = {row["judge"]: row["usd_per_1000_items"] for row in report["validators"]}
    assert prices == {"strict": 5.0, "mild": None, "free": 0.0}
    unpaid = next(row for row in report["validators"] if row["judge"] == "mild")
    assert unpaid["price_reason"] == "no call in which m2 judged is stored"
    assert [row["judges"] for row in report["policies"]] == [["strict", "mild"]] * 3


def test_without_stored_calls_the_price_is_the_estimate_and_said_to_be_one() -> None:
    models = {"strict": ("m1", False), "mild": ("m2", False)}
    estimates = {
        "m1": (9.0, ""),
        "m2": (None, "the price of m2 is unknown: write it into prices.toml"),
        "m4": (0.5, ""),
    }
    everyone = counted(strict=STRICT, mild=MILD)
    paid = choosing_report(everyone, INF_IR, models, {"m1": (4, 0.02)}, {}, (), estimates)
    strict = next(row for row in paid["validators"] if row["judge"] == "strict")
    assert (strict["usd_per_1000_items"], strict["price_from"]) == (5.0, "calls")
    unpaid = choosing_report(everyone, INF_IR, models, {}, {}, (), estimates)
    mild, strict = unpaid["validators"]
    assert (strict["usd_per_1000_items"], strict["price_from"]) == (9.0, "estimate")
    assert (mild["usd_per_1000_items"], mild["price_from"]) == (None, None)
    assert mild["price_reason"] == (
        "no call in which m2 judged is stored, and the price of m2 is unknown: write it into "
        "prices.toml"
    )
    assert unpaid["not_asked"] == [
        {"model": "m4", "usd_per_1000_items": 0.5, "price_from": "estimate"}
    ]


def test_a_judge_without_answers_is_undefined() -> None:
    nobody = judge_as_validator(counted(mild=MILD), "nobody", INF_IR)
    assert (nobody["items_passed"], nobody["reason"]) == (None, "the judge answered no item")


def test_votes_count_scenario_by_scenario_over_groups_all_answered() -> None:
    third = {1: "yyy", 2: "nyy", 3: "yyn", 4: "yyy"}
    everyone = counted(strict=STRICT, mild=MILD, third=third)
    kept = {
        policy: vote_as_validator(everyone, ["strict", "mild", "third"], policy, INF_IR)["kept"]
        for policy in ("any", "majority", "all")
    }
    # group 2: y/y/n, y/y/y, n/y/y: two of three in each scenario; group 3: mild alone at the last
    assert kept == {"any": 3, "majority": 2, "all": 1}
    assert vote_as_validator(everyone, ["strict", "mild"], "all", INF_IR)["groups"] == 3


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
            for scenario in INF_IR.roles:
                item = Item(
                    group_id=group.id,
                    scenario=scenario,
                    expected=scenario,
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
    unasked = {row["model"]: row["usd_per_1000_items"] for row in done.json["not_asked"]}
    assert unasked["gpt-4o"] > unasked["gpt-4o-mini"] > 0
    assert (
        "not run, estimated USD per 1,000 items: "
        in inf("analyze", "validators", "--dataset", "demo").out
    )
