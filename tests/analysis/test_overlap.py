import random

from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.files.corpora import Corpus
from analysis.found.texts import FieldClusters
from analysis.text.near_duplicates import jaccard, near_duplicate_keys, normal_form
from analysis.text.overlap import overlaps
from analysis.text.sharing import describe_contamination, describe_duplicates
from db.corpus.texts import CorpusText
from db.shape import INF_IR

DESCRIPTION = "Identify organizations that participate in international criminal activity abroad."
NARRATIVE = (
    "A relevant document must as a minimum identify the organization and the type of illegal "
    "activity, and the consequence of its participation."
)
LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"


def query(text: str) -> CorpusText:
    return CorpusText("query", "positive", text)


def passage(text: str, group_id: int | None = None) -> CorpusText:
    return CorpusText("passage", "positive", text, group_id)


def how(ours: CorpusText, theirs: CorpusText) -> str | None:
    found = overlaps([ours], [theirs])
    return found[0].how if found else None


def test_the_strongest_overlap_is_named() -> None:
    assert how(query(DESCRIPTION), query(DESCRIPTION)) == "exact"
    assert how(query(DESCRIPTION), query(DESCRIPTION.upper().replace(" ", "  "))) == "normalised"
    assert how(query(DESCRIPTION), query(DESCRIPTION.replace("abroad", "today"))) == "near"
    longer = query(f"Please help me now. {DESCRIPTION} {NARRATIVE}")
    assert how(query(DESCRIPTION), longer) == "ngram"
    assert how(query(DESCRIPTION), query("bees make honey in the long warm summer")) is None


def test_half_of_the_shorter_texts_runs_of_eight_words_must_be_shared() -> None:
    # LONG has 14 words, 7 runs; its first 11 words hold 4 of them, its first 10 hold 3
    tail = " alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omikron pi"
    first = LONG.split()
    assert how(passage(LONG), passage(" ".join(first[:11]) + tail)) == "ngram"
    assert how(passage(LONG), passage(" ".join(first[:10]) + tail)) is None


def test_a_short_question_is_found_inside_a_question_but_not_inside_a_passage() -> None:
    short = query("who wrote the play hamlet")
    inside = "please tell me who wrote the play Hamlet and when it was first shown"
    assert how(short, query(inside)) == "ngram"
    assert how(query(inside), short) == "ngram"
    assert how(short, passage(inside)) is None
    assert how(query("the play hamlet"), query(inside)) is None


def test_boilerplate_does_not_count() -> None:
    start = "this page was last edited on the first of may"
    theirs = [passage(f"{start} and number {n} is all it says {n}") for n in range(150)]
    assert overlaps([passage(f"{start} by an unknown editor of some other page")], theirs) == []


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.text("abc ", min_size=1, max_size=25), max_size=6),
    st.lists(st.text("abc ", min_size=1, max_size=25), max_size=6),
)
def test_swapping_the_sides_finds_the_same_pairs(one: list[str], other: list[str]) -> None:
    ours, theirs = [query(text) for text in one], [query(text) for text in other]
    forwards = {(o.one, o.other, o.how) for o in overlaps(ours, theirs)}
    backwards = {(o.other, o.one, o.how) for o in overlaps(theirs, ours)}
    assert forwards == backwards


def test_near_duplicates_are_those_of_all_pairs_compared() -> None:
    rng = random.Random(5)
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
    texts = [" ".join(rng.choices(words, k=25)) for _ in range(10)]
    for text in list(texts):
        changed = text.split()
        changed[rng.randrange(25)] = "iota"
        texts.append(" ".join(changed))
    forms = [normal_form(text) for text in texts]
    expected = [
        (a, b)
        for a in range(len(forms))
        for b in range(a + 1, len(forms))
        if jaccard(forms[a], forms[b]) >= 0.7
    ]
    keys = near_duplicate_keys(texts, threshold=0.7)
    pairs = [(a, b) for a in range(20) for b in range(a + 1, 20) if keys[a] == keys[b]]
    assert pairs == expected and len(expected) == 10


def test_contaminated_groups_are_named_with_the_texts() -> None:
    ours = Corpus(
        "mine",
        "dataset",
        [passage(LONG, 4), passage(LONG, 7), passage("bees make honey", 9)],
        shape=INF_IR,
    )
    theirs = Corpus(
        "eval", "published", [passage(LONG.upper()), query("bees make honey")], shape=INF_IR
    )
    found = describe_contamination([ours], [theirs])
    assert found.groups == (4, 7, 9)
    assert found.how == {"exact": 1, "normalised": 1}
    first = found.pairs[0]
    assert (first.how, first.text, first.groups) == ("exact", "bees make honey", (9,))
    assert first.against.corpus == "eval"
    nothing = describe_contamination(
        [ours], [Corpus("eval", "texts", [query("unrelated")], shape=INF_IR)]
    )
    assert (nothing.overlapping, nothing.groups, nothing.pairs) == (0, (), ())


def test_near_duplicates_are_counted_per_field_and_between_corpora() -> None:
    one = Corpus(
        "a",
        "dataset",
        [passage(LONG, 1), passage(LONG, 2), query("bees"), query("tea")],
        shape=INF_IR,
    )
    two = Corpus(
        "b", "dataset", [passage(LONG.upper()), query("Bees"), query("BEES!")], shape=INF_IR
    )
    found = describe_duplicates([one, two])
    assert found.fields["passage"] == FieldClusters(clusters=1, texts=2, repeated=1, between=1)
    assert found.fields["query"] == FieldClusters(clusters=1, texts=3, repeated=2, between=1)
    assert [row.corpus for row in found.clusters[1].texts] == ["a", "b", "b"]
