"""How what is refused is refused: soon, and without harm to anybody."""

from __future__ import annotations

JSON = {"Content-Type": "application/json"}


def refused(service, method, path, body, *, statuses=(400,), headers=JSON):
    """An answer that comes soon: the best of some tries, for a machine that does other things."""
    answers = []
    for _ in range(4):
        answer = service.call(method, path, body, headers=headers)
        assert answer.status in statuses, (answer.status, answer.body)
        answers.append(answer)
        if answer.seconds < 0.1:
            break
    assert min(answer.seconds for answer in answers) < 1.0
    assert service.get("/healthz").status == 200
    return answers[0]
