"""Calls per second of other tools next to ours, on one server, one after the other.

    .venv/bin/python bench/peers.py [--distilabel PYTHON] [--curator PYTHON]
        [--data-designer PYTHON] [--calls 2000] [--in-flight 64 256]

Each PYTHON is that of an environment of its own, with `pip install "distilabel[openai]"`,
`bespokelabs-curator` or `data-designer`; ours is `bench/curation.py --only speed`. All ask the
test server, 200 ms an answer, with the same number of calls in flight; the steady rate is that
between 20 % and 80 % of the calls, counted by the server.
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
CURATOR = """
import os, sys
os.environ |= {"CURATOR_DISABLE_RICH_DISPLAY": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
import tiktoken
# its tokenizer, which it would fetch, only counts tokens for its limits, which are off here
tokens = {bytes([n]): n for n in range(256)}
one = tiktoken.Encoding("bytes", pat_str=r"[\\s\\S]", mergeable_ranks=tokens, special_tokens={})
tiktoken.get_encoding = tiktoken.encoding_for_model = lambda *_: one
from bespokelabs import curator

url, calls, in_flight = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

class Ask(curator.LLM):
    def prompt(self, row):
        return row["instruction"]

    def parse(self, row, response):
        return {"answer": response}

ask = Ask(model_name="small", backend="openai", generation_params={"max_tokens": 160},
          backend_params={"base_url": url, "api_key": "none", "max_concurrent_requests": in_flight,
                          "max_requests_per_minute": 10**7, "max_tokens_per_minute": 10**10})
found = ask([{"instruction": f"Document: {'word ' * 30}{n}"} for n in range(calls)])
assert len(getattr(found, "dataset", found)) == calls
"""
DATA_DESIGNER = """
import os, sys
from pathlib import Path
os.environ["NEMO_TELEMETRY_ENABLED"] = "false"
import pandas as pd
import data_designer.config as dd
from data_designer.interface.data_designer import DataDesigner

url, calls, in_flight = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
server = dd.ModelProvider(name="local", endpoint=url, provider_type="openai", api_key="none")
parameters = dd.ChatCompletionInferenceParams(max_tokens=160, max_parallel_requests=in_flight,
                                         timeout=60)
model = dd.ModelConfig(alias="small", model="small", provider="local", skip_health_check=True,
                       inference_parameters=parameters)
designer = DataDesigner(artifact_path=Path("artifacts"), model_providers=[server])
designer.set_run_config(dd.RunConfig(buffer_size=calls, disable_early_shutdown=True))
config = dd.DataDesignerConfigBuilder(model_configs=[model])
rows = {"instruction": [f"Document: {'word ' * 30}{n}" for n in range(calls)]}
config.with_seed_dataset(dd.DataFrameSeedSource(df=pd.DataFrame(rows)))
config.add_column(dd.LLMTextColumnConfig(name="answer", prompt="{{ instruction }}",
                                         model_alias="small"))
found = designer.create(config, num_records=calls)
assert len(found.load_dataset()) == calls
"""
PEERS = {"distilabel": DISTILABEL, "curator": CURATOR, "data-designer": DATA_DESIGNER}


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
        calls_made = marks[-1][0] if marks else 0
        if process.returncode != 0 or calls_made < calls:
            print(f"{name}: {calls_made} of {calls} calls\n{log.read_text()[-1500:]}", flush=True)
            return
    first = next(mark for mark in marks if mark[0] >= 0.2 * calls)
    last = [mark for mark in marks if mark[0] <= 0.8 * calls][-1]
    rate = (last[0] - first[0]) / (last[1] - first[1]) if last[1] > first[1] else float("nan")
    print(f"{name:<18} {in_flight:>4} in flight  {rate:7.1f} calls/s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in PEERS:
        parser.add_argument(f"--{name}", metavar="PYTHON")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 256])
    arguments = parser.parse_args()
    bench = ours()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["INF_HOME"] = folder
        for in_flight in arguments.in_flight:
            with bench.server(latency=0.2) as url:  # type: ignore[attr-defined]
                for name, code in PEERS.items():
                    python = getattr(arguments, name.replace("-", "_"))
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
