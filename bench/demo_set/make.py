"""The demo set, from what was written and judged to what ships. Run from the clone:

    python bench/demo_set/make.py build            written/*.jsonl -> curation/demo
    python bench/demo_set/make.py sheets OUT       items for blind judges, in batches of 100 groups
    python bench/demo_set/make.py sheets OUT left  only the items that no judge has seen yet
    python bench/demo_set/make.py again OUT        150 of those items once more, in another order
    python bench/demo_set/make.py collect ANSWERS  the judges' answers -> curation/demo/recording
    python bench/demo_set/make.py report           funnel and agreement of the judges

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
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from curation.importing.importing import import_dataset  # noqa: E402
from curation.recorded.recording import SHIPPED, item_key  # noqa: E402
from db.corpus.datasets import text_sha256  # noqa: E402

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
    """The items that the true pipeline makes of the set: texts, candidates, the right one."""
    from curation.recorded import recording
    from curation.run.engine import curate
    from curation.run.starting import job_config, start_run
    from db.jobs import jobs
    from db.jobs.runner import JobHandle
    from db.run.group_detail import get_group
    from db.run.groups import list_groups
    from db.scenarios import ROLES
    from db.store import schema
    from db.store.store import open_store

    judged_by_none = replace(recording.load_recording(), choices=_NamesNothing())
    recording.load_recording = lambda place=None: judged_by_none
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["INF_HOME"] = folder
        store = open_store(f"sqlite:///{folder}/inf.db")
        schema.upgrade(store)
        import_dataset(
            store, name="demo", pairs=DEMO / "pairs.jsonl", passages=DEMO / "passages.jsonl"
        )
        with store.write() as session:
            run_id = start_run(session, dataset="demo", provider="recorded", guard=False).id
            job = jobs.enqueue_job(session, "curate", job_config(run_id))
            claimed = jobs.claim_job(session, job.id)
            assert claimed is not None
            session.commit()
            handle = JobHandle(store, claimed.id, claimed.attempt)
        print(curate(handle), file=sys.stderr)
        with store.read() as session:
            for row in list_groups(session, run_id, limit=10_000).rows:
                group = get_group(session, row.id)
                if len(group.judgments) != len(ROLES):
                    print("not judged:", row.query_id, row.drop_reason, group.drop_detail)
                found += [
                    {
                        "query_id": row.query_id,
                        "role": one.scenario,
                        "scenario": ROLES.index(one.scenario),
                        "query": one.query,
                        "instruction": one.instruction,
                        "candidates": list(one.candidates.values()),
                        "right": one.candidates[one.scenario],
                    }
                    for one in group.judgments
                ]
        store.close()
    return found


def collect(answers: Path) -> None:
    """Judges' answers with their keys, as recorded choices; every token exactly once."""
    rows: list[dict[str, Any]] = []
    wanted = {name_of(item) for item in grown_items()}  # not of texts that were mended since
    for key_file in sorted((answers / "keys").glob("key_*.jsonl")):
        _, judge, number = key_file.stem.split("_")
        keys = {row["token"]: row for row in read(key_file)}
        given = read(answers / f"answers_{judge}_{number}.jsonl")
        tokens = [row["token"] for row in given]
        if sorted(tokens) != sorted(keys):
            missing, extra = set(keys) - set(tokens), set(tokens) - set(keys)
            raise SystemExit(
                f"{key_file.name}: {len(missing)} tokens without an answer, {len(extra)} unknown, "
                f"{len(tokens) - len(set(tokens))} answered twice"
            )
        for row in given:
            key, choice = keys[row["token"]], int(row["choice"])
            if key["item"] not in wanted:
                continue
            rows.append(
                {
                    "judge": judge,
                    "query_id": key["query_id"],
                    "scenario": key["scenario"],
                    "item": key["item"],
                    "choice": key["order"][choice - 1] if choice else "none",
                    **({"reason": row["reason"]} if row.get("reason") else {}),
                }
            )
    rows.sort(key=lambda row: (row["judge"], row["query_id"], row["scenario"]))
    write(SHIPPED / "judgments.jsonl", rows)
    report(answers)


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
                key, choice = keys[row["token"]], int(row["choice"])
                if key["item"] not in rows:
                    continue
                total += 1
                same += (key["order"][choice - 1] if choice else "none") == rows[key["item"]][
                    "choice"
                ]
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
        case _:
            raise SystemExit(__doc__)
