"""What training changed, in words: from the paired test, never from two means alone."""

from evaluation_rows import RECORD

from app.models.verdict import verdict_sentences
from db.tables import Evaluation

BASE, MINE = "org/base", "/home/me/checkpoints/<b>mine</b>"


def evaluation(
    model: str, flips: list[int], checkpoint: int | None = None, **record: object
) -> Evaluation:
    trained_on = None if checkpoint is None else "a release"
    of = {"model": RECORD["model"] | {"trained_on": trained_on}}
    found = Evaluation(
        model=model,
        benchmark="held-out demo",
        metrics={"instruction-flip": sum(flips) / len(flips)} if flips else {},
        per_query={str(n): {"instruction-flip": flip} for n, flip in enumerate(flips)},
        questions={str(n): {"cluster": str(n), "scored": True} for n in range(len(flips))},
        record=RECORD | of | record,
        checkpoint_id=checkpoint,
    )
    found.id = checkpoint or 1
    return found


def sentence(base: Evaluation, mine: Evaluation) -> str:
    (found,) = verdict_sentences([mine, base], {7: BASE})
    return found


def test_a_clear_gain_a_clear_loss_and_chance_are_told_apart() -> None:
    few, many = [1] * 20 + [0] * 180, [1] * 150 + [0] * 50
    better = sentence(evaluation(BASE, few), evaluation(MINE, many, 7))
    assert "75% of the groups" in better and "org/base in 10%. " in better
    assert "Clearly higher: +65.0 points (95 % interval +" in better and "over 200 groups" in better
    assert better.endswith("Training taught it to follow instructions better.")
    base, mine = evaluation(BASE, few), evaluation(MINE, many, 7)
    for one, control in ((base, 0.1), (mine, 0.4)):  # the instruction alone gains less
        one.metrics |= {"instruction-alone:instruction-flip": control}
    assert sentence(base, mine) == better
    mine.metrics |= {"instruction-alone:instruction-flip": 0.75}
    shared = sentence(base, mine)
    assert "by the instruction alone, it gained +65.0 points" in shared
    assert "taught it" not in shared
    worse = sentence(evaluation(BASE, many), evaluation(MINE, few, 7))
    assert "Clearly lower: -65.0 points" in worse and "less" in worse
    same = sentence(evaluation(BASE, few), evaluation(MINE, [0] * 10 + few[:-10], 7))
    assert "No clear difference: " in same
    assert same.endswith("do not show whether training changed it.")


def test_a_model_without_its_base_or_without_values_by_query_gets_no_verdict() -> None:
    (alone,) = verdict_sentences([evaluation(MINE, [1, 0], 7)], {7: BASE})
    assert "evaluate its base model" in alone
    (other,) = verdict_sentences(
        [evaluation(MINE, [1, 0], 7), evaluation("org/another", [1, 0])], {7: BASE}
    )
    assert "evaluate its base model" in other  # another model is no base
    base, mine = evaluation(BASE, [0] * 9), evaluation(MINE, [1] * 9, 7)
    base.per_query = mine.per_query = {}
    assert "unknown: there are no values by query" in sentence(base, mine)
    assert verdict_sentences([evaluation(BASE, [1])], {}) == []


def test_evaluations_of_other_data_are_not_compared() -> None:
    other = {"pool": "BM25's best 100"}
    base, mine = evaluation(BASE, [0] * 99), evaluation(MINE, [1] * 99, 7, **other)
    assert "not comparable" in sentence(base, mine) and "taught" not in sentence(base, mine)
