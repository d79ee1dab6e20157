"""Calls per second of distilabel beside ours, on one server, one after the other.

    .venv/bin/python bench/peers.py --distilabel PYTHON [--calls 2000] [--in-flight 64 256]

PYTHON is that of an environment of its own with `pip install "distilabel[openai]"`; ours is
`bench/curation.py --only speed`. Both ask the test server, 200 ms an answer, with the same number
of calls in flight; the steady rate is that between 20 % and 80 % of the calls, counted by the
server. (Bespoke Curator cannot be measured without a network: it fetches a tokenizer first.)
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DISTILABEL = """
import sys
from distilabel.models import OpenAILLM
from distilabel.pipeline import Pipeline
from distilabel.steps import LoadDataFromDicts
from distilabel.steps.tasks import TextGeneration

url, calls, in_flight = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rows = [{"instruction": f"Document: {'word ' * 30}{n}"} for n in range(calls)]
with Pipeline() as pipeline:
    load = LoadDataFromDicts(data=rows, batch_size=in_flight)
    llm = OpenAILLM(model="small", base_url=url, api_key="none", timeout=60,
                    generation_kwargs={"max_new_tokens": 160})
    load >> TextGeneration(llm=llm, input_batch_size=in_flight)
if __name__ == "__main__":
    found = pipeline.run(use_cache=False)
    assert len(found["default"]["train"]) == calls
"""


def ours() -> object:
    """bench/curation.py, whose name is also a package's."""
    spec = importlib.util.spec_from_file_location("bench_curation", ROOT / "bench" / "curation.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_curation"] = module
    spec.loader.exec_module(module)
    return module


def measure(
    bench: object, name: str, command: list[str], url: str, calls: int, in_flight: int
) -> None:
    """Run a tool and watch the server's count."""
    counts = bench.counts  # type: ignore[attr-defined]
    before = counts(url)["answered"]
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "HOME": folder,
            "HF_HUB_OFFLINE": "1",
            "TELEMETRY_ENABLED": "0",
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": url,
        }
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, url, str(calls), str(in_flight)],
                env=environment,
                cwd=folder,
                stdout=output,
                stderr=output,
            )
            marks = []
            while process.poll() is None:
                marks.append((counts(url)["answered"] - before, time.monotonic()))
                time.sleep(0.1)
        asked = marks[-1][0] if marks else 0
        if process.returncode != 0 or asked < calls:
            print(f"{name}: {asked} of {calls} calls\n{log.read_text()[-1500:]}", flush=True)
            return
    first = next(mark for mark in marks if mark[0] >= 0.2 * calls)
    last = [mark for mark in marks if mark[0] <= 0.8 * calls][-1]
    rate = (last[0] - first[0]) / (last[1] - first[1]) if last[1] > first[1] else float("nan")
    print(f"{name:<18} {in_flight:>4} in flight  {rate:7.1f} calls/s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--distilabel", metavar="PYTHON")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 256])
    arguments = parser.parse_args()
    bench = ours()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["INF_HOME"] = folder
        peers = (("distilabel", arguments.distilabel, DISTILABEL),)
        for in_flight in arguments.in_flight:
            with bench.server(latency=0.2) as url:  # type: ignore[attr-defined]
                for name, python, code in peers:
                    if python:
                        script = Path(folder) / "peer.py"
                        script.write_text(code)
                        command = [python, str(script)]
                        measure(bench, name, command, url, arguments.calls, in_flight)
            words = ["--only", "speed", "--in-flight", str(in_flight), "--calls"]
            command = [sys.executable, str(ROOT / "bench" / "curation.py"), *words]
            subprocess.run([*command, str(arguments.calls)], check=True)


if __name__ == "__main__":
    main()
