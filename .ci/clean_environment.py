"""A virtual environment with what a wheel declares and nothing else, in seconds.

    .venv/bin/python .ci/clean_environment.py FOLDER 'dist/NAME.whl[offline]' pytest …

The packages are hard links (copies across file systems) to those of the environment that runs
this, chosen by the wheel's metadata: its requirements, theirs, and so on. What the wheel uses and
does not declare is therefore missing in FOLDER, as it would be after `pip install`, without
installing two gigabytes again. Ends with an error where a requirement is not met here.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def of_wheel(wheel: Path) -> Distribution:
    """The metadata in a wheel."""
    root = zipfile.Path(wheel)
    return PathDistribution(next(p for p in root.iterdir() if p.name.endswith(".dist-info")))


def requirements(found: Distribution, extras: frozenset[str]) -> list[Requirement]:
    """What a distribution requires here with these extras; its own extras as what they hold."""
    wanted = [
        one
        for one in map(Requirement, found.requires or [])
        if one.marker is None
        or any(one.marker.evaluate({"extra": extra}) for extra in extras | {""})
    ]
    own = {
        extra
        for one in wanted
        if canonicalize_name(one.name) == canonicalize_name(found.name)
        for extra in one.extras
    }
    if own - extras:
        return requirements(found, extras | own)
    return [one for one in wanted if canonicalize_name(one.name) != canonicalize_name(found.name)]


def closure(first: list[Requirement]) -> dict[str, Distribution]:
    """Every installed distribution that these need, directly or not, by its canonical name.

    Ends the program where one is missing or of a version that was not asked for.
    """
    found: dict[str, Distribution] = {}
    done: set[tuple[str, frozenset[str]]] = set()
    waiting = list(first)
    while waiting:
        wanted = waiting.pop()
        name, extras = canonicalize_name(wanted.name), frozenset(wanted.extras)
        if (name, extras) in done:
            continue
        done.add((name, extras))
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            sys.exit(f"{wanted} is required and not installed here")
        if not wanted.specifier.contains(found[name].version, prereleases=True):
            sys.exit(f"{wanted} is required and {found[name].version} is installed here")
        waiting += requirements(found[name], extras)
    return found


def link(found: Distribution, site: Path) -> None:
    """Put a distribution's files into another `site-packages`; scripts stay, they name a Python."""
    here = Path(str(found.locate_file("")))
    for file in found.files or []:
        source = Path(str(found.locate_file(file)))
        if ".." in file.parts or not source.is_file() or not source.is_relative_to(here):
            continue
        target = site / source.relative_to(here)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except FileExistsError:  # two distributions may own one file of a namespace package
            pass
        except OSError:
            shutil.copy2(source, target)


def main(folder: Path, wheel_with_extras: str, *others: str) -> None:
    """Make the environment, install the wheel into it, and let pip check it."""
    path, _, extras = wheel_with_extras.removesuffix("]").partition("[")
    wheel = Path(path).resolve()
    wanted = requirements(of_wheel(wheel), frozenset(filter(None, extras.split(","))))
    needed = closure([*wanted, *map(Requirement, others)])
    venv.create(folder)
    site = folder / sysconfig.get_path("purelib", vars={"base": str(folder)})
    for found in needed.values():
        link(found, site)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    pip += ["--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", "-q", "--no-deps", "--no-index", str(wheel)], check=True)
    subprocess.run([*pip, "check"], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
