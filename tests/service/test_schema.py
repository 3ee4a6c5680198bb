"""Requests generated from the OpenAPI, valid and invalid: no fault, documented answers."""

from __future__ import annotations

import contextlib
import gc
import json
import zlib

import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from service.calling import Answer, check_answer
from service.routes import ROUTES, STREAMS, shape
from service.server import ThreadService
from store.operations import vectors

X = vectors(np.random.default_rng(10), 40)
ENDLESS = {shape(route.path) for route in STREAMS}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 6


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    """Return a service with vectors, and its schema."""
    folder = tmp_path_factory.mktemp("schema")
    (folder / "images").mkdir()
    # Generating makes a great many objects; what all other tests have left need not be looked
    # through each time that some of these are collected.
    gc.collect()
    gc.freeze()
    with ThreadService(folder / "data", images=folder / "images") as service:
        path = service.namespace("mine")
        service.post(f"{path}/vectors", X)
        document = service.get("/openapi.json").json
        schema = schemathesis.openapi.from_dict(document)
        yield (
            service,
            {
                (operation.method.upper(), shape(operation.path)): operation
                for operation in (found.ok() for found in schema.get_all_operations())
            },
        )
    gc.unfreeze()


def explore(service, operation, mode, examples):
    """Send generated requests, valid or invalid, and check each answer."""
    url = f"http://127.0.0.1:{service.port}"

    @seed(7)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case):
        told = case.path_parameters.get("namespace") if case.path_parameters else None
        if (
            told is not None and zlib.crc32(str(told).encode()) % 4
        ):  # most are for one that is there
            case.path_parameters["namespace"] = "mine"
        response = case.call(base_url=url, timeout=60)
        headers = {name.lower(): values[0] for name, values in response.headers.items()}
        check_answer(Answer(response.status_code, headers, response.content))
        case.validate_response(response, checks=CHECKS)

    with contextlib.suppress(Unsatisfiable):  # there is nothing to get wrong
        send()


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_generated_requests_cause_no_fault_and_get_documented_answers(explored, route, mode):
    service, operations = explored
    operation = operations.get((route.method, shape(route.path)))
    if operation is None or shape(route.path) in ENDLESS:
        return
    explore(service, operation, mode, EXAMPLES)
    assert service.get("/healthz").status == 200


@pytest.mark.long
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_many_generated_requests_cause_no_fault(explored, route, mode):
    service, operations = explored
    operation = operations.get((route.method, shape(route.path)))
    if operation is None or shape(route.path) in ENDLESS:
        return
    explore(service, operation, mode, 60 * EXAMPLES)


def test_every_route_describes_its_answers_and_its_errors(explored):
    service, _ = explored
    document = service.get("/openapi.json").json
    json.dumps(document)
    for path, methods in document["paths"].items():
        for method, what in methods.items():
            assert what["summary"], (method, path)
            assert {"200", "201", "202"} & set(what["responses"]), (method, path)
            if path.startswith("/v1"):
                assert "401" in what["responses"] or "4XX" in what["responses"], (method, path)
