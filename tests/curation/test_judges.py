from itertools import combinations

import pytest
from sklearn.metrics import cohen_kappa_score

from curation.judges.embedding import EmbeddingJudge
from curation.judges.judge import ItemView
from curation.judges.registry import judge_named
from curation.judges.simulated import SimulatedJudge, lexical_scores
from db.errors import BadInput
from db.store.store import Store

VIEW = ItemView(
    instruction="The passage has to mention the price.",
    query="how is green tea made",
    candidates=(
        "Locomotives burn coal to boil water.",
        "Green tea is made by steaming fresh leaves at once.",
        "Green tea is made by steaming leaves; the price of a tin is about four pounds.",
        "The price of coal fell in the spring.",
    ),
)


def many_views(count: int) -> list[ItemView]:
    """Items whose texts differ: one candidate has query and instruction, others one of them."""
    subjects = ("tea", "coal", "glass", "bread", "paper", "salt", "wool", "rubber")
    asked = ("price", "weather", "law", "history", "danger")
    views = []
    for number in range(count):
        subject = subjects[number % len(subjects)]
        other = subjects[(number + 3) % len(subjects)]
        wish, not_wish = asked[number % len(asked)], asked[(number + 2) % len(asked)]
        texts = (
            f"{subject} number {number} comes from the hills, and its {wish} is known.",
            f"{subject} number {number} comes from the hills, and its {not_wish} is known.",
            f"{other} comes from the sea, where its {wish} was studied for years.",
            f"Nobody has said a word about {other} in this place since then.",
        )
        turn = number % 4
        views.append(
            ItemView(
                f"Only passages about the {wish} count.",
                f"where does {subject} number {number} come from",
                texts[turn:] + texts[:turn],
            )
        )
    return views


def test_the_words_asked_for_score_highest_when_query_and_instruction_are_met() -> None:
    scores = lexical_scores(VIEW)
    assert max(range(4), key=scores.__getitem__) == 2


def test_words_that_occur_nowhere_give_zero_everywhere() -> None:
    assert lexical_scores(ItemView("zyx", "qwv", ("one two", "three"))) == [0.0, 0.0]


def test_a_simulated_judge_answers_by_text_and_not_by_position() -> None:
    judge = SimulatedJudge(1)
    for view in many_views(30):
        turned = ItemView(view.instruction, view.query, view.candidates[::-1])
        first, second = judge.choose([view, turned])
        assert first.position is not None and second.position is not None
        assert view.candidates[first.position] == turned.candidates[second.position]


def test_simulated_judges_agree_well_but_not_perfectly() -> None:
    views = many_views(300)
    answers = [
        [choice.position for choice in SimulatedJudge(number).choose(views)] for number in (1, 2, 3)
    ]
    for one, other in combinations(answers, 2):
        assert one != other
        assert 0.3 < cohen_kappa_score(one, other) < 0.99


def test_the_embedding_judge_picks_the_closest_text(sqlite_store: Store) -> None:
    view = ItemView(VIEW.instruction, VIEW.query, (VIEW.candidates[0], *VIEW.candidates[2:]))
    (choice,) = EmbeddingJudge(sqlite_store).choose([view])
    assert choice.position == 1
    assert len(choice.detail["scores"]) == 3


@pytest.mark.parametrize("name", ["simulated:0", "simulated:x", "oracle", "offline:other", ""])
def test_an_unknown_judge_is_named_with_what_there_is(sqlite_store: Store, name: str) -> None:
    with pytest.raises(BadInput, match="simulated:N"):
        judge_named(name, sqlite_store)
