"""Hard negatives from the training's own passages and a corpus, mined once with the base model.

For (I+,Q+) of every group: the passages that the untrained model ranks highest, but for those of
any group that shares a query or passage with it (they may answer Q+), and those whose score is
above a share of P+'s score: such a passage is likely right too (NV-Retriever's positive-aware
limit, Moreira et al. 2024, arXiv 2407.15831). They are kept in the work folder, so that a training
that goes on after a kill reads the same ones.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.embed.neighbours import below_share
from trainer.data.groups import Group, group_key, plain
from trainer.data.passage_pool import PassagePool, new_passages
from trainer.evaluate.scoring import encode_unique
from trainer.model.backbone import question_encoder
from trainer.settings.settings import TrainSettings
from trainer.settings.template import Template

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

GROUPS_AT_ONCE = 256
MinedNegatives = Mapping[str, Sequence[str]]
"""{key of a group: passages, the hardest first}."""


def corpus_of(settings: TrainSettings) -> list[str]:
    """The passages of the settings' corpus. Raises BadInput, BadRows with the line."""
    if not settings.mined_corpus:
        return []
    from analysis.files.corpora import texts_of  # here: it loads the store, which a GPU may lack

    return [found.text for found in texts_of(Path(settings.mined_corpus).expanduser())]


def mine_negatives(
    model: "SentenceTransformer",
    groups: Sequence[Group],
    template: Template,
    count: int,
    margin: float,
    file: Path,
    *,
    corpus: Sequence[str] = (),
    pool: PassagePool | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, list[str]]:
    """At most `count` negatives of each group, among the groups' passages and the corpus.

    margin: the largest score of a negative, as a share of P+'s score. pool: has their vectors.
    """
    if file.is_file():
        kept: dict[str, list[str]] = json.loads(file.read_text(encoding="utf-8"))
        return kept
    keyed = {group_key(group): group for group in groups}
    own = sorted({passage for group in keyed.values() for *_, passage in group.triplets()})
    passages = [*own, *new_passages(corpus, own)] if pool is None else list(pool.place_of)
    place_of = {passage: place for place, passage in enumerate(passages)}
    kin = _kin(list(keyed.values()), place_of)
    total = len(passages) * (pool is None) + len(keyed)
    done = 0

    def counted(texts: int) -> None:
        nonlocal done
        done += texts
        progress(done, total)

    if pool is None:
        vectors = encode_unique(model.encode_document, passages, counted)
    else:
        vectors = pool.vectors.numpy()
    found: dict[str, list[str]] = {}
    rows = list(keyed.items())
    for start in range(0, len(rows), GROUPS_AT_ONCE):
        part = rows[start : start + GROUPS_AT_ONCE]
        texts = [template.apply(*group.triplets()[0][:2]) for _, group in part]
        scores = encode_unique(question_encoder(model, ()), texts, counted) @ vectors.T
        for (key, group), of in zip(part, scores, strict=True):
            right = float(of[place_of[group.triplets()[0][2]]])
            near = [place for text in group.split_keys() for place in kin[plain(text)]]
            found[key] = [passages[place] for place in below_share(of, right, margin, count, near)]
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(found), encoding="utf-8")
    partial.replace(file)
    return found


def _kin(groups: Sequence[Group], place_of: Mapping[str, int]) -> dict[str, set[int]]:
    """For every query and passage, without case and spacing: the places of all passages of the
    groups that have it."""
    found: dict[str, set[int]] = {}
    for group in groups:
        places = {place_of[passage] for *_, passage in group.triplets()}
        for key in group.split_keys():
            found.setdefault(plain(key), set()).update(places)
    return found
