"""The job `evaluate`: models side by side on held-out groups or on a benchmark folder.

Note: a checkpoint of ours given alone brings its base model along, prepared as its
training prepared it, so that the two stand side by side. Held-out groups are those of the
checkpoint's training (its split is in `inf_embed.json`); models without one are scored on the same.
`bm25` is the baseline without a model; rerankers are named as in `trainer.evaluate.reranking`,
models behind a server `openai:MODEL`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.figures import paired
from analysis.text.bm25 import convention_of
from db.corpus.retrieval import dataset_retrieval
from db.errors import BadInput
from db.jobs.runner import JobHandle
from db.outcome.checkpoints import checkpoint_at
from db.outcome.evaluations import Scored, record_evaluation
from db.outcome.independence import DATASET as DATASET_TITLE
from db.store.store import Store
from db.values import DATASET_BENCHMARK as DATASET
from trainer.data.release_files import find_release, read_release
from trainer.data.splitting import split_groups
from trainer.evaluate.benchmarks import Benchmark, Question, held_out_benchmark
from trainer.evaluate.candidates import Candidate, load_scorer, score_candidate
from trainer.evaluate.following import (
    INSTRUCTION_FLIP,
    MAX_BASE_FLIP,
    ON_GROUPS,
    STABILITY,
    bm25_following,
    read_paraphrases,
)
from trainer.evaluate.intervals import about_questions
from trainer.evaluate.measures.compliance import COMPLIANCE
from trainer.evaluate.request import EvaluationStart
from trainer.model.backbone import read_memory
from trainer.records.circular import (
    circular_notes,
    circular_sentence,
    held_out_record,
    validators_of_record,
)
from trainer.records.likeness import differences
from trainer.records.pinning import benchmark_content, require_pinned
from trainer.records.record import content_together, has_instructions, mean_record
from trainer.records.rows import Evaluated
from trainer.settings.settings import TrainSettings, stored_settings
from trainer.settings.template import Template
from trainer.suites.hub import is_hub_name, load_hub_benchmarks, spelled
from trainer.suites.registry import read_benchmarks, suite_means, take_subset
from trainer.trec.files import read_qrels, require_ids, trec_files, write_qrels
from trainer.trec.scoring import PREFIX as TREC
from trainer.trec.scoring import read_run_of

COMPARED = (*ON_GROUPS, *COMPLIANCE, STABILITY, "ndcg@10", "map", "mrr", "p-mrr")


def evaluate_as_job(handle: JobHandle) -> Evaluated:
    """The handler of `evaluate` jobs; config EvaluationStart."""
    return Evaluated.model_validate(evaluate(handle))


def evaluate(handle: JobHandle) -> dict[str, Any]:
    """The config is an `EvaluationStart`; what it finds, as figures."""
    wanted = EvaluationStart.read(handle.config)
    candidates = _candidates(handle.store, wanted)
    split: dict[str, Any] | None = None
    held_out: dict[str, Any] | None = None
    notes: list[str] = []
    if wanted.benchmark:
        benchmarks, suite = _benchmarks(handle, wanted.benchmark, wanted.subset)
        benchmarks = _in_language(benchmarks, wanted.bm25_language)
    else:
        benchmark, split, held_out, notes = _held_out(handle.store, wanted, candidates)
        benchmarks, suite = [benchmark], benchmark.name
    if wanted.qrels:
        benchmarks = [judged_by(benchmarks, Path(wanted.qrels))]
    contents = [benchmark_content(benchmark) for benchmark in benchmarks]
    count = len(benchmarks)
    require_pinned(contents, wanted.pin, wanted.benchmark or "")
    if wanted.ordinary:
        plain = _ordinary(handle, wanted.ordinary)
        benchmarks += _in_language(plain, wanted.bm25_language)
        contents += [benchmark_content(benchmark) for benchmark in benchmarks[count:]]
        require_pinned(contents[count:], None, wanted.ordinary)
    candidates = [  # runs are read before any model is loaded
        replace(each, run=read_run_of(Path(each.name.removeprefix(TREC)), benchmarks))
        if each.name.startswith(TREC)
        else each
        for each in candidates
    ]
    paraphrases = read_paraphrases(Path(wanted.paraphrases)) if wanted.paraphrases else None
    if wanted.trec:
        _require_trec_names(wanted.trec, benchmarks)
        for benchmark in benchmarks:
            file = trec_files(wanted.trec, benchmark.name, "")[1]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)
            write_qrels(file, benchmark.judgments)
    reports: list[list[dict[str, Any]]] = []  # for every candidate, of every benchmark
    per_query: list[list[dict[str, dict[str, float]]]] = []
    rounds = len(candidates) * len(benchmarks)
    for number, candidate in enumerate(candidates):
        handle.report(number, len(candidates), f"loading {candidate.name}")
        scorer = load_scorer(wanted, candidate)
        found = [
            score_candidate(
                handle,
                wanted,
                candidate,
                scorer,
                benchmark,
                contents[part],
                number * len(benchmarks) + part,
                rounds,
                paraphrases,
                held_out if part < count else None,
            )
            for part, benchmark in enumerate(benchmarks)
        ]
        reports.append([report for report, _ in found])
        per_query.append([scores.per_query for _, scores in found])
    handle.report(len(candidates), len(candidates), "done")
    scored = [
        Scored(
            report["model"],
            benchmarks[0].name,
            {},
            report["checkpoint_id"],
            candidate.memory["settings"]["base_model"] if candidate.memory else None,
            weights_sha256=report["record"]["model"]["weights_sha256"],
            held_out=held_out,
        )
        for candidate, (report, *_) in zip(candidates, reports, strict=True)
    ]
    sentence = circular_sentence(benchmarks[0].name, scored, validators_of_record(scored))
    notes += [sentence] if sentence else []
    about = {"held_out": split, "notes": [*notes, *too_easy([first for first, *_ in reports])]}
    parts = [
        about
        | {
            "benchmark": benchmark.name,
            "kind": benchmark.kind,
            "convention": benchmark.convention,
            "queries": len(benchmark.judgments),
            "queries_left_out": len(contents[part]["without_relevant"]),
            "without_relevant": contents[part]["without_relevant"],
            "documents": len(benchmark.corpus),
            "sha256": contents[part]["sha256"],
            "models": [theirs[part] for theirs in reports],
            "bm25": bm25_following(benchmark, Template()) if benchmark.groups else {},
            "bm25_convention": convention_of(benchmark.language),
            "comparisons": _comparisons(
                [theirs[part] for theirs in reports],
                [values[part] for values in per_query],
                about_questions(benchmark),
            ),
        }
        for part, benchmark in enumerate(benchmarks)
    ]
    parts, ordinary = parts[:count], parts[count:]
    if count == 1:
        result = parts[0] | {"ordinary": ordinary}
    else:
        sha256 = content_together(contents[:count])["sha256"]
        together = _suite(handle, suite, benchmarks[:count], parts)
        result = about | together | {"sha256": sha256, "ordinary": ordinary}
    with handle.store.read() as session:
        return result | {"notes": [*result["notes"], *circular_notes(session, result)]}


def too_easy(reports: Sequence[Mapping[str, Any]]) -> list[str]:
    """A note per model known to be untrained that already follows nearly every held-out group."""
    return [
        f"{report['model']} has {INSTRUCTION_FLIP} {flip:.2f} without training: these held-out "
        "groups are too easy to show an improvement"
        for report in reports
        if (flip := report["metrics"].get(INSTRUCTION_FLIP)) is not None
        and flip > MAX_BASE_FLIP
        and report["record"]["model"].get("trained_on", "unknown") is None
    ]


def _comparisons(
    reports: list[dict[str, Any]],
    per_query: list[dict[str, dict[str, float]]],
    questions: paired.Questions,
) -> list[dict[str, Any]]:
    """Differences from the first model; of one whose record differs the reasons instead.

    p_holm: p adjusted for the number of models compared on a measure; verdict: in words.
    """
    refused = [differences(reports[0]["record"], report["record"]) for report in reports[1:]]
    compared: dict[str, list[paired.Difference | None]] = {
        name: [
            None if reasons else paired.paired_difference(per_query[0], values, name, questions)
            for reasons, values in zip(refused, per_query[1:], strict=True)
        ]
        for name in COMPARED
    }
    adjusted = {
        name: paired.holm([each.p if each else None for each in of])
        for name, of in compared.items()
    }
    return [
        {
            "first": reports[0]["model"],
            "second": report["model"],
            "measures": {
                name: _as_row(compared[name][place], adjusted[name][place]) for name in COMPARED
            },
            "refused": refused[place],
        }
        for place, report in enumerate(reports[1:])
    ]


def _as_row(found: paired.Difference | None, p: float | None) -> dict[str, Any] | None:
    """second − first with its interval and verdict; None where no query has a value in both."""
    if found is None or found.value is None:
        return None
    return {
        "queries": found.queries,
        "clusters": found.clusters,
        "method": found.method,
        "difference": found.value,
        "low": found.low,
        "high": found.high,
        "p": found.p,
        "p_holm": p,
        "verdict": paired.verdict(found, p),
    }


def _suite(
    handle: JobHandle, name: str, benchmarks: list[Benchmark], parts: list[dict[str, Any]]
) -> dict[str, Any]:
    """The means over the sets, stored as an evaluation; the sets' own results under `parts`.

    Differences with intervals are those of the sets: a bootstrap over queries says nothing about
    a mean over sets.
    """
    models = []
    for number, first in enumerate(parts[0]["models"]):
        means = suite_means(benchmarks, [part["models"][number]["metrics"] for part in parts])
        reasons = {
            measure: "not every set of this suite has this measure"
            for measure, value in means.items()
            if value is None
        }
        with handle.store.write() as session:
            evaluation = record_evaluation(
                session,
                model=first["model"],
                benchmark=f"{name} (mean of {len(parts)})",
                metrics=means,
                per_query={},
                record=mean_record([part["models"][number]["record"] for part in parts]),
                checkpoint_id=first["checkpoint_id"],
                job_id=handle.id,
            )
            session.commit()
            known = {"evaluation_id": evaluation.id, "metrics": means, "reasons": reasons}
            known["intervals"] = {}  # of the sets: queries say nothing about a mean over sets
        models.append(first | known)
    return {
        "benchmark": name,
        "kind": f"{len(parts)} sets, {' and '.join(sorted({part['kind'] for part in parts}))}",
        "convention": f"plain mean over the sets; in each: {parts[0]['convention']}",
        "queries": sum(part["queries"] for part in parts),
        "documents": sum(part["documents"] for part in parts),
        "models": models,
        "comparisons": [],
        "parts": parts,
    }


def _benchmarks(handle: JobHandle, name: str, subset: str | None) -> tuple[list[Benchmark], str]:
    """The benchmarks of a folder, a dataset of the store or a name on the hub, and what they are
    called together."""
    if name.startswith(DATASET):
        benchmarks = [dataset_benchmark(handle.store, name.removeprefix(DATASET))]
        name = benchmarks[0].name
    elif is_hub_name(name):
        benchmarks, name = load_hub_benchmarks(name), spelled(name)
    else:
        folder = Path(name).expanduser().resolve()
        benchmarks, name = read_benchmarks(folder), folder.name
    return (take_subset(benchmarks, subset), f"{name} {subset}") if subset else (benchmarks, name)


def _in_language(benchmarks: list[Benchmark], language: str | None) -> list[Benchmark]:
    """The benchmarks with the language that BM25 was requested to read them in, if any."""
    if not language:
        return benchmarks
    return [replace(benchmark, language=language) for benchmark in benchmarks]


def _ordinary(handle: JobHandle, name: str) -> list[Benchmark]:
    """The benchmarks of ordinary retrieval. Raises BadInput where a query has an instruction."""
    benchmarks, _ = _benchmarks(handle, name, None)
    for benchmark in benchmarks:
        if has_instructions(benchmark):
            raise BadInput(
                f"{benchmark.name} has instructions: ordinary retrieval is measured on queries "
                "alone, such as a BEIR folder or dataset:NAME",
                "name another one",
                code="benchmark_has_instructions",
            )
    return benchmarks


def _require_trec_names(folder: str, benchmarks: list[Benchmark]) -> None:
    """Raise BadInput where TREC files cannot hold an id, or two benchmarks have one folder."""
    names: dict[Path, str] = {}
    for benchmark in benchmarks:
        require_ids([*benchmark.questions, *benchmark.corpus])
        place = trec_files(folder, benchmark.name, "")[1]
        if place in names:
            raise BadInput(
                f"`trec=`: the benchmarks {names[place]!r} and {benchmark.name!r} would both be "
                f"written to {place.parent}",
                "rename the folder of one, or evaluate them apart",
                code="trec_file_shared",
            )
        names[place] = benchmark.name


def judged_by(benchmarks: list[Benchmark], file: Path) -> Benchmark:
    """The benchmark with the judgments of a TREC qrels file. Raises BadInput where it has none.

    Documents that the corpus lacks stay judged, as for trec_eval: they are relevant and not found.
    """
    (benchmark, *others) = benchmarks
    if others or benchmark.original or benchmark.groups:
        raise BadInput(
            "`qrels=` needs a single benchmark whose judgments do not change by query",
            "leave out `qrels=`, or evaluate on one benchmark",
            code="qrels_needs_one_benchmark",
        )
    judgments = read_qrels(file)
    if unknown := sorted(judgments.keys() - benchmark.questions.keys()):
        raise BadInput(
            f"{file}: no query {unknown[0]!r} in the benchmark {benchmark.name}",
            "leave that line out",
            code="query_unknown",
        )
    return replace(
        benchmark,
        judgments=judgments,
        questions={query: benchmark.questions[query] for query in judgments},
        convention=f"{benchmark.convention}; judged by a TREC qrels file",
    )


def _candidates(store: Store, wanted: EvaluationStart) -> list[Candidate]:
    candidates = [Candidate(name, _memory(store, name)) for name in dict.fromkeys(wanted.models)]
    alone = candidates[0] if len(candidates) == 1 else None
    if alone and alone.memory and wanted.with_base:
        # Scored as its checkpoint is: in float32, which flash attention cannot compute.
        settings = stored_settings(alone.memory["settings"] | {"attention": "auto"})
        candidates.insert(0, Candidate(settings.base_model, {}, base_of=settings))
    return candidates


def _memory(store: Store, name: str) -> dict[str, Any]:
    """What a checkpoint remembers; its settings from the store, whose row has the base's folder."""
    memory = read_memory(name)
    if not memory:
        return memory
    with store.read() as session:
        known = checkpoint_at(session, str(Path(name).expanduser().resolve()))
    return memory | {"settings": known.config} if known else memory


def _further_releases(candidate: Candidate) -> set[str]:
    """The contents of the further releases that a checkpoint was trained on."""
    return {each["content_sha256"] for each in candidate.memory.get("more_releases", ())}


def _held_out(
    store: Store, wanted: EvaluationStart, candidates: list[Candidate]
) -> tuple[Benchmark, dict[str, Any], dict[str, Any], list[str]]:
    """(benchmark, its split, what the record keeps of it, notes)."""
    release = read_release(find_release(store, wanted.release or ""))
    defaults, requested = TrainSettings(), wanted.held_out_groups
    split: dict[str, Any] = {
        "fraction": wanted.held_out or defaults.held_out,
        "seed": defaults.held_out_seed if wanted.held_out_seed is None else wanted.held_out_seed,
        "choice": requested or defaults.held_out_groups,
        "judge": wanted.held_out_judge or defaults.held_out_judge,
    }
    chosen_by = None
    notes = []
    for candidate in candidates:
        if not candidate.memory:
            continue
        theirs = candidate.memory["release"]["content_sha256"]
        if release.content_sha256 in _further_releases(candidate):
            if not any(group.set_aside for group in release.groups):
                raise BadInput(
                    f"{candidate.name} was also trained on the release {release.path}, which holds "
                    "out no groups of its own",
                    "score it on the held-out groups of its main release "
                    f"({theirs[:12]}), or on a benchmark",
                    code="release_without_held_out",
                )
            continue
        if theirs != release.content_sha256:
            notes.append(
                f"{candidate.name} was trained on another release ({theirs[:12]}): held-out groups "
                "of this one may have been in its training"
            )
            continue
        own = {key: candidate.memory["split"][key] for key in ("fraction", "seed")}
        own["choice"] = requested or candidate.memory["split"].get("choice", "kept")
        own["judge"] = wanted.held_out_judge or candidate.memory["settings"].get(
            "held_out_judge", ""
        )
        if own["fraction"] == 0:
            notes.append(f"{candidate.name} was trained on all groups: its scores are not held out")
            continue
        if chosen_by and own != split:
            raise BadInput(
                f"{chosen_by} and {candidate.name} held out different groups ({split} and {own})",
                "evaluate them apart, or train both with the same held_out and held_out_seed",
                code="held_out_groups_differ",
            )
        split, chosen_by = own, candidate.name
    _, groups = split_groups(
        release,
        fraction=split["fraction"],
        seed=split["seed"],
        held_out_groups=split["choice"],
        held_out_judge=split["judge"],
    )
    name = f"held-out {release.name} {release.content_sha256[:12]}"
    split |= {"groups": len(groups)}
    kept = held_out_record(release, split)
    return held_out_benchmark(name, groups, wanted.bm25_language or "en"), split, kept, notes


# Ordinary retrieval on a dataset of the store: Q+ alone against all its passages.
#
# For where no BEIR folder is at hand. Named `dataset:NAME`.
def dataset_benchmark(store: Store, name: str) -> Benchmark:
    """The benchmark of a dataset. Raises NotFound, and BadInput where it has no pair."""
    with store.read() as session:
        queries, passages, relevant = dataset_retrieval(session, name)
    if not queries:
        raise BadInput(
            f"dataset {name!r} has no pair of a query and a passage to measure by",
            "import some with `datasets import NAME pairs=FILE`",
            code="dataset_without_pairs",
        )
    return Benchmark(
        name=f"{DATASET_TITLE}{name}",
        kind="dataset",
        convention="every query of the dataset alone, without an instruction, against all its "
        "passages with their titles (equal ones once, generated ones left out); right are the "
        "passages that it is paired with; ties by score, then id, both descending",
        questions={key: Question("", query) for key, query in queries.items()},
        corpus=passages,
        judgments={key: dict.fromkeys(of, 1) for key, of in relevant.items()},
    )
