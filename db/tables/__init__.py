"""The tables, a module per subject. `Base.metadata` knows them all once this is imported."""

from db.tables.base import Base, utc_now
from db.tables.corpus import Dataset, Pair, Passage
from db.tables.curation import (
    Batch,
    BatchCall,
    Call,
    Group,
    GroupCall,
    Prompt,
    Recipe,
    Run,
    RunWorker,
    ServerGroup,
    Triplet,
)
from db.tables.judging import (
    Assignment,
    Example,
    Guideline,
    Item,
    Judge,
    Judgment,
    OpenedGroup,
    Review,
    Study,
    StudyItem,
    StudyJudge,
)
from db.tables.outcome import Analysis, Checkpoint, Embedding, Evaluation, Release, ReleaseGroup
from db.tables.people import Account, Audit, Invitation
from db.tables.work import Job, MetricPoint

__all__ = [
    "Account",
    "Analysis",
    "Assignment",
    "Audit",
    "Base",
    "Batch",
    "BatchCall",
    "Call",
    "Checkpoint",
    "Dataset",
    "Embedding",
    "Evaluation",
    "Example",
    "Group",
    "GroupCall",
    "Guideline",
    "Invitation",
    "Item",
    "Job",
    "Judge",
    "Judgment",
    "MetricPoint",
    "OpenedGroup",
    "Pair",
    "Passage",
    "Prompt",
    "Recipe",
    "Release",
    "ReleaseGroup",
    "Review",
    "Run",
    "RunWorker",
    "ServerGroup",
    "Study",
    "StudyItem",
    "StudyJudge",
    "Triplet",
    "utc_now",
]
