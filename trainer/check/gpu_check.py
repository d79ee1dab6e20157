"""`inf gpu-check`, or `python -m trainer.check.gpu_check`: check and measure this machine.

Needs our code, PyTorch, transformers, sentence-transformers and accelerate, and no network. The
report is whole after every part; what the machine lacks is skipped with the reason. Parts go from
what must be right to what is measured, so that a short run has the former.
"""

import argparse
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from trainer.check.report import Clock, Part, Report
from trainer.check.stand_ins import stand_in

MINUTES = 8.0
PARTS = ("environment", "traps", "encoding", "steps")


def options() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="inf gpu-check", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=MINUTES, help="time to use")
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="DIR",
        help="folder of a model whose traps are checked too (fp16 copies also); may be repeated",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("gpu-check.json"),
        help="the JSON; the Markdown has the same name with .md",
    )
    parser.add_argument(
        "--part", action="append", choices=PARTS, help="run this part only; may be repeated"
    )
    parser.add_argument("--small", action="store_true", help="small sizes on a GPU too")
    return parser


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """What the arguments give for them; ends with status 2 for what cannot be used."""
    parser = options()
    found = parser.parse_args(arguments)
    if not 0 < found.minutes < 24 * 60:
        parser.error(f"--minutes {found.minutes:g}: give a number above 0 and below {24 * 60}")
    for model in found.model:
        if not Path(model).is_dir():
            parser.error(f"--model {model}: no such folder")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 1 where a part failed."""
    given = parse(sys.argv[1:] if arguments is None else arguments)
    logging.basicConfig(level=logging.ERROR)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with tempfile.TemporaryDirectory(prefix="inf-check-packages-") as folder:
        missing = stand_in(Path(folder))
        return check(given, missing)


def check(given: argparse.Namespace, missing: list[str]) -> int:
    """Run the parts and write the report."""
    clock = Clock(60 * given.minutes)
    import torch

    from trainer.check import sizes

    has_gpu = torch.cuda.is_available()
    device = torch.device("cuda" if has_gpu else "cpu")
    chosen = sizes.ON_A_GPU if has_gpu and not given.small else sizes.ON_A_CPU
    report = Report(
        given.out.resolve(),
        {
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "device": torch.cuda.get_device_name() if has_gpu else "CPU, no GPU",
            "sizes": "real" if chosen is sizes.ON_A_GPU else "small: figures say nothing of a GPU",
            "minutes": given.minutes,
            "models": given.model,
        },
    )
    for name, work in _parts(given, missing, chosen, device, clock):
        if given.part and name not in given.part:
            continue
        if clock.left() <= 0:
            report.skip(name, f"the {given.minutes:g} minutes are used up")
            continue
        _say(f"{name} …")
        part = report.run(name, work)
        _say(f"{name}: {part.status} {part.reason}".rstrip())
    report.finish()
    sys.stdout.write(f"{report.file}\n{report.file.with_suffix('.md')}\n")
    return int(report.failed)


def _parts(
    given: argparse.Namespace, missing: list[str], sizes: object, device: object, clock: Clock
) -> list[tuple[str, Callable[[Part], None]]]:
    from torch import device as Device

    from trainer.check import encoding, machine, steps
    from trainer.check.sizes import Sizes

    assert isinstance(sizes, Sizes) and isinstance(device, Device)
    base = _base(sizes.base)
    return [
        ("environment", lambda part: machine.report_environment(part, missing)),
        ("traps", lambda part: machine.check_traps(part, given.model)),
        ("encoding", lambda part: encoding.measure_encoding(part, sizes, device, base, clock)),
        ("steps", lambda part: steps.measure_steps(part, sizes, device, clock)),
    ]


def _say(message: str) -> None:
    sys.stderr.write(message + "\n")
    sys.stderr.flush()


def _base(name: str) -> str:
    """The base model of encoding: a tiny one where MiniLM's weights are not here."""
    from analysis.embed.model_source import model_source

    is_here = name.startswith("tiny-") or model_source(name) != name
    return name if is_here else "tiny-random-bert"


if __name__ == "__main__":
    sys.exit(main())
