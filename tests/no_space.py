"""Work that finds no space on its disk, as a program: the end of it goes to standard output.

    python tests/no_space.py texts|vectors|copies [BYTES]
    python tests/no_space.py bad_file BYTES FILE

The system's own limit of a file's size (RLIMIT_FSIZE, BYTES) stands for the full disk. Prints
`code|message|remedy`, or `done`. A file that nothing closed ends the program with status 1.
"""

import resource
import sys
import warnings

import numpy as np

from analysis.embed.embedding import VectorsOnDisk
from analysis.files.corpora import RowsOnDisk
from analysis.request import DuplicatesStart
from app.access.identity import owner
from app.operations.analyses import start
from db.corpus.texts import CorpusText
from db.errors import BadInput
from db.home import temporary_folder


def texts(_: str) -> None:
    RowsOnDisk(CorpusText("text", "text", "bees " * 20) for _ in range(100_000))


def vectors(_: str) -> None:
    VectorsOnDisk(10_000).put(range(10_000), np.ones((10_000, 8)))


def copies(_: str) -> None:
    with temporary_folder("inf-") as folder:
        (folder / "copy").write_bytes(bytes(300_000))


def bad_file(path: str) -> None:
    start(owner("ada"), DuplicatesStart(texts=(path,)), lambda *_: sys.exit("it is launched"))


def main(what: str, limit: str = "200000", path: str = "") -> None:
    """Do one of the above within the limit."""
    work = {each.__name__: each for each in (texts, vectors, copies, bad_file)}[what]
    warnings.simplefilter("error")
    sys.unraisablehook = lambda found: sys.exit(f"unraisable: {found.exc_value}")
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    try:
        work(path)
        sys.stdout.write("done")
    except BadInput as error:
        sys.stdout.write(f"{error.code}|{error.message}|{error.remedy}")


if __name__ == "__main__":
    main(*sys.argv[1:])
