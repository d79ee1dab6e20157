"""`inf groups`: list and show the groups of a run."""

from app.cli.kit.doors import Noun
from app.cli.kit.formerly import id_argument
from app.cli.kit.report import Result, lines
from app.cli.kit.table import drawn
from app.operations import groups as operations

groups = Noun("groups", former={"group_id": "id", "query_id": "name"})
groups.listed(
    operations.list_some,
    id_argument("run_id", "--run", "groups list RUN_ID"),
    echoed=("run_id",),
    columns=(
        *(("group", "id"), ("verdict", lambda row: row["verdict"] or row["state"]), "drop_reason"),
        *("review", ("query id", "name"), "query"),
    ),
    empty="no such groups",
    limit=operations.PAGE,
)


def _shown(result: Result) -> str:
    verdict = result["verdict"] or result["state"]
    if result["drop_reason"]:
        verdict += f": {result['drop_reason']}"
    review = result["review"]
    parts = [
        lines(
            ("group", f"{result['id']} of run {result['run_id']} ({result['dataset']})"),
            ("verdict", f"{verdict} (version {result['verdict_version']})"),
            ("detail", result["drop_detail"] or "–"),
            ("review", f"{review['action']} by {review['reviewed_by']}" if review else "–"),
            ("query", f"{result['query']} ({result['name']})"),
            ("passage", f"{result['passage']} ({result['passage_id']})"),
        )
    ]
    for role, texts in result["triplets"].items():
        parts += ["", role, lines(*texts.items())]
    if result["lists"]:
        named = ((each["name"], _listed(each)) for each in result["lists"])
        parts += ["", "lists", lines(*named)]
    if result["judgments"]:
        parts += ["", drawn(("scenario", "judge", "choice", "agrees"), result["judgments"])]
    return "\n".join(parts)


def _listed(text: Result) -> str:
    why = text["dropped_reason"]
    return f"{text['text']} ({why})" if why else str(text["text"])


groups.door(operations.show, text=_shown)
