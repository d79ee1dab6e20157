"""Stand-ins for packages that sentence-transformers imports and our training does not use.

`sklearn`: one function for a distance that is never computed here. `datasets`: a list of rows.
They are written to a folder at the end of the search path, so that an installed package always
comes first.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

_REFUSE = """
def _refuse(*_, **__):
    raise ImportError("the real package {name} is not installed, a check put a stand-in here")
"""
_SKLEARN = _REFUSE.format(name="scikit-learn") + (
    "pairwise_distances = average_precision_score = f1_score = ndcg_score = _refuse\n"
    "matthews_corrcoef = paired_cosine_distances = paired_euclidean_distances = _refuse\n"
    "paired_manhattan_distances = _refuse\n"
)
_DATASETS = '''
__version__ = "0"


class Dataset:
    """Rows by place; what a training's data loader reads."""

    def __init__(self, columns):
        self.columns = columns

    @classmethod
    def from_dict(cls, columns):
        return cls({name: list(values) for name, values in columns.items()})

    @property
    def column_names(self):
        return list(self.columns)

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def __getitem__(self, place):
        return {name: values[place] for name, values in self.columns.items()}


class DatasetDict(dict):
    pass


class IterableDataset:
    pass


class IterableDatasetDict(dict):
    pass


class _Feature:
    def __init__(self, *_, **__):
        pass


Features = Sequence = Value = Image = Audio = Video = _Feature
'''
_METADATA = (
    "Metadata-Version: 2.1\nName: datasets\nVersion: 0\n"
    "Home-page: https://github.com/huggingface/datasets\n"
)
FILES = {
    "sklearn": {
        "sklearn/__init__.py": "",
        "sklearn/metrics/__init__.py": _SKLEARN,
        "sklearn/metrics/pairwise.py": _SKLEARN,
    },
    "datasets": {"datasets/__init__.py": _DATASETS, "datasets-0.dist-info/METADATA": _METADATA},
}


def stand_in(folder: Path) -> list[str]:
    """The names of missing packages, for which this process now finds stand-ins."""
    missing = [name for name in FILES if find_spec(name) is None]
    for name in missing:
        for path, text in FILES[name].items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    if missing and str(folder) not in sys.path:
        sys.path.append(str(folder))
    return missing
