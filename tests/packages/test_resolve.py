"""Which versions go together: random catalogs, each answer compared with trying everything."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import product

import pytest

from belljar.packages.errors import PackageError
from belljar.packages.resolve import Candidate, Constraint, Need, NoSolution, install_order, resolve
from belljar.packages.semver import satisfies

RANGES = ["*", "^1", "^2", "<2", ">=2", "1.0.0", "~1.1", ">=1.1 <3", "^3"]
VERSIONS = ["1.0.0", "1.1.0", "2.0.0", "2.1.0", "3.0.0"]
COUNT = 5000 if os.environ.get("BELLJAR_WHOLE") else 400

Catalog = Mapping[str, Sequence[Candidate]]


def random_problem(seed: int) -> tuple[Catalog, list[Need]]:
    rng = random.Random(seed)
    names = [f"p{number}" for number in range(rng.randint(2, 5))]
    catalog = {}
    for index, name in enumerate(names):
        versions = sorted(rng.sample(VERSIONS, rng.randint(1, 3)), reverse=True)
        below = names[index + 1 :] + ["gone"] * (rng.random() < 0.1)
        catalog[name] = [
            Candidate(name, version, {dep: rng.choice(RANGES) for dep in below if rng.random() < 0.6})
            for version in versions
        ]
    asked = rng.sample(names, rng.randint(1, min(3, len(names))))
    return catalog, [Need(name, rng.choice(RANGES)) for name in asked]


def offers(catalog: Catalog) -> Callable[[str], Sequence[Candidate]]:
    return lambda name: catalog.get(name, [])


def holds(chosen: Mapping[str, Candidate], needs: Sequence[tuple[str, str]]) -> bool:
    return all(name in chosen and satisfies(chosen[name].version, wanted) for name, wanted in needs)


def solvable(catalog: Catalog, needs: Sequence[tuple[str, str]]) -> bool:
    """Try every choice of versions."""
    names = sorted(catalog)
    for pick in product(*([None, *catalog[name]] for name in names)):
        chosen = {name: candidate for name, candidate in zip(names, pick, strict=True) if candidate is not None}
        edges = [edge for candidate in chosen.values() for edge in candidate.dependencies.items()]
        if holds(chosen, [*needs, *edges]):
            return True
    return False


def without(catalog: Catalog, kept: Sequence[Constraint]) -> Catalog:
    """The catalog with no other dependencies than those of constraints."""
    edges = {(each.parent, each.name, each.range) for each in kept if each.parent}
    return {
        name: [
            Candidate(name, c.version, {dep: r for dep, r in c.dependencies.items() if (name, dep, r) in edges})
            for c in candidates
        ]
        for name, candidates in catalog.items()
    }


def test_every_answer_is_right_and_every_conflict_is_the_smallest() -> None:
    answers = conflicts = 0
    for seed in range(COUNT):
        catalog, needs = random_problem(seed)
        asked = [(need.name, need.range) for need in needs]
        if not solvable(catalog, asked):
            conflicts += 1
            with pytest.raises(NoSolution) as caught:
                resolve(needs, offers(catalog))
            told = caught.value.constraints
            assert not _meets(catalog, told), (seed, str(caught.value))
            for index in range(len(told)):
                assert _meets(catalog, told[:index] + told[index + 1 :]), (seed, str(caught.value))
            continue
        chosen = resolve(needs, offers(catalog))
        answers += 1
        assert holds(chosen, [*asked, *(edge for c in chosen.values() for edge in c.dependencies.items())]), seed
        order = [candidate.name for candidate in install_order(chosen)]
        for candidate in chosen.values():
            assert all(order.index(dep) < order.index(candidate.name) for dep in candidate.dependencies)
    assert answers > COUNT / 5
    assert conflicts > COUNT / 5


def _meets(catalog: Catalog, told: Sequence[Constraint]) -> bool:
    return solvable(without(catalog, told), [(each.name, each.range) for each in told if not each.parent])


def test_a_conflict_is_told_in_words() -> None:
    catalog = {
        "a": [Candidate("a", "2.0.0", {"b": "<2"}), Candidate("a", "1.0.0", {"b": "<2"})],
        "b": [Candidate("b", "2.0.0", {}), Candidate("b", "1.0.0", {})],
        "c": [Candidate("c", "1.0.0", {"b": ">=2", "d": "*"})],
        "d": [Candidate("d", "1.0.0", {})],
    }
    with pytest.raises(NoSolution) as caught:
        resolve([Need("d", "*"), Need("a", "*"), Need("c", "^1")], lambda name: catalog.get(name, []))
    assert str(caught.value) == (
        "these can't be had together:\n  you asked for a\n  you asked for c ^1\n  every a needs b <2\n"
        "  c 1.0.0 needs b >=2"
    )


def test_a_circle_is_told_in_words() -> None:
    chosen = {name: Candidate(name, "1.0.0", {dep: "*"}) for name, dep in (("a", "b"), ("b", "c"), ("c", "b"))}
    with pytest.raises(PackageError, match=r"in a circle: b 1\.0\.0 needs c, c 1\.0\.0 needs b$"):
        install_order(chosen)
