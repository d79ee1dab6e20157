"""The demo set, from what was written and judged to what ships. Run from the clone:

    python bench/demo_set/make.py build            written/*.jsonl -> curation/demo
    python bench/demo_set/make.py sheets OUT       items for blind judges, in batches of 100 groups
    python bench/demo_set/make.py sheets OUT left  only the items that no judge has seen yet
    python bench/demo_set/make.py again OUT        150 of those items once more, in another order
    python bench/demo_set/make.py collect ANSWERS  the judges' answers -> curation/demo/recording
    python bench/demo_set/make.py report ANSWERS   funnel and agreement of the judges
    python bench/demo_set/make.py shown KEY        the items of a key (A_104) as the judge saw them
    python bench/demo_set/make.py leakage          the leakage check of the pilot and of the others

`build` puts the side that the coin of the worksheet named as positive (I+, P+), the other as
negative (I-, P1-): writers gave both sides the same care, so nothing but the meaning tells which is
which. What a second reader found wrong or doubtful (`withheld.jsonl`) is no group of the set; its
passage stays a candidate, because the judges saw it. `sheets` grows the set in a store of its own
with the true prompts, rules and candidates and a judge that names nothing; each judge sees every
item in a random order of its own, under a token that says nothing, and items of a group in
different parts of a batch.
"""

import json
import os
import random
import secrets
import sys
import tempfile
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from curation.importing.importing import import_dataset  # noqa: E402
from curation.recorded.recording import GROUPS, SHIPPED, item_key, item_key_of  # noqa: E402
from db.corpus.datasets import text_sha256  # noqa: E402

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from db.run.groups import GroupRow
    from db.store.store import Store
from db.store.settings import owners_process  # noqa: E402

owners_process(True)

HERE = Path(__file__).parent
WRITTEN = HERE / "written"
KEYS = HERE / "judging" / "keys"
DEMO = ROOT / "curation" / "demo"
GROUPS_IN_BATCH = 100
ITEMS_AGAIN = 150
LEFT = 101  # the least number of a batch of items that were left


class _NamesNothing(dict[str, Any]):
    """The choices of a judge that answers every item with "none"."""

    def get(self, key: str, default: Any = None) -> Any:
        from curation.recorded.recording import Chosen

        return _NamesNothing() if key == "A" else Chosen("none")


def written() -> Iterator[dict[str, Any]]:
    """Every group as written, in the order of query and variant."""
    rows = [row for file in sorted(WRITTEN.glob("*.jsonl")) for row in read(file)]
    yield from sorted(rows, key=lambda row: (row["query_id"], row["variant"]))


def read(file: Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def write(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as JSON Lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    file.write_text("".join(lines), encoding="utf-8")


def build() -> None:
    """Make pairs, passages and the recorded texts from what was written."""
    pool = [row for row in read(DEMO / "passages.jsonl") if row["passage_id"] > "demo-p-090"]
    pool = [row for row in pool if row["passage_id"].startswith("demo-p-")]
    withheld = {row["query_id"] for row in read(HERE / "withheld.jsonl")}
    pairs, passages, recorded = [], [], []
    for row in written():
        name = f"{row['query_id'].removeprefix('demo-q-')}{row['variant']}"
        right, wrong = ("a", "b") if row["side"] == "A" else ("b", "a")
        text = row[f"passage_{right}"]
        if f"demo-{name}" not in withheld:
            pairs.append(
                {"query_id": f"demo-{name}", "query": row["query"], "passage_id": f"demo-{name}-p"}
            )
        passages.append(
            {
                "passage_id": f"demo-{name}-p",
                "text": text,
                "domain": row["domain"],
                "language": row["language"],
            }
        )
        if f"demo-{name}" in withheld:
            continue
        recorded.append(
            {
                "query_id": f"demo-{name}",
                "kind": row["kind"],
                "query": row["query"],
                "document_sha256": text_sha256(text),
                "instruction_positive": row[f"instruction_{right}"],
                "instruction_negative": row[f"instruction_{wrong}"],
                "query_negative": row["query_other"],
                "passage_instruction_negative": row[f"passage_{wrong}"],
                "passage_query_negative": row["passage_other"],
            }
        )
    write(DEMO / "pairs.jsonl", pairs)
    write(DEMO / "passages.jsonl", passages + pool)
    write(SHIPPED / "groups.jsonl", recorded)
    (SHIPPED / "judgments.jsonl").touch()
    print(f"{len(pairs)} groups over {len({row['query'] for row in pairs})} queries")


def sheets(out: Path, *, left: bool = False) -> None:
    """Write the items for judges A and B, shuffled, in batches of 100 groups, and their keys.

    `left`: only items without a recorded choice (a text was mended), as batch LEFT.
    """
    chance = random.Random(secrets.randbits(64))
    items = grown_items()
    if left:
        judged = {row["item"] for row in read(SHIPPED / "judgments.jsonl")}
        items = [item for item in items if name_of(item) not in judged]
    groups = list(dict.fromkeys(item["query_id"] for item in items))
    chance.shuffle(groups)
    there = [int(file.stem.split("_")[2]) for file in KEYS.glob("key_A_*.jsonl")]
    first = max([LEFT - 1, *there]) + 1 if left else 1
    batch_of = {name: place // GROUPS_IN_BATCH + first for place, name in enumerate(groups)}
    for judge in "AB":
        shown: dict[int, list[dict[str, Any]]] = {}
        keys: dict[int, list[dict[str, Any]]] = {}
        for scenario in range(3):  # the three of a group stand in different thirds of a batch
            part = [
                item
                for item in items
                if (item["scenario"] + batch_of[item["query_id"]]) % 3 == scenario
            ]
            chance.shuffle(part)
            for item in part:
                number, token = batch_of[item["query_id"]], secrets.token_hex(4)
                order = chance.sample(item["candidates"], len(item["candidates"]))
                shown.setdefault(number, []).append(
                    {
                        "token": token,
                        "query": item["query"],
                        "instruction": item["instruction"],
                        "passages": order,
                    }
                )
                keys.setdefault(number, []).append(
                    {
                        "token": token,
                        "query_id": item["query_id"],
                        "scenario": item["role"],
                        "item": name_of(item),
                        "order": [text_sha256(text) for text in order],
                        "right": text_sha256(item["right"]),
                    }
                )
        for number in shown:
            write(out / f"sheet_{judge}_{number}.jsonl", shown[number])
            write(out / "keys" / f"key_{judge}_{number}.jsonl", keys[number])
    print(f"{len(items)} items of {len(groups)} groups in {max(batch_of.values())} batches")


def name_of(item: dict[str, Any]) -> str:
    """The key under which the choices of an item are recorded."""
    return item_key(item["instruction"], item["query"], item["candidates"])


def again(out: Path) -> None:
    """Write ITEMS_AGAIN of the judged items for both judges anew: other tokens and orders.

    Two sheets for each judge, `again_A_1` of the last batches and `again_A_2` of the first three,
    so that the reader of the first batches need not read its own items again.
    """
    chance = random.Random(ITEMS_AGAIN)
    wanted: set[str] = set()
    for judge in "AB":
        keys = [
            row | {"batch": int(file.stem.split("_")[2])}
            for file in sorted((out / "keys").glob(f"key_{judge}_*.jsonl"))
            for row in read(file)
        ]
        wanted = wanted or set(chance.sample(sorted(row["item"] for row in keys), ITEMS_AGAIN))
        texts = {
            row["token"]: row for file in out.glob(f"sheet_{judge}_*.jsonl") for row in read(file)
        }
        parts: dict[int, list[tuple[dict[str, Any], dict[str, Any]]]] = {1: [], 2: []}
        for key in keys:
            if key["item"] not in wanted:
                continue
            shown, token = texts[key["token"]], secrets.token_hex(4)
            order = chance.sample(shown["passages"], len(shown["passages"]))
            parts[1 if key["batch"] > 3 else 2].append(
                (
                    shown | {"token": token, "passages": order},
                    {"token": token, "item": key["item"], "order": [text_sha256(t) for t in order]},
                )
            )
        for half, rows in parts.items():
            chance.shuffle(rows)
            write(out / f"again_{judge}_{half}.jsonl", [shown for shown, _ in rows])
            write(out / "keys" / f"again_{judge}_{half}.jsonl", [key for _, key in rows])


def grown_items() -> list[dict[str, Any]]:
    """The items that the true pipeline makes of the set, with a judge that names nothing."""
    from curation.recorded import recording

    judged_by_none = replace(recording.load_recording(), choices=_NamesNothing())
    recording.load_recording = lambda place=None: judged_by_none
    with grown() as (store, run_id):
        return items_of(store, run_id)


def items_of(store: "Store", run_id: int) -> list[dict[str, Any]]:
    """The judged items of a run: texts, candidates, the right one."""
    from db.run.group_detail import get_group
    from db.shape import INF_IR

    found: list[dict[str, Any]] = []
    with store.read() as session:
        for row in _groups_of(session, run_id):
            group = get_group(session, row.id)
            if len(group.judgments) != len(INF_IR.roles):
                print("not judged:", row.name, row.drop_reason, group.drop_detail)
            found += [
                {
                    "query_id": row.name,
                    "role": one.scenario,
                    "scenario": INF_IR.roles.index(one.scenario),
                    "query": one.query,
                    "instruction": one.instruction,
                    "candidates": list(one.candidates.values()),
                    "right": one.candidates[one.scenario],
                }
                for one in group.judgments
            ]
    return found


@contextmanager
def grown() -> Iterator[tuple["Store", int]]:
    """A store of its own in which the true pipeline has grown the set, and the run's id."""
    from curation.run.engine import curate
    from curation.run.starting import RunWork, start_run
    from db.jobs import jobs
    from db.jobs.runner import JobHandle
    from db.store import schema
    from db.store.store import open_store

    with tempfile.TemporaryDirectory() as folder:
        os.environ["INF_HOME"] = folder
        store = open_store(f"sqlite:///{folder}/inf.db")
        schema.upgrade(store)
        import_dataset(
            store, name="demo", pairs=DEMO / "pairs.jsonl", passages=DEMO / "passages.jsonl"
        )
        with store.write() as session:
            run_id = start_run(session, dataset="demo", provider="recorded", guard=False).id
            job = jobs.enqueue_job(session, "curate", RunWork(run_id=run_id).config())
            claimed = jobs.claim_job(session, job.id)
            assert claimed is not None
            session.commit()
            handle = JobHandle(store, claimed.id, claimed.attempt)
        print(curate(handle), file=sys.stderr)
        yield store, run_id
        store.close()


def collect(answers: Path) -> None:
    """Make the judges' answers the recorded choices, then report."""
    wanted = {name_of(item) for item in grown_items()}  # not of texts that were mended since
    write(SHIPPED / "judgments.jsonl", recorded_choices(answers, wanted))
    report(answers)


def recorded_choices(answers: Path, wanted: Set[str]) -> list[dict[str, Any]]:
    """Judges' answers to the wanted items with their keys; every token exactly once."""
    rows: list[dict[str, Any]] = []
    for key_file in sorted((answers / "keys").glob("key_*.jsonl")):
        judge = key_file.stem.split("_")[1]
        for key, answer in answered(answers, key_file):
            if key["item"] not in wanted:
                continue
            rows.append(
                {
                    "judge": judge,
                    "query_id": key["query_id"],
                    "scenario": key["scenario"],
                    "item": key["item"],
                    "choice": choice_of(key, answer),
                    **({"reason": answer["reason"]} if answer.get("reason") else {}),
                }
            )
    return sorted(rows, key=lambda row: (row["judge"], row["query_id"], row["scenario"]))


def answered(answers: Path, key_file: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each item of a key file with its answer. Exits if a token has none or more than one."""
    keys = {row["token"]: row for row in read(key_file)}
    given = read(answers / f"answers_{key_file.stem.removeprefix('key_')}.jsonl")
    tokens = [row["token"] for row in given]
    if sorted(tokens) != sorted(keys):
        missing, extra = set(keys) - set(tokens), set(tokens) - set(keys)
        raise SystemExit(
            f"{key_file.name}: {len(missing)} tokens without an answer, {len(extra)} unknown, "
            f"{len(tokens) - len(set(tokens))} answered twice"
        )
    for row in given:
        yield keys[row["token"]], row


def choice_of(key: dict[str, Any], answer: dict[str, Any]) -> str:
    """The sha256 of the chosen text, or "none": the places of an answer count from 1."""
    choice = int(answer["choice"])
    return str(key["order"][choice - 1]) if choice else "none"


def shown(key_file: Path) -> Iterator[dict[str, Any]]:
    """The items of a key as the judge saw them, with its choice; None for what was mended since.

    Query and instruction are those that the item's own key was made of, the texts those whose
    sha256 stands in the order, so nothing that was changed later can be taken for what was shown.
    """
    texts = {
        text_sha256(text): text
        for row in written()
        for passage in passages_of(row)
        for text in (passage, passage.strip('"'))  # the parser takes quotes around a text off
    }
    texts |= {text_sha256(row["text"]): row["text"] for row in read(DEMO / "passages.jsonl")}
    questions = {
        (row["query_id"], role): (row["instruction_" + instruction], row["query_" + query])
        for row in ({"query_positive": row["query"]} | row for row in read(SHIPPED / GROUPS))
        for role, instruction, query in (
            ("positive", "positive", "positive"),
            ("instruction_negative", "negative", "positive"),
            ("query_negative", "positive", "negative"),
        )
    }
    for key, answer in answered(key_file.parents[1], key_file):
        instruction, query = questions[key["query_id"], key["scenario"]]
        same = item_key_of(instruction, query, key["order"]) == key["item"]
        yield {
            "token": key["token"],
            "item": key["item"],
            "query": query if same else None,
            "instruction": instruction if same else None,
            "passages": [texts.get(sha256) for sha256 in key["order"]],
            "choice": int(answer["choice"]),
            "reason": answer.get("reason", ""),
        }


def passages_of(row: dict[str, Any]) -> list[str]:
    """The three passages of a group as written."""
    return [row["passage_a"], row["passage_b"], row["passage_other"]]


def print_shown(key_file: Path) -> None:
    """Print the items of a key as the judge saw them, and what it answered."""
    mended = "(mended since: judged again in a later batch)"
    for item in shown(key_file):
        print(f"\n===== token {item['token']} · answer {item['choice']} {item['reason']}")
        print(f"QUERY: {item['query'] or mended}\nINSTRUCTION: {item['instruction'] or mended}")
        for number, text in enumerate(item["passages"], 1):
            print(f"  [{number}] {text or mended}")


def leakage() -> None:
    """Print the leakage check of the kept groups: of all, of the pilot's and of the others."""
    from analysis.text.leakage import leakage_report
    from curation.run.leakage import compared_texts
    from db.shape import INF_IR

    with grown() as (store, run_id), store.read() as session:
        parts = {
            name: compared_texts(session, ids, INF_IR) for name, ids in parts_of(session, run_id)
        }
    for part, compared in parts.items():
        for name, one in leakage_report(compared)["comparisons"].items():
            low, high = one["interval"]
            print(
                f"{part}: {name} {one['auc']:.3f} [{low:.3f}, {high:.3f}], by length alone "
                f"{one['length_auc']:.3f} ({one['pairs']} pairs)"
            )


def parts_of(session: "Session", run_id: int) -> Iterator[tuple[str, list[int]]]:
    """The ids of a run's kept groups: of all, of the pilot's and of the others."""
    from curation.run.leakage import kept_groups

    names = {row.id: row.name for row in _groups_of(session, run_id)}
    kept = kept_groups(session, run_id)
    yield "all", list(kept)
    yield "the pilot's", [one for one in kept if is_pilot(names[one])]
    yield "the others", [one for one in kept if not is_pilot(names[one])]


def _groups_of(session: "Session", run_id: int) -> "list[GroupRow]":
    from db.review.queue import QueueFilter, listed_groups

    wanted = QueueFilter(run_id=run_id)
    return listed_groups(session, wanted, viewer=None, blind=False, offset=0, limit=None).rows


def is_pilot(query_id: str) -> bool:
    """Whether a pair is one of the pilot's: its query is one of the first 90."""
    return query_id.removeprefix("demo-")[:3] <= "090"


def report(answers: Path) -> None:
    """What each judge confirms, how often choices are the same, and how many groups stay."""
    right = {
        row["item"]: row["right"]
        for file in (answers / "keys").glob("key_*.jsonl")
        for row in read(file)
    }
    by_judge: dict[str, dict[str, dict[str, Any]]] = {}
    for row in read(SHIPPED / "judgments.jsonl"):
        by_judge.setdefault(row["judge"], {})[row["item"]] = row
    for judge, rows in by_judge.items():
        confirmed = sum(row["choice"] == right[item] for item, row in rows.items())
        none = sum(row["choice"] == "none" for row in rows.values())
        groups: dict[str, bool] = {}
        for item, row in rows.items():
            is_right = row["choice"] == right[item]
            groups[row["query_id"]] = groups.get(row["query_id"], True) and is_right
        print(
            f"judge {judge}: {confirmed} of {len(rows)} items as written, {none} none; "
            f"{sum(groups.values())} of {len(groups)} groups confirmed in all three"
        )
    for judge, rows in by_judge.items():
        same = total = 0
        for file in sorted((answers / "keys").glob(f"again_{judge}_*.jsonl")):
            keys = {row["token"]: row for row in read(file)}
            for row in read(answers / f"answers_{file.stem}.jsonl"):
                key = keys[row["token"]]
                if key["item"] not in rows:
                    continue
                total += 1
                same += choice_of(key, row) == rows[key["item"]]["choice"]
        print(f"judge {judge}: the same choice in another order in {same} of {total} items")
    if {"A", "B"} <= set(by_judge):
        both = by_judge["A"].keys() & by_judge["B"].keys()
        same = sum(by_judge["A"][item]["choice"] == by_judge["B"][item]["choice"] for item in both)
        print(f"A and B choose the same in {same} of {len(both)} items")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["build"]:
            build()
        case ["sheets", out]:
            sheets(Path(out))
        case ["sheets", out, "left"]:
            sheets(Path(out), left=True)
        case ["again", out]:
            again(Path(out))
        case ["collect", answers]:
            collect(Path(answers))
        case ["report", answers]:
            report(Path(answers))
        case ["shown", key]:
            print_shown(KEYS / f"key_{key}.jsonl")
        case ["leakage"]:
            leakage()
        case _:
            raise SystemExit(__doc__)
