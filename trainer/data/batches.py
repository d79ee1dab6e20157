"""From rows (one group each) to a batch: different texts, tokenised once, and an index table.

B rows of S scenarios become N = SB triplets (I_i, Q_i, P_i). What the objectives contrast are
scores of texts that repeat a lot: I+ stands in two triplets of its row, and with the I term N²
crossed texts iq_{j,i} = (I_j, Q_i) are wanted. So each different text is embedded once, and tables
say where in the list of different texts each triplet's is.

Note: sampling is seeded with the batch's own text, never a global generator: a
batch that is prefetched, or built again after a resume, is the same batch.
"""

import hashlib
import math
import os
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from db.shape import Shape
from trainer.data.groups import Group, group_key, group_of
from trainer.data.passage_pool import PassagePool
from trainer.objectives.names import Objective
from trainer.parallel.processes import ALONE, Processes, gathered_place, max_share, share_of
from trainer.settings.template import INSTRUCTED, Template

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor

TeacherScores = Mapping[str, list[list[float]]]
"""{key of a group: scores (S scenarios, S passages)}."""

NOWHERE = -1
# No name may start with another one: sentence-transformers finds columns by their prefix.
QUERIES, PASSAGES = "queries", "passages"


@dataclass(frozen=True)
class TripletBatch:
    """Different texts and where each triplet finds its own.

    queries: instruction-queries, first the `matched` many iq_{i,i}, then the crossed iq_{j,i}.
    matched_of, passage_of: N places; matched_of is NOWHERE where the objective does not
    embed that triplet's instruction-query. crossed_of: N × M places into queries, of the
    instruction negatives of anchor i; NOWHERE = none. mined_of: places of mined passages that no
    triplet of the batch has. instruction_of: for each of queries which
    instruction it begins with (equal numbers, equal instructions).
    """

    queries: list[str]
    matched: int
    passages: list[str]
    matched_of: list[int]
    passage_of: list[int]
    mined_of: list[int]
    crossed_of: list[list[int]]
    instruction_of: list[int]


def build_batch(
    groups: Sequence[Group],
    template: Template,
    objective: Objective,
    instructions_sampled: int = 0,
    mined: Sequence[str] = (),
) -> TripletBatch:
    """Flatten groups to triplets and list the texts that the objective's terms need.

    Instruction negatives of anchor i are iq_{j,i} for every triplet j of the batch whose
    instruction is another text (plain rows have none and are none), or `instructions_sampled` of
    them: always the row's own contrasting instruction (I- for I+, and the reverse), the rest
    sampled from the other different instructions of the batch. mined: further negative passages.
    """
    triplets = [triplet for group in groups for triplet in group.triplets()]
    texts = [template.apply(i, q) for i, q, _ in triplets]
    queries, _ = _different(texts[:: objective.anchor_every])
    matched = len(queries)
    place_of = {text: place for place, text in enumerate(queries)}
    matched_of = [place_of.get(text, NOWHERE) for text in texts]
    passages, places = _different([*(passage for _, _, passage in triplets), *mined])
    passage_of = places[: len(triplets)]
    mined_of = list(range(max(passage_of) + 1, len(passages)))
    crossed_of: list[list[int]] = []
    numbers: dict[str, int] = {}
    owners = {
        template.apply(i, q): numbers.setdefault(i, len(numbers)) for i, q, _ in reversed(triplets)
    }
    instruction_of = [owners[text] for text in queries]
    if "I" in objective.terms:
        for instructions, (_, query, _) in zip(
            _negatives(groups, triplets, instructions_sampled), triplets, strict=True
        ):
            row = []
            for instruction in instructions:
                if instruction is None:
                    row.append(NOWHERE)
                    continue
                text = template.apply(instruction, query)
                if text not in place_of:
                    place_of[text] = len(queries)
                    queries.append(text)
                    instruction_of.append(numbers[instruction])
                row.append(place_of[text])
            crossed_of.append(row)
    return TripletBatch(
        queries, matched, passages, matched_of, passage_of, mined_of, crossed_of, instruction_of
    )


def _negatives(
    groups: Sequence[Group], triplets: Sequence[tuple[str, str, str]], sampled: int
) -> list[list[str | None]]:
    """For each anchor its negative instructions; None where there is none to fill the row."""
    instructions = [instruction for instruction, _, _ in triplets]
    if sampled == 0:
        return [
            [other if own and other and other != own else None for other in instructions]
            for own in instructions
        ]
    different = [each for each in dict.fromkeys(instructions) if each]
    generator = _generator(groups)
    rows: list[list[str | None]] = []
    for group in groups:
        own_triplets, place = group.triplets(), group.shape.other_instruction
        plain, unlike = own_triplets[0][0], own_triplets[place or 0][0]
        for own, _, _ in own_triplets:
            if not own:
                rows.append([None] * sampled)
                continue
            contrast = unlike if own == plain else plain
            first = [contrast] if contrast != own else []
            rest = [other for other in different if other not in (own, contrast)]
            others = generator.sample(rest, min(len(rest), sampled - len(first)))
            row: list[str | None] = [*first, *others]
            rows.append(row + [None] * (sampled - len(row)))
    return rows


def with_plain_rows(groups: Sequence[Group], share: float) -> list[Group]:
    """The groups, each with probability `share` without its instructions.

    Without one, P+ and P1- both answer Q+ (the masks know it), and P2- answers Q-. Instructions
    are not contrasted there: the query alone is no negative of its passage.
    """
    if share == 0:
        return list(groups)
    generator = _generator(groups, "plain rows")
    return [
        group.without_instructions() if generator.random() < share else group for group in groups
    ]


def _generator(groups: Sequence[Group], purpose: str = "") -> random.Random:
    """Random numbers that depend on the batch's own text alone."""
    text = "\0".join(text for group in groups for triplet in group.triplets() for text in triplet)
    return random.Random(hashlib.sha256((purpose + text).encode()).digest())


def _different(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """The different texts in order of appearance, and the place of each text among them."""
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    return list(places), [places[text] for text in texts]


class Collator:
    """Rows of the release → tokenised columns and the index table (under `label`).

    Two columns, or the first alone where passages are not trained: all instruction-queries, matched
    and crossed, in one pass of the model, and the passages.
    A text is listed only where the objective reads it: what gets no gradient costs.
    """

    # SentenceTransformerTrainer reads this of a collator.
    valid_label_columns: Sequence[str] = ()

    def __init__(
        self,
        model: "SentenceTransformer",
        template: Template,
        objective: Objective,
        instructions_sampled: int = 0,
        *,
        standard_share: float = 0.0,
        teacher: "TeacherScores | None" = None,
        mined: "Mapping[str, Sequence[str]] | None" = None,
        packing: bool = False,
        pool: PassagePool | None = None,
        processes: Processes = ALONE,
        shape: Shape,
        right: "Mapping[str, Collection[str]] | None" = None,
    ) -> None:
        """right: the passages that satisfy a text of the template, where rows have negatives of
        their own (`trainer.data.claims`). pool: the passages' vectors where passages are not
        trained; there is no column of them then, and places of passages are those of the pool."""
        self.preprocess: Callable[..., Mapping[str, Any]] = model.preprocess
        self.pad_token_id: int = getattr(model[0].tokenizer, "pad_token_id", 0) if packing else 0
        self.prompts = dict(model.prompts)
        self.template, self.objective = template, objective.for_shape(shape)
        self.shape = shape
        self.instructions_sampled, self.packing = instructions_sampled, packing
        self.processes, self.standard_share = processes, standard_share
        self.teacher, self.mined, self.pool, self.right = teacher, mined, pool, right
        self.query_task = "query" if pool is None else INSTRUCTED

    def __call__(self, rows: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        import torch

        if torch.utils.data.get_worker_info() is not None:  # forked: tokenizers' threads are gone
            os.environ["TOKENIZERS_PARALLELISM"] = "false"
        whole = [group_of(row, shape=self.shape) for row in rows]
        mined = [text for group in whole for text in (self.mined or {}).get(group_key(group), ())]
        groups = with_plain_rows(whole, self.standard_share)
        batch = build_batch(groups, self.template, self.objective, self.instructions_sampled, mined)
        tables = {
            "matched_of": torch.tensor(batch.matched_of),  # (N,)
            "passage_of": torch.tensor(batch.passage_of),  # (N,)
        }
        if self.teacher is not None:
            count = len(self.shape.roles)
            # Plain rows: the teacher read their instructions.
            unknown = [[math.nan] * count] * count
            scores = [self.teacher.get(group_key(group), unknown) for group in groups]
            tables["teacher"] = torch.tensor(scores).view(-1, count)  # (N, passages of the group)
        if self.mined is not None:
            tables["mined_of"] = torch.tensor(batch.mined_of, dtype=torch.long)  # (mined,)
        if self.right is not None and self.pool is None:
            here = {passage: place for place, passage in enumerate(batch.passages)}
            of_text = {
                text: [here[passage] for passage in self.right.get(text, ()) if passage in here]
                for text in batch.queries
            }
            self._add_right(tables, batch.queries, of_text)
        if batch.crossed_of:
            tables["crossed_of"] = torch.tensor(batch.crossed_of)  # (N, M)
        if self.packing:
            columns, of_queries, place_of = self._packed(batch)
        else:
            columns = self._column(QUERIES, batch.queries, self.query_task)
            of_queries = max_share(len(batch.queries), self.processes)
            places = torch.arange(len(batch.queries))
            place_of = gathered_place(places, self.processes.count, of_queries)
            own = range(self.processes.rank, batch.matched, self.processes.count)
            tables["matched"] = torch.tensor(len(own))  # (): the first of this process's queries
        if self.pool is None:
            columns |= self._column(PASSAGES, batch.passages, "document")
        else:
            self._read_pool(tables, batch, self.pool)
        for name in ("matched_of", "crossed_of", "text_of_right"):
            if name in tables:
                old = tables[name]
                tables[name] = place_of[old.clamp(min=0)].masked_fill(old == NOWHERE, NOWHERE)
        if self.processes.count > 1:
            rows_of = [of_queries]
            if self.pool is None:
                of_passages = max_share(len(batch.passages), self.processes)
                rows_of.append(of_passages)
                for name in ("passage_of", "mined_of", "right_of"):
                    if name in tables:
                        tables[name] = gathered_place(
                            tables[name], self.processes.count, of_passages
                        )
            tables["rows_of"] = torch.tensor(rows_of)  # (columns,)
        return {**columns, "label": tables}

    @staticmethod
    def _read_pool(tables: "dict[str, Tensor]", batch: TripletBatch, pool: PassagePool) -> None:
        """Places of passages become those of the pool; `others_of`: the negatives of the term P;
        `text_of_right`, `right_of`: pairs of a text and a passage that is right for it."""
        import torch

        places = torch.tensor([pool.place_of[passage] for passage in batch.passages])
        tables["passage_of"] = places[tables["passage_of"]]
        tables.pop("mined_of", None)
        tables["others_of"] = torch.tensor(sorted(pool.negatives | set(places.tolist())))
        Collator._add_right(tables, batch.queries, pool.right_of)

    @staticmethod
    def _add_right(
        tables: dict[str, Any], texts: Sequence[str], right_of: "Mapping[str, Collection[int]]"
    ) -> None:
        """Add which passages, by their places, satisfy which of the texts: they are no negatives
        of it."""
        import torch

        found = [
            (place, passage)
            for place, text in enumerate(texts)
            for passage in right_of.get(text, ())
        ]
        tables["text_of_right"] = torch.tensor([place for place, _ in found], dtype=torch.long)
        tables["right_of"] = torch.tensor([passage for _, passage in found], dtype=torch.long)

    def _packed(self, batch: TripletBatch) -> "tuple[dict[str, Any], int, Tensor]":
        """(packed rows, number of texts of the largest share, the place of each text).

        An instruction's texts stay together: processes share the instructions.
        """
        import torch

        from trainer.model.packing import as_features, pack_rows

        texts = batch.queries
        by_owner: dict[int, list[int]] = {}
        for place, owner in enumerate(batch.instruction_of):
            by_owner.setdefault(owner, []).append(place)
        count = self.processes.count
        shares = [
            [place for places in list(by_owner.values())[rank::count] for place in places]
            for rank in range(count)
        ]
        largest = max(map(len, shares))
        own = shares[self.processes.rank] or [0]
        flat = self.preprocess(
            [texts[place] for place in own], prompt=self.prompts.get("query") or None, task="query"
        )
        tokens = [
            ids[mask.bool()].tolist()
            for ids, mask in zip(flat["input_ids"], flat["attention_mask"], strict=True)
        ]
        packed = pack_rows(tokens, [batch.instruction_of[place] for place in own])
        place_of = torch.empty(len(texts), dtype=torch.long)
        for rank, share in enumerate(shares):
            place_of[torch.tensor(share, dtype=torch.long)] = rank * largest + torch.arange(
                len(share)
            )
        features = as_features(packed, self.pad_token_id)
        return {f"{QUERIES}_{key}": value for key, value in features.items()}, largest, place_of

    def _column(self, name: str, texts: list[str], task: str) -> dict[str, Any]:
        prompt = self.prompts.get(task) or None
        features = self.preprocess(share_of(texts, self.processes), prompt=prompt, task=task)
        return {f"{name}_{key}": value for key, value in features.items()} | {f"{name}_task": task}
