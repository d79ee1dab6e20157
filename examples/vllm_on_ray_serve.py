"""A language model for runs: vLLM on the nodes of a Ray cluster, behind one address.

    serve start --address HEAD:6379 --http-host 10.0.0.5 --http-port 8000
    serve run --address HEAD:6379 --working-dir . vllm_on_ray_serve:build model=MODEL
        [name=NAME] [replicas=2] [gpus=1] [max_model_len=8192]

Each replica is a `vllm serve` with GPUs of its own; Ray Serve sends a request to the least busy
one, starts an ended one anew, and answers with an error meanwhile, which a run tries again. Then,
on the machine of the runs: `inf connections add fleet --url http://10.0.0.5:8000/v1`. A key that
clients must give is `VLLM_API_KEY` in the nodes' environment. Answers come whole, not as streams.
"""

import asyncio
import socket
import subprocess

import httpx
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

IN_FLIGHT = 256  # of a replica; vLLM puts those that come together into one batch
HEALTH_SECONDS = 4  # between two looks at a replica
PASSED_ON = ("authorization", "content-type")
READY_SECONDS = 1800  # the weights may have to come from far


@serve.deployment
class Model:
    """A `vllm serve` on a free port of this node, and the way to it."""

    async def __init__(self, command: list[str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._server = subprocess.Popen([*command, "--host", "127.0.0.1", "--port", str(port)])
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=IN_FLIGHT)
        self._client = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", timeout=None, limits=limits
        )
        async with asyncio.timeout(READY_SECONDS):
            while not await self._answers():
                self.check_health()
                await asyncio.sleep(0.5)

    async def _answers(self) -> bool:
        try:
            return (await self._client.get("/health")).is_success
        except httpx.TransportError:
            return False

    def check_health(self) -> None:
        """Ray Serve calls this every few seconds, and replaces a replica for which it raises."""
        if self._server.poll() is not None:
            raise RuntimeError(f"vllm serve ended with {self._server.returncode}; its log says why")

    async def __call__(self, request: Request) -> Response:
        """The answer of this replica's server, with its status."""
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        try:
            answer = await self._client.request(
                request.method, path, content=await request.body(), headers=headers
            )
        except httpx.TransportError as gone:
            await asyncio.sleep(HEALTH_SECONDS / 2)  # at once, it would look the least busy one
            error = {"message": f"vllm serve is away: {gone!r}", "type": "server_error"}
            return JSONResponse({"error": error}, status_code=503)
        return Response(
            answer.content, answer.status_code, media_type=answer.headers.get("content-type")
        )

    def __del__(self) -> None:
        if getattr(self, "_server", None):
            self._server.terminate()


def build(arguments: dict[str, str]) -> serve.Application:
    """The application of `serve run`'s NAME=VALUE arguments; one that is unknown is vLLM's."""
    given = dict(arguments)
    model = given.pop("model")
    name = given.pop("name", model)
    replicas, gpus = int(given.pop("replicas", "2")), float(given.pop("gpus", "1"))
    of_vllm = [
        word for key, value in given.items() for word in (f"--{key.replace('_', '-')}", value)
    ]
    command = ["vllm", "serve", model, "--served-model-name", name, *of_vllm]
    return Model.options(
        num_replicas=replicas,
        max_ongoing_requests=IN_FLIGHT,
        health_check_period_s=HEALTH_SECONDS,
        ray_actor_options={"num_cpus": 1, "num_gpus": gpus},
    ).bind(command)
