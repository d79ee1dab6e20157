"""What a model is scored on, and held-out groups as such; published ones: `trainer.suites`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from db.shape import Shape
from trainer.data.groups import Group
from trainer.evaluate.following import GroupPlaces


@dataclass(frozen=True)
class Question:
    """An instruction (may be empty) and a query."""

    instruction: str
    query: str


@dataclass(frozen=True)
class Benchmark:
    """Questions, a corpus, and which documents are right.

    Where instructions change, `original` and `changed` hold for each query id the two question
    ids, and `changed_documents` the documents whose relevance differs between the two.
    `candidates`: the documents a question is ranked over; all where it is not listed.
    `changed_candidates`: for a query the documents among which its changed ones are ranked for
    p-MRR, under both instructions; `groups`: where held-out groups stand.
    `excluded`: documents taken out of a question's ranking (BRIGHT). `same_query`: for every
    question the query it asks under one of several instructions (InstructIR; robustness@k).
    `originals_count`: means are over the original questions, the changed ones stand beside them
    (FollowIR). `reversed`: for a query id the question under the reversed instruction, and `kept`
    the documents that are relevant under the original and the changed one (InfoSearch: SICR, WISE).
    `language`: of the documents, for BM25's stemmer and stop words. `downloads`: the Hub's datasets
    that it was read from, each with its commit.
    """

    name: str
    kind: str
    convention: str
    questions: dict[str, Question]
    corpus: dict[str, str]
    judgments: dict[str, dict[str, int]]
    original: dict[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)
    changed_documents: dict[str, list[str]] = field(default_factory=dict)
    candidates: dict[str, list[str]] = field(default_factory=dict)
    excluded: dict[str, list[str]] = field(default_factory=dict)
    same_query: dict[str, str] = field(default_factory=dict)
    changed_candidates: dict[str, list[str]] = field(default_factory=dict)
    groups: dict[str, GroupPlaces] = field(default_factory=dict)
    originals_count: bool = False
    reversed: dict[str, str] = field(default_factory=dict)
    kept: dict[str, list[str]] = field(default_factory=dict)
    language: str = "en"
    downloads: Mapping[str, str] = field(default_factory=dict)
    shape_of_groups: Shape | None = None

    @property
    def shape(self) -> Shape:
        """That of its groups. Raises ValueError for a benchmark without any."""
        if self.shape_of_groups is None:
            raise ValueError(f"{self.name} has no groups, hence no shape")
        return self.shape_of_groups


P_MRR_CANDIDATES = 100


def held_out_benchmark(name: str, groups: list[Group], language: str = "en") -> Benchmark:
    """One question per scenario of every held-out group, over all passages of these groups.

    p-MRR: original (I+,Q+), changed (I-,Q+), changed document P+, which the changed instruction
    makes wrong, ranked over one fixed list: BM25's best 100 for Q+ and the group's own passages.
    Equal passages are one document, equal questions keep their own ids. Groups of a shape without a
    second instruction for the query have no p-MRR; negatives of their own are documents, too, but
    for a question of the group where no claim grades them.
    """
    shape = groups[0].shape if groups else None
    roles = [role.replace("_", "-") for role in shape.roles] if shape else []
    other = shape.other_instruction if shape else None
    places: dict[str, str] = {}
    questions: dict[str, Question] = {}
    judgments: dict[str, dict[str, int]] = {}
    right: dict[tuple[str, str], dict[str, int]] = {}
    benchmark_ids: dict[str, tuple[str, str]] = {}
    for number, group in enumerate(groups):
        for role, (instruction, query, passage) in zip(roles, group.triplets(), strict=True):
            document = places.setdefault(passage, f"d{len(places):06d}")
            question = f"g{number:06d}-{role}"
            questions[question] = Question(instruction, query)
            right.setdefault((instruction, query), {})[document] = 1
            benchmark_ids[question] = (instruction, query)
    for group in groups:  # after all that is right: what a group's claims grade lower competes
        for negative in group.negatives:
            places.setdefault(negative.text, f"d{len(places):06d}")
    for question, key in benchmark_ids.items():
        judgments[question] = right[key]
    ids = {f"g{number:06d}": group for number, group in enumerate(groups)}
    in_benchmark = {
        key: _places_of(group, tuple(f"{key}-{role}" for role in roles), places)
        for key, group in ids.items()
    }
    return Benchmark(
        name=name,
        kind="held-out groups",
        groups=in_benchmark,
        changed_candidates=(
            {} if other is None else _p_mrr_candidates(ids, places, in_benchmark, language)
        ),
        convention="every scenario of a held-out group is a query with one right passage, ranked "
        "among all passages of the held-out groups; p-MRR: original (I+,Q+), changed (I-,Q+), "
        "changed document P+, ranked over BM25's best 100 for Q+ and the group's passages; ties by "
        "score, then id, both descending",
        questions=questions,
        corpus={document: passage for passage, document in places.items()},
        judgments=judgments,
        excluded={
            question: list(out)
            for group in in_benchmark.values()
            for question, out in zip(group.questions, group.ungraded, strict=True)
            if out
        },
        original={key: f"{key}-{roles[0]}" for key in ids},
        changed={} if other is None else {key: f"{key}-{roles[other]}" for key in ids},
        changed_documents=(
            {}
            if other is None
            else {key: [places[group.triplets()[0][2]]] for key, group in ids.items()}
        ),
        language=language,
        shape_of_groups=shape,
    )


def _places_of(group: Group, questions: tuple[str, ...], places: Mapping[str, str]) -> GroupPlaces:
    triplets, ungraded = group.triplets(), group.open_claims()
    first = triplets[0][1]
    answering = [passage for _, query, passage in triplets if query == first]
    answering += [
        each.text
        for each in group.negatives
        if each.grade == 1 and triplets[each.scenario][1] == first
    ]
    return GroupPlaces(
        questions=questions,
        documents=tuple(places[passage] for _, _, passage in triplets),
        answering=tuple(places[text] for text in dict.fromkeys(answering)),
        lower=tuple(
            tuple(places[each.text] for each in group.negatives if (place, each) not in ungraded)
            for place in range(len(triplets))
        ),
        ungraded=tuple(
            tuple(places[each.text] for of, each in ungraded if of == place)
            for place in range(len(triplets))
        ),
    )


def _p_mrr_candidates(
    groups: Mapping[str, Group],
    places: Mapping[str, str],
    found: Mapping[str, GroupPlaces],
    language: str,
) -> dict[str, list[str]]:
    """For every group BM25's best documents for Q+, and the group's own."""
    ids = list(places.values())
    if len(ids) <= P_MRR_CANDIDATES:
        return dict.fromkeys(groups, ids)
    from analysis.text.bm25 import Bm25

    queries = [group.triplets()[0][1] for group in groups.values()]
    best, _ = Bm25(list(places), language).top(queries, P_MRR_CANDIDATES)
    return {
        key: list(dict.fromkeys([*found[key].documents, *(ids[place] for place in row)]))
        for key, row in zip(groups, best, strict=True)
    }
