"""Rebuilds among all other verbs, in any order: see rebuild_trial.py for what is checked."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from identity.rebuild_trial import LARGEST, VERBS, RebuildTrial

numbers = st.tuples(*[st.integers(0, LARGEST - 1)] * 4)


def rule_of(verb):
    @rule(numbers=numbers)
    def operate(self, numbers):
        self.trial.do(verb, numbers)
        type(self).operations += 1

    operate.__name__ = verb
    return operate


class RebuildMachine(RuleBasedStateMachine):
    """A rule for each verb; the trial checks after each operation."""

    operations = 0

    @initialize(seed=st.integers(0, 10**6))
    def begin(self, seed):
        self.trial = RebuildTrial(seed)
        self.trial.do("add_many", (0, 6, 0, 0))


for _verb in VERBS:
    setattr(RebuildMachine, _verb, rule_of(_verb))


def run_trials(seed, operations):
    """Run random trials up to a number of operations; count verbs."""
    rng = np.random.default_rng([seed, 6])
    verbs, odds = list(VERBS), np.array(list(VERBS.values())) / sum(VERBS.values())
    done = Counter()
    while done["operations"] < operations:
        trial = RebuildTrial(int(rng.integers(10**9)))
        for _ in range(rng.choice([30, 60, 120])):
            trial.do(str(rng.choice(verbs, p=odds)), rng.integers(LARGEST, size=4).tolist())
            done["operations"] += 1
        done += trial.counts
    return done


@pytest.mark.parametrize("examples", [20, pytest.param(400, marks=pytest.mark.long)])
def test_the_smallest_failure_of_a_rebuild_is_found_by_hypothesis(examples):
    class Machine(RebuildMachine):
        pass

    Machine.TestCase.settings = settings(
        max_examples=examples, stateful_step_count=30, deadline=None, print_blob=True
    )
    Machine.TestCase().runTest()
    assert Machine.operations >= 12 * examples


@pytest.mark.parametrize("operations", [1_000, pytest.param(20_000, marks=pytest.mark.long)])
def test_rebuilds_among_all_verbs_keep_names_ids_and_corrections_and_have_one_answer(operations):
    done = run_trials(0, operations)
    assert {verb for verb in VERBS if done[verb] < operations // 200} == set()
    assert done["twins"] >= operations // 20
    assert done["same refused"] + done["different refused"] >= 1
