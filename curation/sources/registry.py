"""The sources by name: formats of published collections that become pairs and passages.

A format is a row of `FORMATS` in its module: a function that reads it, and what the commands show.
`inf convert` has a subcommand for each, and `inf import --pairs FOLDER` takes those that recognise
the folder. Another package adds one by an entry point in the group `inf_studio.sources` that names
a `SourceKind`; see `curation.registry`.
"""

from curation.registry import Registry
from curation.sources import judged, msmarco, problems, trec
from curation.sources.rows import SourceKind

SOURCES = Registry(
    "source",
    "inf_studio.sources",
    SourceKind,
    {**msmarco.FORMATS, **judged.FORMATS, **trec.FORMATS, **problems.FORMATS},
)
