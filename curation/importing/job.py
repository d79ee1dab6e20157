"""Importing as a job: what `inf import` does, for a command that does not wait (`--detach`)."""

import dataclasses
from pathlib import Path
from typing import Any

from curation.importing.groups import GroupImport, import_groups
from curation.importing.importing import ImportReport, import_dataset
from db.jobs.runner import JobHandle

READ_BY = ("columns", "layout", "split", "usual_columns")


def import_files(handle: JobHandle) -> dict[str, Any]:
    """The handler of `import` jobs.

    Config: name, source, licence, skip_bad, and pairs (with passages or None) or groups, as
    absolute paths, and for pairs the options of READ_BY. Fails with the bad rows if there are any
    and skip_bad is not set.
    """
    config = handle.config

    def progress(done: int, total: int) -> None:
        handle.check()
        handle.report(done, total, f"importing into {config['name']}")

    shared: dict[str, Any] = {
        "name": config["name"],
        "source": config["source"],
        "licence": config["licence"],
        "skip_bad": config["skip_bad"],
        "progress": progress,
    }
    if config.get("groups"):
        files = [Path(path) for path in config["groups"]]
        groups = import_groups(
            handle.store,
            files=files,
            origin=", ".join(path.name for path in files),
            imported_by=handle.started_by,
            **shared,
        )
        return groups_as_json(config["name"], groups)
    passages = config.get("passages")
    report = import_dataset(
        handle.store,
        pairs=Path(config["pairs"]),
        passages=Path(passages) if passages else None,
        **{name: config[name] for name in READ_BY if name in config},
        **shared,
    )
    return as_json(config["name"].strip(), report)


def as_json(name: str, report: ImportReport) -> dict[str, Any]:
    """The report of an import of pairs as the command prints it."""
    return {
        "dataset_id": report.dataset_id,
        "dataset": name,
        "imported": report.imported["pairs"],
        "imported_passages": report.imported["passages"],
        "unchanged": report.unchanged["pairs"],
        "unchanged_passages": report.unchanged["passages"],
        "skipped": report.skipped_count,
        "bad_rows": list(map(dataclasses.asdict, report.skipped)),
        "notices": report.notices,
    }


def groups_as_json(name: str, report: GroupImport) -> dict[str, Any]:
    """The report of an import of groups as the commands print it."""
    return {
        "dataset_id": report.dataset_id,
        "dataset": name,
        "run_id": report.run_id,
        "imported": report.imported,
        "unchanged": report.unchanged,
        "skipped": len(report.skipped),
        "bad_rows": list(map(dataclasses.asdict, report.skipped)),
        "notices": report.notices,
    }
