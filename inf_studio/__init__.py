"""InF Studio in Python: the names that are promised, and the only import that is.

    from inf_studio import open_store, SourcePassage

They are imported when they are used: `import inf_studio` loads nothing else. Every other module may
move between versions. What a plugin needs is here too (docs/how-to/plugins.md). The wheel
`inf-studio-client` has the names that a studio on a server needs (docs/how-to/notebook.md).
"""

from typing import TYPE_CHECKING, Any

from db.modules import is_here, load

if TYPE_CHECKING:
    from curation.judges.function import judge as judge
    from curation.judges.judge import Choice as Choice
    from curation.judges.judge import ItemJudge as ItemJudge
    from curation.judges.judge import ItemView as ItemView
    from curation.judges.registry import JudgeKind as JudgeKind
    from curation.providers.provider import Answer as Answer
    from curation.providers.provider import Provider as Provider
    from curation.providers.provider import ProviderState as ProviderState
    from curation.providers.provider import Request as Request
    from curation.providers.registry import ProviderKind as ProviderKind
    from curation.providers.registry import WorkerSetting as WorkerSetting
    from curation.sources.rows import Converted as Converted
    from curation.sources.rows import LeftOut as LeftOut
    from curation.sources.rows import SourceInput as SourceInput
    from curation.sources.rows import SourceKind as SourceKind
    from curation.sources.rows import SourcePair as SourcePair
    from curation.sources.rows import SourcePassage as SourcePassage
    from db.errors import BadInput as BadInput
    from db.errors import InfError as InfError
    from db.errors import NotFound as NotFound
    from db.errors import ProviderError as ProviderError
    from db.errors import Refused as Refused
    from db.store.store import Store as Store
    from db.store.store import open_store as open_store
    from inf_studio.client import Recipe as Recipe
    from inf_studio.client import Studio as Studio
    from inf_studio.client import connect as connect
    from inf_studio.client import evaluate as evaluate
    from inf_studio.client import open as open
    from trainer.model.backbone import load_model as load_model

_MODULES = {
    "curation.judges.function": ("judge",),
    "curation.judges.judge": (
        "Choice",
        "ItemJudge",
        "ItemView",
    ),
    "curation.judges.registry": ("JudgeKind",),
    "curation.providers.provider": (
        "Answer",
        "Provider",
        "ProviderState",
        "Request",
    ),
    "curation.providers.registry": (
        "ProviderKind",
        "WorkerSetting",
    ),
    "curation.sources.rows": (
        "Converted",
        "LeftOut",
        "SourceInput",
        "SourceKind",
        "SourcePair",
        "SourcePassage",
    ),
    "db.errors": (
        "BadInput",
        "InfError",
        "NotFound",
        "ProviderError",
        "Refused",
    ),
    "db.store.store": (
        "Store",
        "open_store",
    ),
    "inf_studio.client": (
        "Recipe",
        "Studio",
        "connect",
        "evaluate",
        "open",
    ),
    "trainer.model.backbone": ("load_model",),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"inf_studio promises no name {name!r}")
    if not is_here(_PLACES[name]):
        raise AttributeError(f"{name} is of the wheel inf-studio, this is inf-studio-client")
    if name == "open_store":  # by a program of the store's owner: its sessions see everything
        load("db.store.settings:owners_unless_decided")()
    return load(f"{_PLACES[name]}:{name}")


def __dir__() -> list[str]:
    return sorted(name for name, module in _PLACES.items() if is_here(module))
