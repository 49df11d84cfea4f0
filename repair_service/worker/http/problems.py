"""Refusals and failures as JSON texts (RFC 9457): what happened, and what to do."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from repair_service.errors import RepairServiceError, UsageError

MEDIA_TYPE = "application/problem+json"

REMEDIES = {
    404: "There is no such page here; deploy/README.md lists the routes.",
    405: "This route takes another method; the Allow header names it.",
}


class Problem(Exception):
    """A request that cannot be answered as it was meant.

    Attributes:
        status: The HTTP status.
        detail: What happened, and what to do; no content and no secret.
        headers: Further headers of the answer.
    """

    def __init__(self, status: int, detail: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers


def problem_response(problem: Problem) -> Response:
    """The answer that says a problem."""
    document = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail,
    }
    response = Response(
        msgspec.json.encode(document) + b"\n", status_code=problem.status, media_type=MEDIA_TYPE
    )
    for name, value in problem.headers:
        response.headers.append(name, value)
    return response


def problem_of(error: RepairServiceError) -> Problem:
    """The problem for an error of our tree, whose message says what to do."""
    if isinstance(error, UsageError):
        return Problem(422, str(error))
    return Problem(503, str(error), (("Retry-After", "15"),))


def unexpected() -> Problem:
    """The problem for an error that nobody thought of; the guard logs its kind and place."""
    return Problem(500, "The worker failed at this; its log says where. Please report it.")


async def on_unexpected(request: Request, error: Exception) -> Response:
    """Answers an error that nobody thought of."""
    return problem_response(unexpected())


async def on_problem(request: Request, error: Exception) -> Response:
    """Answers a problem that a view raised."""
    assert isinstance(error, Problem)  # noqa: S101  # it is registered for these
    return problem_response(error)


async def on_error(request: Request, error: Exception) -> Response:
    """Answers an error of our tree that a view let pass."""
    assert isinstance(error, RepairServiceError)  # noqa: S101  # it is registered for these
    return problem_response(problem_of(error))


async def on_http(request: Request, error: Exception) -> Response:
    """Answers what the router refuses: an unknown path, a wrong method."""
    assert isinstance(error, HTTPException)  # noqa: S101  # it is registered for these
    headers: Mapping[str, str] = error.headers or {}
    detail = REMEDIES.get(error.status_code, "The request cannot be answered.")
    return problem_response(Problem(error.status_code, detail, tuple(headers.items())))
