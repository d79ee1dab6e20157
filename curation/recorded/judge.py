"""The recorded judge: a language model's choices from a file, for studies of the demo set."""

from collections.abc import Callable, Sequence

from curation.judges.judge import Choice, ItemView
from curation.recorded import NAME
from curation.recorded.recording import Recording
from db.errors import BadInput


class RecordedJudge:
    """Answers as the recorded judge did, wherever its choice stands among the candidates shown."""

    kind = "model"
    provider = NAME
    offline = False
    simulated = False
    at_once = 64

    def __init__(self, recording: Recording, judge: str) -> None:
        if judge not in recording.choices:
            raise BadInput(
                f"no recorded judge {judge!r}",
                "use recorded:" + " or recorded:".join(recording.judges),
                code="recorded_judge_unknown",
            )
        self.name, self.model = f"recorded:{judge}", f"judge {judge}"
        self._recording, self._judge = recording, judge

    def choose(
        self, views: Sequence[ItemView], *, check: Callable[[], None] | None = None
    ) -> list[Choice]:
        """The recorded choice of each; an item that the judge did not see is unusable."""
        return [self._choose(view) for view in views]

    def _choose(self, view: ItemView) -> Choice:
        chosen = self._recording.chosen(self._judge, view.instruction, view.query, view.candidates)
        if chosen is None:
            return Choice(None, unusable="not_recorded")
        detail = {"reason": chosen.reason} if chosen.reason else {}
        return Choice(chosen.place(view.candidates), {**detail, "recorded": True})
