"""The requests of all operations by name, for their reference and their JSON Schemas.

A request of a new operation is a row of `REQUESTS`. The schemas are a snapshot in the repository
(`docs/reference/requests.json`): a changed key shows in review.
"""

from collections.abc import Mapping

from db.modules import load
from db.requests import Request

REQUESTS: Mapping[str, str] = {
    "datasets import": "curation.importing.request:DatasetImport",
    "datasets mine": "curation.mining.request:NegativesMine",
    "datasets pull": "curation.hub.request:DatasetPull",
    "studies create": "curation.judging.request:StudyPlan",
    "studies agreement": "curation.judging.request:AgreementStart",
    "studies plan": "curation.judging.request:PlanStudy",
    "studies create_from_file": "curation.judging.request:StudyFilePlan",
    "studies judge": "curation.judging.request:JudgeStart",
    "studies set": "curation.judging.request:StudyChange",
    "studies example": "curation.judging.request:StudyExample",
    "studies recruit": "curation.judging.request:StudyRecruiting",
    "studies people": "curation.judging.request:JudgeChange",
    "studies write": "curation.judging.request:StudyMessage",
    "studies gold": "curation.judging.request:GoldChange",
    "studies change_rules": "curation.judging.request:RulesChange",
    "studies rules": "db.study.rules:StudyRules",
    "studies export": "curation.judging.request:StudyExport",
    "studies report": "curation.judging.request:StudyReport",
    "studies tasks": "curation.judging.request:StudyTasks",
    "studies work": "curation.judging.request:WorkReport",
    "studies disagreements": "curation.judging.request:DisagreementList",
    "studies adjudicate": "curation.judging.request:Adjudication",
    "judgments import": "app.operations.datasets:JudgmentsImport",
    "judgments change": "curation.judging.request:AnswerChange",
    "judgments write": "curation.judging.request:JudgeMessage",
    "judgments answer": "curation.judging.request:CuratorMessage",
    "reviews set": "curation.judging.request:ReviewSet",
    "reviews propose": "curation.judging.request:ReviewPropose",
    "reviews bulk": "curation.judging.request:ReviewMany",
    "reviews verdicts": "curation.judging.request:VerdictsShown",
    "models serve": "app.operations.models:ModelServe",
    "models export": "app.operations.models:ModelExport",
    "models index": "app.operations.models:ModelIndex",
    "models search": "app.operations.try_it:Search",
    "evaluations create": "trainer.evaluate.request:EvaluationStart",
    "analyze agreement": "curation.judging.request:AgreementShow",
    "analyze validators": "curation.judging.request:ValidatorsCompare",
    "analyses contamination": "analysis.request:ContaminationStart",
    "analyses coverage": "analysis.request:CoverageStart",
    "analyses diversity": "analysis.request:DiversityStart",
    "analyses near_duplicates": "analysis.request:DuplicatesStart",
    "releases create": "curation.release.request:ReleasePlan",
    "store backup": "curation.backups:BackupPlan",
    "store upgrade": "app.operations.store:StoreUpgrade",
    "store copy": "app.operations.store:StoreCopy",
    "store restore": "curation.backups:RestorePlan",
    "people add": "app.operations.people:PersonAdd",
    "people invite": "app.operations.people:Invitation",
    "releases push": "curation.hub.request:PushStart",
    "connections add": "app.operations.connections:ConnectionAdd",
    "connections change": "app.operations.connections:ConnectionChange",
    "tokens create": "app.operations.doors.tokens:TokenCreate",
    "webhooks add": "app.operations.doors.webhooks:WebhookAdd",
    "webhooks enable": "app.operations.doors.webhooks:WebhookEnable",
    "trainings create": "trainer.launch.request:TrainStart",
    "trainings search": "trainer.launch.request:TrainSearch",
    "trainings sweep": "trainer.launch.request:TrainSweep",
    "groups list": "db.review.queue:QueueFilter",
    "recipes check": "app.operations.recipes:RecipeCheck",
    "recipes diff": "app.operations.recipes:RecipeDiff",
    "recipes export": "app.operations.recipes:RecipeExport",
    "recipes new": "app.operations.recipes:RecipeNew",
    "recipes preview": "app.operations.runs:RunPreview",
    "recipes save": "app.operations.recipes:RecipeSave",
    "recipes show": "app.operations.recipes:RecipeShow",
    "runs create": "curation.run.starting:RunStart",
    "runs compare-versions": "db.run.versions:VersionComparison",
    "runs decide": "curation.rules.deciding:RunDecide",
    "runs use-version": "db.run.versions:VersionChoice",
    "runs resume": "curation.run.starting:RunResume",
    "runs join": "curation.run.starting:RunWork",
    "runs shrink": "app.operations.runs:RunShrink",
}


def models() -> dict[str, type[Request]]:
    """The model of each operation."""
    return {name: load(place) for name, place in REQUESTS.items()}
