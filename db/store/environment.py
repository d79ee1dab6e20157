"""Every environment variable that InF Studio reads, in one table, which the documentation shows.

A test finds each read in the code and requires a row here (`tests/test_documentation.py`).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Variable:
    """One variable; `default` as a person reads it, `meaning` in one or two sentences."""

    name: str
    default: str
    meaning: str


VARIABLES: dict[str, tuple[Variable, ...]] = {
    "Store and folders": (
        Variable(
            "INF_DATABASE_URL",
            "`sqlite:///$INF_HOME/inf.db`",
            "The store: `sqlite:///PATH` or `postgresql://USER@HOST/NAME`.",
        ),
        Variable(
            "INF_DATABASE_SCHEMA",
            "the role's search path",
            "PostgreSQL: the schema of the tables; `inf store upgrade` creates it if missing.",
        ),
        Variable(
            "INF_HOME",
            "`.inf` in the current folder",
            "Folder of the embedded store, logs, checkpoints, locks and `secrets.toml`.",
        ),
        Variable(
            "INF_FILES",
            "none: each INF_HOME has its own",
            "A folder or a URL of fsspec (`s3://BUCKET/inf`) where the machines of a store share "
            "releases, checkpoints, uploaded corpora, run files and logs of jobs.",
        ),
        Variable(
            "INF_LOG_FORMAT",
            "`text`",
            "`json`: the server and its jobs log one JSON object a line, those of a run with "
            "`run`, `worker` and `group`, and one for each finished group.",
        ),
    ),
    "Sign-in": (
        Variable(
            "INF_PUBLIC_URL",
            "the address of each request",
            "Address of the app in the browser, such as `https://studio.example.org`. Needed "
            "behind a proxy that changes the header `Host`: requests of pages of other addresses "
            "are refused.",
        ),
        Variable(
            "INF_TRUSTED_PROXIES",
            "none",
            "Addresses or networks of proxies, separated by commas. Only their `X-Forwarded-For` "
            "and `X-Forwarded-Proto` are believed.",
        ),
        Variable(
            "INF_OPENID_TRUST_EMAIL",
            "`0`",
            "`1`: believe e-mail addresses of a provider that does not state `email_verified`.",
        ),
    ),
    "Language models": (
        Variable("OPENAI_API_KEY", "none", "Key of the OpenAI-compatible server. A secret."),
        Variable(
            "OPENAI_BASE_URL",
            "OpenAI's own",
            "Address of another OpenAI-compatible server (vLLM, llama.cpp, `transformers serve`). "
            "Several separated by commas share the requests of `inf curate`.",
        ),
        Variable("AZURE_OPENAI_ENDPOINT", "none", "Use Azure OpenAI at this address."),
        Variable("AZURE_OPENAI_API_KEY", "none", "Key of Azure OpenAI. A secret."),
        Variable("OPENAI_API_VERSION", "none", "API version of Azure OpenAI; needed with it."),
        Variable(
            "INF_RECORDING",
            "the demo set's",
            "Folder of recorded answers that the provider and judges `recorded` replay.",
        ),
        Variable(
            "INF_BATCH_POLL_SECONDS",
            "`30`",
            "Seconds between two looks at a batch (`inf curate --batch`).",
        ),
        Variable(
            "INF_MAX_RETRY_AFTER_SECONDS",
            "`600`",
            "The longest wait that a server's Retry-After can impose.",
        ),
    ),
    "Hugging Face Hub": (
        Variable("HF_TOKEN", "none", "Token for pushing and for private repositories. A secret."),
        Variable("HF_HUB_OFFLINE", "`0`", "`1`: never use the network for models and datasets."),
    ),
    "Ray cluster": (
        Variable(
            "INF_RAY_ADDRESS",
            "none: jobs run on this machine",
            "Dashboard of the cluster that runs jobs, `http://HEAD:8265`.",
        ),
        Variable("INF_RAY_CPUS", "`1`", "CPU cores to request for each process of a job."),
        Variable("INF_RAY_GPUS", "`0`", "GPUs to request for each process of a job."),
        Variable("INF_RAY_PYTHON", "`python`", "The Python interpreter on the nodes."),
        Variable(
            "INF_RAY_WORKING_DIR", "none", "A folder that Ray copies to the nodes for each job."
        ),
        Variable("RAY_ADDRESS", "set by Ray", "Set for a training that runs on a cluster."),
    ),
    "Devices and processes": (
        Variable(
            "INF_QUEUES",
            "all",
            "The queues whose jobs this machine runs: `files`, `curation` and `models` (maps, "
            "trainings: the extra `train`), or `none`.",
        ),
        Variable(
            "CUDA_VISIBLE_DEVICES",
            "all GPUs",
            "The GPUs that jobs may use; one job runs on each.",
        ),
        Variable(
            "INF_MODEL_SERVER_IDLE_SECONDS",
            "`600`",
            "The Try-it page's model server ends after this number of seconds without a request.",
        ),
        Variable(
            "INF_EMBEDDINGS_TOKEN", "none", "The token that `inf models serve` requires of clients."
        ),
        Variable("INF_INDEX_KEY", "none", "The key of a Qdrant or Elasticsearch server searched."),
        Variable("OMP_NUM_THREADS", "CPU cores / processes", "Threads of each training process."),
        Variable("OMP_WAIT_POLICY", "`PASSIVE`", "How OpenMP threads wait; for child processes."),
        Variable(
            "PYDANTIC_DISABLE_PLUGINS", "`__all__`", "Commands search for no plugins of pydantic."
        ),
        Variable("TOKENIZERS_PARALLELISM", "`false`", "Threads of the tokenizers; for children."),
        Variable(
            "ACCELERATE_TORCH_DEVICE",
            "set on workers without a GPU",
            "The device of a training process.",
        ),
        Variable("RANK", "set by torchrun or us", "The number of a training process."),
        Variable("LOCAL_RANK", "set by torchrun or us", "Its number on this machine."),
        Variable("WORLD_SIZE", "set by torchrun or us", "How many processes train together."),
        Variable("LOCAL_WORLD_SIZE", "set by torchrun or us", "How many of them on this machine."),
        Variable("MASTER_ADDR", "set by torchrun or us", "Where the processes meet."),
        Variable("MASTER_PORT", "set by torchrun or us", "The port there."),
        Variable(
            "INF_LIFELINE", "set by us", "The process with which a foreground job ends. Internal."
        ),
    ),
}
