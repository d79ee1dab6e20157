"""The text baseline of a run's items: how often shared words alone find the right passage.

The card marks, of each passage, the words that it shares with instruction and query. Whoever
chooses the passage with the most different marked words, without reading, is right in this share of
the items; where several passages have as many, each counts for its part. Far above chance, judges
can agree without understanding.
"""

import random
from collections import defaultdict
from statistics import fmean

from sqlalchemy import select
from sqlalchemy.orm import Session

from analysis.figures.means import share_interval
from analysis.map.function_words import function_words
from analysis.text.words import FUNCTION_WORDS, content_words
from curation.rules.language import language_of, language_of_pair
from db.corpus.texts import passage_texts
from db.rows import Row
from db.run.new_items import is_pick
from db.run.runs import shape_of
from db.tables import Group, Item, Pair

MAX_GROUPS = 400  # of a larger run a sample, the same each time


class TextBaseline(Row):
    """The figures over `items` of `groups` groups, `sampled` if there are more of these.

    `low`, `high`: 95 % interval, as if each group were one item. `chance`: the share that a blind
    guess finds. `foreign`: items with an added passage in another language than the pair's.
    """

    items: int
    groups: int
    sampled: bool
    found: float
    low: float
    high: float
    chance: float
    foreign: int


def text_baseline(session: Session, run_id: int) -> TextBaseline | None:
    """The text baseline of the run's items as first judged; None without an item."""
    ids = list(
        session.scalars(
            select(Item.group_id)
            .join(Group, Group.id == Item.group_id)
            .where(Group.run_id == run_id, Item.revision == 1, is_pick())
            .distinct()
            .order_by(Item.group_id)
        )
    )
    if not ids:
        return None
    chosen = ids if len(ids) <= MAX_GROUPS else random.Random(run_id).sample(ids, MAX_GROUPS)
    rows = session.execute(
        select(Item, Pair.passage_id, Pair.query)
        .join(Group, Group.id == Item.group_id)
        .join(Pair, Pair.id == Group.pair_id)
        .where(Item.group_id.in_(chosen), Item.revision == 1, is_pick())
    ).all()
    shown = {entry["passage_id"] for item, _, _ in rows for entry in item.candidates}
    texts = passage_texts(session, sorted(shown | {passage_id for _, passage_id, _ in rows}))
    shape = shape_of(session, run_id)
    own = {*shape.roles, *(name for text in shape.lists for name in text.names)}
    added = {
        entry["passage_id"]
        for item, _, _ in rows
        for entry in item.candidates
        if entry["label"] not in own
    }
    spoken = {one: language_of(texts[one]) for one in added}
    of_pairs = {
        (passage_id, query): language_of_pair(query, texts[passage_id])
        for _, passage_id, query in rows
    }
    words = {
        (one, language): content_words(texts[one], listed_words(language))
        for item, passage_id, query in rows
        for one in (entry["passage_id"] for entry in item.candidates)
        for language in (of_pairs[passage_id, query],)
    }
    found: dict[int, list[float]] = defaultdict(list)
    chances, foreign = [], 0
    for item, passage_id, query in rows:
        language = of_pairs[passage_id, query]
        question = content_words(f"{item.instruction} {item.query}", listed_words(language))
        shared = {
            entry["label"]: len(question & words[entry["passage_id"], language])
            for entry in item.candidates
        }
        most = [label for label, number in shared.items() if number == max(shared.values())]
        found[item.group_id].append((item.expected in most) / len(most))
        chances.append(1 / len(shared))
        foreign += language is not None and any(
            spoken[entry["passage_id"]] not in (None, language)
            for entry in item.candidates
            if entry["label"] not in own
        )
    share = fmean(value for values in found.values() for value in values)
    low, high = share_interval(share, len(found))
    return TextBaseline(
        items=len(rows),
        groups=len(found),
        sampled=len(chosen) < len(ids),
        found=share,
        low=low,
        high=high,
        chance=fmean(chances),
        foreign=foreign,
    )


def listed_words(language: str | None) -> frozenset[str]:
    """The function words of a language within the Latin script; the English ones where it is
    another or unclear."""
    known = language is not None and language != "en" and language.islower()
    return function_words((str(language),)) if known else FUNCTION_WORDS


def baseline_sentence(found: TextBaseline) -> str:
    """The baseline in words, for the page and the terminal."""
    text = (
        f"Shared words alone find the right passage in {found.found:.1%} of {found.items:,} items "
        f"(95 % {found.low:.1%} to {found.high:.1%}; chance is {found.chance:.1%})."
    )
    if found.foreign:
        text += (
            f" {found.foreign:,} of them hold an added passage in another language, which gives "
            "it away."
        )
    return text
