"""`inf webhooks`: endpoints of other servers that are sent events."""

from app.cli.kit.doors import Noun
from app.cli.kit.report import Result, facts
from app.operations.doors import webhooks as operations
from app.text.remedies import in_commands

webhooks = Noun("webhooks")


def _events(row: Result) -> str:
    return ", ".join(row["events"]) or "all"


def _state(row: Result) -> str:
    if row["problem"]:
        return in_commands(row["problem"])
    return f"off: {row['reason']}" if row["status"] == "off" else "on"


_webhook = facts(
    ("webhook", "id"), "url", ("events", _events), ("state", _state), "waiting", "created_by"
)


def _with_secret(row: Result) -> str:
    if row["secret"] is None:
        return str(_webhook(row))
    return f"{_webhook(row)}\nsecret: {row['secret']}\nIt is not shown again."


webhooks.door(operations.add, text=_with_secret)
webhooks.listed(
    operations.list_all,
    columns=(
        *("id", "url", ("events", _events), ("state", _state), "waiting"),
        *(("by", "created_by"), ("since", lambda row: row["created_at"][:10])),
    ),
    empty="no webhooks yet",
)
webhooks.door(operations.show, text=_webhook)
webhooks.listed(
    operations.deliveries,
    name="deliveries",
    columns=(
        *("id", "event", ("message", "message_id"), ("state", "status"), "attempts", "answer"),
        *(("last", "attempted_at"), ("next", "next_attempt_at")),
    ),
    empty="nothing was sent yet",
    limit=50,
)
webhooks.door(
    operations.test,
    text=lambda row: f"{row['url']}: {row['answer']}" + ("" if row["ok"] else " (not taken)"),
)
webhooks.door(operations.enable, text=_with_secret)
webhooks.door(operations.remove, text=lambda row: f"removed {row['url']}")
