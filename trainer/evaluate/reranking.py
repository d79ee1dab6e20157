"""Baselines that read query and document together: cross-encoders, monoT5 and FLAN-T5.

By name: `cross-encoder:NAME`, `monot5:NAME`, `flan-t5:NAME` (NAME: a folder or a model of the hub).
They score a question's listed candidates; where a benchmark lists none, BM25's best 100, and a
document that is not among them has no score (its rank is behind all others).

- monoT5 (Nogueira et al. 2020): "Query: q Document: d Relevant:", the probability of "true" against
  "false" as the first word decoded.
- FLAN-T5: prompted with a question, "yes" against "no" likewise. The paper prints no prompt: this
  is ours.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analysis.embed.chat_template import set_chat_template, stores_its_reading
from db.errors import BadInput

if TYPE_CHECKING:
    from trainer.evaluate.benchmarks import Benchmark
    from trainer.evaluate.scoring import Scores
    from trainer.settings.template import Template

CROSS_ENCODER, MONO_T5, FLAN_T5 = "cross-encoder", "monot5", "flan-t5"
KINDS = (CROSS_ENCODER, MONO_T5, FLAN_T5)
PROMPTS = {
    MONO_T5: "Query: {query} Document: {document} Relevant:",
    FLAN_T5: "Is the passage relevant to the query? Answer yes or no.\n\nQuery: {query}\n\n"
    "Passage: {document}\n\nAnswer:",
}
WORDS = {MONO_T5: ("true", "false"), FLAN_T5: ("yes", "no")}
FIRST_STAGE = 100
PAIRS_AT_ONCE = 32
MAX_TOKENS = 512
PairScorer = Callable[[list[tuple[str, str]]], list[float]]


def is_reranker(name: str) -> bool:
    """Whether the name is of one of these baselines."""
    return name.partition(":")[0] in KINDS and ":" in name


def plain_name(name: str) -> str:
    """The folder or name of a model without the kind of a reranker before it."""
    return name.partition(":")[2] if is_reranker(name) else name


def load_reranker(name: str) -> PairScorer:
    """(query, document) pairs → scores. Raises BadInput where the model cannot be loaded."""
    from analysis.embed.model_source import model_source

    kind, _, model = name.partition(":")
    source = model_source(model)
    try:
        return _cross_encoder(source) if kind == CROSS_ENCODER else _t5(source, kind)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise BadInput(
            f"the {kind} model {model!r} cannot be loaded ({lines[0]})",
            "give a folder or name whose weights are safetensors and that needs no code of its own",
            code="model_load_failed",
        ) from error


def score_reranker(
    score_pairs: PairScorer,
    template: "Template",
    benchmark: "Benchmark",
    *,
    progress: Callable[[int, int], None] | None = None,
    check: Callable[[], None] | None = None,
    paraphrases: Mapping[str, Sequence[str]] | None = None,
) -> "Scores":
    """Rank every question's candidates by the pairs' scores, and measure."""
    from trainer.evaluate.following import following_of
    from trainer.evaluate.scoring import beside_following, changed_ranks, measure_run

    listed = benchmark.candidates or _first_stage(benchmark, template)
    moved = {
        name: candidates
        for query, candidates in benchmark.changed_candidates.items()
        for name in (benchmark.original[query], benchmark.changed[query])
    }
    run: dict[str, dict[str, float]] = {}
    whole: dict[str, dict[str, float]] = {}  # with the candidates that p-MRR alone needs
    for number, (name, question) in enumerate(benchmark.questions.items(), start=1):
        text = template.apply(question.instruction, question.query)
        ranked = listed.get(name, [])
        documents = list(dict.fromkeys([*ranked, *moved.get(name, [])]))
        scores: list[float] = []
        for start in range(0, len(documents), PAIRS_AT_ONCE):
            if check:
                check()
            part = documents[start : start + PAIRS_AT_ONCE]
            scores += score_pairs([(text, benchmark.corpus[document]) for document in part])
        whole[name] = dict(zip(documents, scores, strict=True))
        run[name] = {document: whole[name][document] for document in ranked}
        if progress:
            progress(number, len(benchmark.questions))

    def score(texts: Sequence[str], wanted: Sequence[Sequence[str]]) -> list[list[float]]:
        return [
            score_pairs([(text, benchmark.corpus[document]) for document in documents])
            for text, documents in zip(texts, wanted, strict=True)
        ]

    following = following_of(benchmark, template, score)
    beside = beside_following(benchmark, template, score, paraphrases)
    return measure_run(benchmark, run, changed_ranks(benchmark, whole), following, beside)


def _first_stage(benchmark: "Benchmark", template: "Template") -> dict[str, list[str]]:
    """BM25's best documents of every question, without those that it excludes."""
    from analysis.text.bm25 import Bm25

    ids = list(benchmark.corpus)
    index = Bm25(list(benchmark.corpus.values()), benchmark.language)
    found: dict[str, list[str]] = {}
    for name, question in benchmark.questions.items():
        excluded = set(benchmark.excluded.get(name, ()))
        depth = min(len(ids), FIRST_STAGE + len(excluded))
        places, _ = index.top([template.apply(question.instruction, question.query)], depth)
        best = [ids[place] for place in places[0] if ids[place] not in excluded]
        found[name] = best[:FIRST_STAGE]
    return found


def _cross_encoder(source: str) -> PairScorer:
    from sentence_transformers import CrossEncoder

    model: Any = CrossEncoder(
        source, trust_remote_code=False, model_kwargs={"use_safetensors": True}
    )
    if not stores_its_reading(source):
        set_chat_template(model, applied=False)
    if model.num_labels != 1:
        raise ValueError(f"it gives {model.num_labels} numbers for a pair, and one is needed")

    def score(pairs: list[tuple[str, str]]) -> list[float]:
        return [float(value) for value in model.predict(pairs, show_progress_bar=False)]

    return score


def _t5(source: str, kind: str) -> PairScorer:
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    model: Any = AutoModelForSeq2SeqLM.from_pretrained(
        source, trust_remote_code=False, use_safetensors=True
    )
    model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    right, wrong = (_first_token(tokenizer, word) for word in WORDS[kind])

    def score(pairs: Sequence[tuple[str, str]]) -> list[float]:
        texts = [_prompt(tokenizer, kind, query, document) for query, document in pairs]
        features = tokenizer(texts, padding=True, return_tensors="pt").to(model.device)
        start = torch.full((len(texts), 1), model.config.decoder_start_token_id)
        with torch.no_grad():
            logits = model(**features, decoder_input_ids=start.to(model.device)).logits[:, 0]
        both = torch.stack([logits[:, right], logits[:, wrong]], dim=1).float()  # (pairs, 2)
        return [float(value) for value in both.softmax(dim=1)[:, 0]]

    return score


def _first_token(tokenizer: Any, word: str) -> int:
    return int(tokenizer(word, add_special_tokens=False)["input_ids"][0])


def _prompt(tokenizer: Any, kind: str, query: str, document: str) -> str:
    """The prompt with the document cut, so that the question at its end is never lost."""
    empty = PROMPTS[kind].format(query=query, document="")
    room = max(0, MAX_TOKENS - len(tokenizer(empty)["input_ids"]))
    tokens = tokenizer(document, add_special_tokens=False)["input_ids"]
    if len(tokens) > room:
        document = tokenizer.decode(tokens[:room], skip_special_tokens=True)
    return PROMPTS[kind].format(query=query, document=document)
