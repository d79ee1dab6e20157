"""What a training measures of its model: held-out groups with controls, and the natural probe.

Probe items are a few held-out groups whose right passage is followed through a training:
For each the rank of P+ under (I+,Q+), which should be 1, and under (I-,Q+), which should grow: the
instruction no longer asks for it.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.figures.paired import Questions, Scores, paired_difference
from analysis.text.bm25 import convention_of
from trainer.data.splitting import Groups
from trainer.evaluate.benchmarks import Benchmark, held_out_benchmark
from trainer.evaluate.following import (
    INSTRUCTION_FLIP,
    MAX_BASE_FLIP,
    bm25_following,
)
from trainer.evaluate.intervals import (
    MEASURED,
    OF_TRAINING,
    about_questions,
    following_means,
)
from trainer.evaluate.scoring import score_model, scoring_precision, summary
from trainer.loop.precision import uses_bf16
from trainer.probe import natural
from trainer.report.examples import choose_examples
from trainer.report.origins import circular_held_out, origins_of
from trainer.settings.settings import TrainSettings
from trainer.settings.table import GUARD_MEASURE
from trainer.suites.registry import read_benchmark

MAX_PROBES = 4


def choose_probes(benchmark: Benchmark) -> list[str]:
    """The ids of `MAX_PROBES` held-out groups, spread evenly: the same for the same split."""
    ids = list(benchmark.changed)  # none of a shape without a second instruction
    count = min(MAX_PROBES, len(ids))
    return [ids[place * len(ids) // count] for place in range(count)]


def describe_probes(benchmark: Benchmark, probes: list[str]) -> list[dict[str, Any]]:
    """The texts of the probes and among how many passages they are ranked."""
    found = []
    for probe in probes:
        question = benchmark.questions[benchmark.original[probe]]
        other = benchmark.questions[benchmark.changed[probe]]
        found.append(
            {
                "query": question.query,
                "instruction_positive": question.instruction,
                "instruction_negative": other.instruction,
                "passage": benchmark.corpus[benchmark.changed_documents[probe][0]],
                "passages": len(benchmark.corpus),
            }
        )
    return found


def probe_ranks(
    benchmark: Benchmark, probes: list[str], ranks: Mapping[str, Mapping[str, int]]
) -> dict[str, float]:
    """`probe/N/asked` and `probe/N/other`: the rank of P+ under I+ and under I-."""
    found = {}
    for number, probe in enumerate(probes):
        document = benchmark.changed_documents[probe][0]
        found[f"probe/{number}/asked"] = float(ranks[benchmark.original[probe]][document])
        found[f"probe/{number}/other"] = float(ranks[benchmark.changed[probe]][document])
    return found


if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from analysis.figures.paired import Scores
    from trainer.evaluate.vector_cache import Caches

log = logging.getLogger("inf.train")


def circular_of(settings: TrainSettings, groups: Groups) -> list[str]:
    """Why scores on these held-out groups are not independent of the models involved; empty where
    people approved the groups."""
    if settings.held_out_groups == "approved":
        return []
    releases = [groups.release, *(each.release for each in groups.more)]
    found = [
        sentence
        for release in releases
        for sentence in circular_held_out(settings, origins_of(settings, release.manifest))
    ]
    return list(dict.fromkeys(found))


class HeldOutScores:
    """Scores a model before, during and after its training, and keeps the first and the last."""

    def __init__(
        self,
        settings: TrainSettings,
        groups: Groups,
        *,
        check: Callable[[], None],
        caches_of_base: "Callable[[SentenceTransformer], Caches | None] | None" = None,
    ) -> None:
        """caches_of_base: where the untrained model's vectors are kept between trainings."""
        self.template, self.check = settings.parsed_template, check
        self.choice, self.groups = settings.held_out_groups, len(groups.held_out)
        self.judge = settings.held_out_judge
        self.held_out = groups.held_out
        self.circular = circular_of(settings, groups)
        self.caches_of_base = caches_of_base
        # Of a model whose passages are not trained: these stay those of the base.
        self.keeps_passages = settings.trained_side == "query"
        self.kept: Caches | None = None
        self.best_by, self.guard_drop = settings.best_by, settings.guard_drop
        self.guard = read_benchmark(Path(settings.guard).expanduser()) if settings.guard else None
        self.guard_scores: dict[str, float] = {}
        self.bf16 = uses_bf16(settings.precision)
        self.benchmark: Benchmark | None = (
            held_out_benchmark(groups.release.name, groups.held_out) if groups.held_out else None
        )
        self.probes = choose_probes(self.benchmark) if self.benchmark else []
        has_probe = settings.natural_probe == "on" and natural.FILE.is_file()
        self.items = natural.read_natural_probe() if has_probe else ()
        self.before: dict[str, float | None] = {}
        self.after: dict[str, float | None] = {}
        self.intervals: dict[str, dict[str, tuple[float | None, float | None]]] = {}
        self.natural: dict[str, natural.ProbeScores] = {}
        self.per_query: dict[str, Scores] = {}
        self.of_groups: dict[str, list[np.ndarray]] = {}
        self.seconds: dict[str, float] = {}  # of scoring, by when

    def shown_probes(self) -> list[dict[str, Any]]:
        """The texts of the followed groups, for the pages."""
        return describe_probes(self.benchmark, self.probes) if self.benchmark else []

    def shown_examples(self) -> dict[str, Any] | None:
        """What the instruction changed, for Try it; None before both ends are scored."""
        if self.of_groups.keys() != {"before", "after"} or not self.probes:
            return None
        return choose_examples(self.held_out, self.of_groups["before"], self.of_groups["after"])

    def score_before(self, model: "SentenceTransformer") -> dict[str, float]:
        """Score the untrained model with all controls; returns what its curves begin with."""
        with self._timed("before"):
            caches = self.caches_of_base(model) if self.caches_of_base else None
            if caches and self.keeps_passages:
                self.kept = (None, caches[1])
            self.before, curves = self._score(model, "before", caches)
            curves |= self._score_guard(model, "before", caches)
            return curves | self._score_natural(model, "before", caches)

    def score_now(self, model: "SentenceTransformer") -> dict[str, float]:
        """Score between two steps, without controls."""
        with self._timed("now"):
            curves = self._score(model, "now", self.kept)[1]
            curves |= self._score_guard(model, "now", self.kept)
            if self.best_by in natural.MEASURES:
                curves |= self._score_natural(model, "now", self.kept)
            return curves

    def score_after(self, model: "SentenceTransformer") -> dict[str, float]:
        """Score the trained model with all controls; returns what its curves end with."""
        with self._timed("after"):
            self.after, curves = self._score(model, "after", self.kept)
            curves |= self._score_guard(model, "after", self.kept)
            return curves | self._score_natural(model, "after", self.kept)

    @contextmanager
    def _timed(self, when: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds[when] = self.seconds.get(when, 0.0) + time.monotonic() - began

    def is_below_guard(self, curves: Mapping[str, float]) -> bool:
        """Whether the guard's nDCG@10 fell by more than `guard_drop` from the base model's."""
        if GUARD_MEASURE not in curves or "before" not in self.guard_scores:
            return False
        return self.guard_scores["before"] - curves[GUARD_MEASURE] > self.guard_drop

    def as_result(self) -> dict[str, Any]:
        """The job's `held_out`, `scoring_seconds` (before, now: between steps, after) and, where
        they were scored, `natural_probe` and `guard`."""
        found: dict[str, Any] = {"groups": self.groups, "before": self.before, "after": self.after}
        if self.benchmark:
            found["choice"] = self.choice
            found |= {"judge": self.judge} if self.judge else {}
            found["bm25"] = bm25_following(self.benchmark, self.template)
            found["bm25_convention"] = convention_of(self.benchmark.language)
            found["intervals"] = self.intervals
            if self.per_query.keys() >= {"before", "after"}:
                found["gain"] = gains(
                    self.per_query["before"],
                    self.per_query["after"],
                    OF_TRAINING,
                    about_questions(self.benchmark),
                )
            found["notes"] = self._notes()
        guard = {}
        if self.guard:
            ends = {when: self.guard_scores.get(when) for when in ("before", "after")}
            guard = {"guard": {"benchmark": self.guard.name, "ndcg@10": ends}}
        if not self.natural:
            return {"held_out": found, "scoring_seconds": self.seconds, **guard}
        probe: dict[str, Any] = {"items": len(self.items)}
        for when, scores in self.natural.items():
            if when == "now":
                continue
            probe[when] = scores.metrics
            probe[f"{when}_by_style"] = scores.flip_by_style
        if self.natural.keys() >= {"before", "after"}:
            first, last = (self.natural[when].per_item for when in ("before", "after"))
            probe["gain"] = gains(first, last, tuple(natural.MEASURES))
        probe["bm25"] = natural.bm25_natural_probe(self.items, self.template)
        times = {"scoring_seconds": self.seconds}
        return {"held_out": found, "natural_probe": probe, **times, **guard}

    def _score(
        self, model: "SentenceTransformer", when: str, caches: "Caches | None" = None
    ) -> tuple[dict[str, float | None], dict[str, float]]:
        """(what the result keeps, the curves' values with the ranks of the probes).

        when: `before` and `after` with controls, and intervals over groups that share a query;
        `now` without.
        """
        if self.benchmark is None:
            return {}, {}
        with scoring_precision(model.device, bf16=self.bf16):
            scores = score_model(
                model,
                self.template,
                self.benchmark,
                check=self.check,
                caches=caches,
                controls=when != "now",
            )
        if when != "now":
            self.of_groups[when] = list(scores.of_groups.values())  # in the order of the groups
            self.per_query[when] = scores.per_query
            questions = about_questions(self.benchmark)
            means = following_means(scores.per_query, questions, OF_TRAINING)
            self.intervals[when] = {name: (of.low, of.high) for name, of in means.items()}
        found = summary(scores.metrics)
        curves = {
            name: value for name, value in found.items() if value is not None and ":" not in name
        }
        # measured with the controls alone, so that a curve would have its two ends only
        of_ends = {name: scores.metrics[name] for name in MEASURED if name in scores.metrics}
        kept = found | (of_ends if when != "now" else {})
        return kept, curves | probe_ranks(self.benchmark, self.probes, scores.ranks)

    def _score_guard(
        self, model: "SentenceTransformer", when: str, caches: "Caches | None" = None
    ) -> dict[str, float]:
        if self.guard is None:
            return {}
        with scoring_precision(model.device, bf16=self.bf16):
            scores = score_model(
                model,
                self.template,
                self.guard,
                check=self.check,
                caches=caches,
                controls=False,
            )
        self.guard_scores[when] = value = scores.metrics["ndcg@10"] or 0.0
        return {GUARD_MEASURE: value}

    def _score_natural(
        self, model: "SentenceTransformer", when: str, caches: "Caches | None" = None
    ) -> dict[str, float]:
        if not self.items:
            return {}
        with scoring_precision(model.device, bf16=self.bf16):
            self.natural[when] = natural.score_natural_probe(
                model,
                self.template,
                self.items,
                check=self.check,
                caches=caches,
                controls=when != "now",
            )
        metrics = self.natural[when].metrics.items()
        return {name: value for name, value in metrics if ":" not in name}

    def _notes(self) -> list[str]:
        """What the scores on held-out groups cannot show, and why."""
        found = list(self.circular)
        flip = self.before.get(INSTRUCTION_FLIP)
        if flip is None or flip <= MAX_BASE_FLIP:
            return found
        note = (
            f"the base model already has {INSTRUCTION_FLIP} {flip:.2f} on these held-out groups: "
            "they are too easy to show an improvement. Give held_out_groups=all, or other groups"
        )
        log.warning("%s", note)
        return [note, *found]


# What training gained, measured on the same groups and items before and after: paired.
Gain = dict[str, float | None]
"""value, low and high: trained minus base with its 95 % interval; None where there is none. gained
and lost: on how many groups or items the trained model is better and worse (not in checkpoints of
earlier versions)."""


def gains(
    before: Scores, after: Scores, measures: Iterable[str], questions: Questions | None = None
) -> dict[str, Gain]:
    """{measure: its gain} of those that both have. questions: which belong to one cluster, as
    `paired_difference` takes them; without it everything scored is independent."""
    alone = {name: {"cluster": name, "scored": True} for name in before}
    found = {}
    for measure in measures:
        gain = paired_difference(before, after, measure, questions or alone)
        if gain.value is not None:
            found[measure] = {
                **{"value": gain.value, "low": gain.low, "high": gain.high},
                **{"gained": gain.gained, "lost": gain.lost},
            }
    return found
