"""The recorded provider: a language model's answers from a file, for the demo set.

It gets the true prompts' inputs and gives raw answers, so that parser, rule filter, journal and
verdict are those of any run. What it cannot answer is dropped as `not_recorded`: it never makes
anything up.
"""

import json
from collections.abc import Sequence
from typing import Any

from curation.providers.provider import Answer, ProviderState, Request, RowFailed
from curation.recorded import NAME
from curation.recorded.recording import Recording
from db.values import NONE


class RecordedProvider:
    """Answers every task from a recording; nothing is paid and nothing waits."""

    name = NAME
    offline = False
    groups_per_call = 1
    budget_seconds = 1.0

    def __init__(self, recording: Recording, judge: str) -> None:
        self._recording, self._judge = recording, judge

    async def answer(self, request: Request) -> Answer:
        """The recorded text or choice. Raises RowFailed where there is none."""
        if request.task == "validation":
            return self._judged(request)
        query, document = request.inputs.get("query_positive"), request.inputs["document"]
        assert isinstance(document, str)
        text = None
        if isinstance(query, str):
            text = self._recording.text(request.task, query, document)
        if text is None:
            raise RowFailed(
                "not_recorded",
                "nothing was recorded for this pair: `recorded` replays the demo set alone; "
                "choose another provider for data of your own",
            )
        return Answer(json.dumps({request.gives.lower(): text}, ensure_ascii=False))

    def _judged(self, request: Request) -> Answer:
        instruction, query = request.inputs["instruction"], request.inputs["query"]
        passages = request.inputs["passages"]
        assert isinstance(instruction, str) and isinstance(query, str)
        chosen = self._recording.chosen(self._judge, instruction, query, passages)
        if chosen is None:
            raise RowFailed(
                "not_recorded",
                f"judge {self._judge} did not see these candidates: `recorded` replays the demo "
                "set with its recipe and seed 0 as they are",
            )
        place = chosen.place(passages)
        choice = NONE if place is None else str(place + 1)
        return Answer(
            json.dumps({"reasoning": chosen.reason, "choice": choice}, ensure_ascii=False)
        )

    def max_usd(self, request: Request) -> float:
        """Nothing is paid."""
        return 0.0

    def parameters(self) -> dict[str, Any]:
        """What was recorded decides what is answered."""
        return {"recording": self._recording.sha256}

    async def check_models(self, models: Sequence[str]) -> None:
        """There is nothing to ask."""

    def state(self) -> ProviderState:
        """Nothing is ever in flight."""
        return ProviderState()

    def stop(self) -> None:
        """Nothing is sent anyway."""

    def set_limits(self, calls: int, part: float) -> None:
        """A file needs no limit."""

    async def close(self) -> None:
        """Nothing is open."""
