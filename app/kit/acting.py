"""Buttons that ask for one operation and say what came of it."""

import inspect
from collections.abc import Callable
from typing import Any

from app.access.session_user import action, notify, signed_in_user
from app.operations.acting import queued


def acting(operation: Callable[..., Any], said: Callable[[Any], str]) -> Callable[..., None]:
    """The callback that asks for the operation as the session's user, and reports its result.

    It takes what the operation takes after the actor; a job that the operation launches is queued.
    """
    launches = "launch" in inspect.signature(operation).parameters

    @action
    def act(*args: Any, **given: Any) -> None:
        if launches:
            given["launch"] = queued
        notify(said(operation(signed_in_user(), *args, **given)))

    return act
