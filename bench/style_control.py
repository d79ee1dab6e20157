"""Are gains style? A ranking by the writing of two texts alone, and where the trained model gains.

    .venv/bin/python bench/style_control.py CHECKPOINT --release DIR [--seed 1]

A classifier sees what the leakage report sees of a text (word 1- and 2-grams, character 2- to
4-grams, length), of an instruction and a passage, or of a query and a passage, and their products;
it learns on the training groups which of two passages belongs, and ranks the held-out ones. A
ranking by passages alone has instruction flip 0 by construction: their order does not change. If a
model's gains were style, they would lie in the groups that this ranking has right.

CHECKPOINT: trained on the release with the held-out groups of bench/results.py, index stays or not.
Features are reduced to 40 directions before the products.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT)]  # before this folder, whose analysis.py is no package

from results import HELD_OUT_SETTINGS  # noqa: E402
from sklearn.decomposition import TruncatedSVD  # noqa: E402
from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.pipeline import make_pipeline, make_union  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from trainer.data.groups import Group  # noqa: E402
from trainer.evaluate.benchmarks import held_out_benchmark  # noqa: E402
from trainer.evaluate.scoring import score_model  # noqa: E402
from trainer.launch.plan import groups_of  # noqa: E402
from trainer.model.backbone import load_model, read_memory, template_of  # noqa: E402

DIRECTIONS = 40
FLIPS = {
    "instruction-flip": (("I+", "P+", "P1-"), ("I-", "P1-", "P+")),
    "query-flip": (("Q+", "P+", "P2-"), ("Q-", "P2-", "P+")),
}


def style_space(texts: Sequence[str], seed: int) -> object:
    """The leakage report's features of a text, in DIRECTIONS directions of these texts."""
    grams = make_union(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_features=20_000),
        TfidfVectorizer(
            analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, max_features=20_000
        ),
    )
    space = make_pipeline(grams, TruncatedSVD(DIRECTIONS, random_state=seed), StandardScaler())
    return space.fit(list(texts))


def style_flips(name: str, training: Sequence[Group], held_out: Sequence[Group], seed: int):
    """(0.0 or 1.0 per held-out group; share of both sides ranked right in training)."""
    sides = FLIPS[name]
    asks = [group.text(side[0]) for group in training for side in sides]
    passages = [group.text(side[place]) for group in training for side in sides for place in (1, 2)]
    of_ask, of_passage = style_space(asks, seed), style_space(passages, seed)

    def pairs(groups: Sequence[Group]) -> np.ndarray:
        """Right minus wrong passage under each side: (groups * 2, features)."""
        u = of_ask.transform([group.text(side[0]) for group in groups for side in sides])
        right, wrong = (
            of_passage.transform([group.text(side[p]) for group in groups for side in sides])
            for p in (1, 2)
        )
        length = np.array(
            [
                [len(group.text(side[1])) - len(group.text(side[2]))]
                for group in groups
                for side in sides
            ]
        )
        difference = right - wrong
        product = (u[:, :, None] * difference[:, None, :]).reshape(len(u), -1)
        return np.hstack([difference, product / np.sqrt(DIRECTIONS), length / 100])

    x = pairs(training)
    fitted = LogisticRegression(C=0.01, max_iter=2000, fit_intercept=False)
    fitted.fit(np.vstack([x, -x]), np.repeat([1, 0], len(x)))
    found = (pairs(held_out) @ fitted.coef_[0] > 0).reshape(-1, 2)
    learned = float((x @ fitted.coef_[0] > 0).mean())
    return found.all(axis=1).astype(float), learned


def main() -> None:
    """Print the flips of base, trained model and style, and the gains by what style has right."""
    parser = argparse.ArgumentParser(description="Are gains style?")
    parser.add_argument("checkpoint")
    parser.add_argument("--release", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    groups = groups_of(given.release, HELD_OUT_SETTINGS)
    benchmark = held_out_benchmark("held out", groups.held_out)
    base = read_memory(given.checkpoint)["settings"]["base_model"]
    template = template_of(given.checkpoint)
    scored = {
        name: score_model(load_model(model, fp32=True), template, benchmark, controls=False)
        for name, model in (("base", base), ("trained", given.checkpoint))
    }
    print(f"{len(groups.training)} training groups, {len(groups.held_out)} held out\n")
    print("| | base | trained | style | gain where style is right | where it is wrong |")
    print("|---|---|---|---|---|---|")
    for name in FLIPS:
        style, learned = style_flips(name, groups.training, groups.held_out, given.seed)
        ends = [
            np.array([scored[when].per_query[group][name] for group in benchmark.groups])
            for when in ("base", "trained")
        ]
        gain = ends[1] - ends[0]
        cells = [f"{ends[0].mean():.3f}", f"{ends[1].mean():.3f}"]
        cells.append(f"{style.mean():.3f} (in training {learned:.3f} of the pairs)")
        for is_right in (1.0, 0.0):
            of = gain[style == is_right]
            reach = 1.96 * of.std(ddof=1) / np.sqrt(len(of))
            cells.append(f"{of.mean():+.3f} ± {reach:.3f} of {len(of)}")
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
