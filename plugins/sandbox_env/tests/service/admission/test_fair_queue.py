"""Turns are shared by weight, whatever the order in which requests came."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from orchard_env.service.admission.fair_queue import FairQueue

Item = tuple[str, int]


def filled(weights: dict[str, float], each: int) -> FairQueue[Item]:
    queue: FairQueue[Item] = FairQueue()
    for tenant, weight in weights.items():
        for number in range(each):
            queue.push(tenant, weight, (tenant, number))
    return queue


def popped(queue: FairQueue[Item], count: int) -> list[Item]:
    return [item for _ in range(count) if (item := queue.pop()) is not None]


def test_a_tenant_that_came_last_with_one_request_is_served_with_the_next_turns() -> None:
    queue = filled({"floods": 1.0}, 1000)
    queue.push("modest", 1.0, ("modest", 0))
    assert ("modest", 0) in popped(queue, 2)


def test_turns_are_given_by_weight() -> None:
    queue = filled({"a": 1.0, "b": 2.0, "c": 0.5}, 1000)
    turns = Counter(tenant for tenant, _ in popped(queue, 700))
    assert turns == {"a": 200, "b": 400, "c": 100}


def test_within_a_tenant_who_came_first_is_served_first() -> None:
    queue = filled({"a": 3.0, "b": 1.0}, 50)
    order = popped(queue, 100)
    for tenant in ("a", "b"):
        assert [number for name, number in order if name == tenant] == list(range(50))
    assert queue.pop() is None


def test_a_tenant_that_may_not_have_a_turn_holds_nobody_up() -> None:
    queue = filled({"a": 1.0, "b": 1.0}, 2)
    assert queue.pop(lambda tenant: tenant == "b") == ("b", 0)
    assert queue.pop(lambda tenant: tenant == "b") == ("b", 1)
    assert queue.pop(lambda tenant: tenant == "b") is None
    assert len(queue) == 2


def test_who_makes_room_is_the_latest_of_the_longest_queue_for_its_weight() -> None:
    queue = filled({"heavy": 10.0}, 30)
    for number in range(20):
        queue.push("light", 1.0, ("light", number))
    assert queue.pop_last_of_longest("new", 1.0) == ("light", 19)
    assert queue.pop_last_of_longest("light", 1.0) is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["push", "pop", "remove"]),
            st.sampled_from(["a", "b", "c"]),
            st.floats(min_value=0.01, max_value=100),
        ),
        max_size=60,
    )
)
def test_whatever_happens_each_item_leaves_once_and_the_length_is_true(
    steps: list[tuple[str, str, float]],
) -> None:
    queue: FairQueue[Item] = FairQueue()
    inside: set[Item] = set()
    for number, (what, tenant, weight) in enumerate(steps):
        if what == "push":
            queue.push(tenant, weight, (tenant, number))
            inside.add((tenant, number))
        elif what == "pop":
            item = queue.pop()
            assert (item is None) == (not inside)
            if item is not None:
                inside.remove(item)
        else:
            found = next((item for item in inside if item[0] == tenant), (tenant, -1))
            queue.remove(tenant, found)
            inside.discard(found)
        assert len(queue) == len(inside)
        assert queue.waiting("a") == sum(item[0] == "a" for item in inside)
