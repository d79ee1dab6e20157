from analysis.agreement.answers import Decision
from analysis.agreement.disagreement import choices_of_two, confusion_of, disagreements, label_rank


def decisions(item: int, **labels: str) -> list[Decision]:
    return [Decision(item, judge, label) for judge, label in labels.items()]


ROLES = ("positive", "query_negative")
KNOWN = [
    *decisions(1, ann="positive", bob="positive", cas="positive"),
    *decisions(2, ann="positive", bob="none", cas="positive"),
    *decisions(3, ann="distractor_1", bob="none", cas="positive"),
    *decisions(4, ann="positive"),
]


def test_items_are_ordered_by_the_share_of_pairs_that_differ() -> None:
    found = disagreements(KNOWN)
    assert [(each.item, each.disagreement) for each in found] == [(3, 1.0), (2, 2 / 3), (1, 0.0)]
    assert found[0].labels == {"ann": "distractor_1", "bob": "none", "cas": "positive"}
    assert disagreements([]) == []


def test_the_confusion_of_two_judges_counts_their_common_items() -> None:
    labels, table = confusion_of(choices_of_two(KNOWN, "ann", "bob"), ROLES)
    assert labels == ["positive", "distractor_1", "none"]
    assert table.tolist() == [[1, 0, 1], [0, 0, 1], [0, 0, 0]]
    turned = confusion_of(choices_of_two(KNOWN, "bob", "ann"), ROLES)[1]
    assert turned.tolist() == [[1, 0, 0], [0, 0, 0], [1, 1, 0]]
    assert confusion_of(choices_of_two(KNOWN, "ann", "nobody"), ROLES)[0] == []


def test_the_labels_stand_in_the_order_of_the_shapes_roles() -> None:
    given = [*decisions(1, ann="alpha", bob="zeta"), *decisions(2, ann="zeta", bob="none")]
    assert confusion_of(choices_of_two(given, "ann", "bob"), ("zeta", "alpha"))[0] == [
        "zeta",
        "alpha",
        "none",
    ]


def test_roles_come_first_and_none_last() -> None:
    labels = ["none", "distractor_2", "query_negative", "positive", "distractor_1"]
    assert sorted(labels, key=lambda label: label_rank(label, ROLES)) == [
        "positive",
        "query_negative",
        "distractor_1",
        "distractor_2",
        "none",
    ]
