"""The Validators page: price and kappa, what would be kept, and why there is nothing."""

from typing import Any

from app_pages import open_drawers, open_page, words
from judged_study import answered_whole, judged
from sqlalchemy import update
from streamlit.testing.v1 import AppTest

from app.agreement.validators import validators_sentence
from db.store.store import Store
from db.tables import Call, Group


def open_tables() -> AppTest:
    """The page with its tables, which are folded below figures."""
    tables = ("validators.prices_drawer", "validators.kept_table_drawer")
    return open_drawers(open_page("validators"), *tables)


def test_price_kappa_kept_sets_and_votes_stand_side_by_side(sqlite_store: Store) -> None:
    judged(sqlite_store, {"ann": "ppnnpp" * 2, "bob": "ppnnpn" * 2})
    answered_whole(sqlite_store, "GPT", "gpt", ["yyy", "yyy", "nyy", "nyy", "yyy", "yyn"] * 2)
    answered_whole(sqlite_store, "O3", "o3", ["yyy", "nyy", "yyy", "nyy", "yyy", "yyy"] * 2)
    with sqlite_store.write() as session:
        session.add(
            Call(
                key="c",
                task="validation",
                provider="openai",
                model="gpt",
                prompt_sha256="",
                request={},
                answer="A",
                cost_usd=0.002,
            )
        )
        session.commit()
    page = open_tables()
    assert not page.exception
    tables = [frame.value for frame in page.dataframe]
    prices = dict(zip(tables[0]["Judge"], tables[0]["USD per 1,000 items"], strict=True))
    assert prices["GPT"] == 2.0
    kept = tables[1].set_index("Validator")
    assert kept.loc["GPT", "Kept"] == 6  # 1, 2, 5 of each six; the run kept eleven
    assert kept.loc["GPT", "Kept only by the run"] == 5
    assert kept.loc["any of GPT, O3", "Kept"] == 10
    assert kept.loc["all of GPT, O3", "Kept"] == 4
    shown = words(page).replace("\\", "")
    assert "agrees best with people: kappa" in shown
    assert not next(each for each in page.expander if "voters" in each.label).proto.expanded
    assert "O3 is not in the figure: no call in which o3 judged is stored" in shown
    assert "inf analyze validators --dataset demo --run 1 --study 1 --json" in shown
    assert len(page.get("plotly_chart")) == 2
    assert dict(zip(tables[0]["Judge"], tables[0]["Price from"], strict=True))["GPT"] == "calls"
    assert "Estimated cost of other models" in [each.label for each in page.expander]


def rated(judge: str, kappa: float | None, low: float, high: float, usd: float | None) -> Any:
    human = {"value": kappa, "interval": [low, high], "reason": "no person has judged"}
    return {"judge": judge, "human_kappa": human, "usd_per_1000_items": usd}


def test_a_judge_is_called_better_only_where_the_intervals_part() -> None:
    apart = [rated("A", 0.8, 0.7, 0.9, 4.0), rated("B", 0.5, 0.4, 0.6, 1.0)]
    assert validators_sentence({"validators": apart}) == (
        "A agrees best with people: kappa 0.80 [0.70, 0.90]."
    )
    near = [rated("A", 0.8, 0.6, 0.9, 4.0), rated("B", 0.7, 0.5, 0.8, 1.0), *apart[1:]]
    told = validators_sentence({"validators": near})
    assert "do not show that it is better than B (kappa 0.70 [0.50, 0.80]), B" in told
    assert told.endswith("Cheapest of them: B, $1.0000 per 1,000 items.")
    unpriced = [near[0], rated("B", 0.7, 0.5, 0.8, None)]
    assert "Cheapest" not in validators_sentence({"validators": unpriced})
    nobody = [rated("A", None, 0, 0, 1.0)]
    assert validators_sentence({"validators": nobody}) == (
        "No judge can be recommended yet: no person has judged."
    )
    assert "No other judge is rated" in validators_sentence({"validators": [*nobody, *apart[:1]]})


def test_a_judge_without_stored_calls_has_an_estimated_price(sqlite_store: Store) -> None:
    judged(sqlite_store, {"ann": "ppnnpp"})
    letters = ["yyy", "yyy", "nyy", "nyy", "yyy", "yyn"]
    answered_whole(sqlite_store, "GPT", "gpt-4o-mini", letters)
    page = open_tables()
    assert not page.exception
    row = page.dataframe[0].value.iloc[0]
    assert (row["Judge"], row["Price from"]) == ("GPT", "estimate")
    assert row["USD per 1,000 items"] > 0


def test_a_vote_of_chosen_judges_stands_in_the_command(sqlite_store: Store) -> None:
    judged(sqlite_store, {"ann": "pp", "GPT": "pp", "O3": "pn"})
    page = open_tables()
    page.multiselect(key="validators.voters").set_value(["GPT", "O3"]).run()
    assert not page.exception
    shown = words(page).replace("\\", "")
    assert "--judge GPT --judge O3" in shown
    assert "No judge has answered every item of a group" in shown
    kept = page.dataframe[1].value.set_index("Validator")
    assert kept.loc["all of GPT, O3", "Certainly dropped"] == 1
    assert kept.loc["any of GPT, O3", "Certainly dropped"] == 0


def test_a_run_without_models_and_a_study_of_one_answer_say_why(sqlite_store: Store) -> None:
    judged(sqlite_store, {"ann": "pppp"})
    assert "No model has judged items of this run" in words(open_tables())
    answered_whole(sqlite_store, "GPT", "gpt", ["yyy", "yyy", "yyy", "yyy"])
    shown = words(open_tables()).replace("\\", "")
    assert "GPT cannot be placed: no call in which gpt judged is stored" in shown
    assert "A vote needs two model judges" in shown


def test_a_kept_report_follows_answers_and_verdicts(sqlite_store: Store) -> None:
    judged(sqlite_store, {"ann": "pppp"})
    answered_whole(sqlite_store, "GPT", "gpt", ["yyy", "yyy", "yyy", "nyy"])

    def row(judge: str) -> Any:
        page = open_tables()
        assert not page.exception
        return page.dataframe[1].value.set_index("Validator").loc[judge]

    assert (row("GPT")["Kept"], row("GPT")["Kept only by the run"]) == (3, 1)
    with sqlite_store.write() as session:
        session.execute(
            update(Group).where(Group.id == 4).values(verdict="dropped", drop_reason="ambiguous")
        )
        session.commit()
    assert row("GPT")["Kept only by the run"] == 0
    answered_whole(sqlite_store, "O3", "o3", ["nyy", "nyy", "yyy", "nyy"])
    assert (row("GPT")["Kept"], row("O3")["Kept"]) == (3, 1)
