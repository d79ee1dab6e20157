"""`python -m trainer.check.child gradient|train FOLDER [STEP]`: one process of a check.

`gradient` writes loss and gradients of one batch to FOLDER; `train` prints the sha256 of the
weights, or kills itself in STEP.
"""

import sys
from pathlib import Path

from trainer.check.stand_ins import stand_in


def main() -> None:
    """Do the task of the command line."""
    task, folder, *rest = sys.argv[1:]
    stand_in(Path(folder) / "packages")  # the check removes the folder, also after a kill
    from trainer.check.tasks import train_once, write_gradient

    if task == "gradient":
        write_gradient(Path(folder))
    else:
        sys.stdout.write(train_once(Path(folder), int(rest[0]) if rest else 0) + "\n")


if __name__ == "__main__":
    main()
