"""Streamlit without its search for components that are installed as packages.

At its start it reads the metadata of every installed package four times, a third of the CPU time
from here until the server answers, and finds none: ours are registered where they are defined.
"""

from pathlib import Path

from streamlit.components.v2 import manifest_scanner


def skip_search() -> None:
    """Let the server's start find no packaged component; before it starts."""
    manifest_scanner.scan_component_manifests = _none


def _none(max_workers: int | None = None) -> list[tuple[manifest_scanner.ComponentManifest, Path]]:
    return []
