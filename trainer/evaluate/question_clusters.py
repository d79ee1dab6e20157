"""Which questions of a benchmark belong together, from its data; no id is looked into."""

from trainer.evaluate.benchmarks import Benchmark


def about_questions(benchmark: Benchmark) -> dict[str, dict[str, str | bool]]:
    """{id: {cluster, scored}} of every question, query of p-MRR or robustness, and group; stored.

    `cluster`: questions belong together that are the original and the changed form of one query,
    ask one query under several instructions, are of one group, or have equal query texts.
    `scored`: whether it counts in the means; on FollowIR the original questions alone do.
    """
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = name = parent[parent[name]]
        return name

    links = [(f"id {query}", f"id {question}") for query, question in benchmark.original.items()]
    links += [(f"id {query}", f"id {question}") for query, question in benchmark.changed.items()]
    links += [(f"id {query}", f"id {question}") for query, question in benchmark.reversed.items()]
    links += [(f"id {one}", f"query {query}") for one, query in benchmark.same_query.items()]
    for key, group in benchmark.groups.items():
        links += [(f"id {question}", f"id {key}") for question in group.questions]
    for question, each in benchmark.questions.items():
        links.append((f"id {question}", f"text {each.query}"))
    for one, two in links:
        parent[root(one)] = root(two)
    unscored = set(benchmark.changed.values()) | set(benchmark.reversed.values())
    unscored = unscored if benchmark.originals_count else set()
    of_base: dict[str, dict[str, str | bool]] = {
        query: {"cluster": root(f"query {query}"), "scored": True}
        for query in benchmark.same_query.values()
    }
    return of_base | {
        name: {"cluster": root(f"id {name}"), "scored": name not in unscored}
        for name in [*benchmark.questions, *benchmark.original, *benchmark.groups]
    }
