"""What sessions may spend."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Iterable, List, Optional, Sequence, Union

from . import _branchline as native
from .errors import InvalidArgumentError
from .options import json_text


def _milliseconds(wall_time: Optional[float]) -> Optional[int]:
    if wall_time is None:
        return None
    if not isinstance(wall_time, (int, float)) or not math.isfinite(wall_time):
        raise InvalidArgumentError(f"wall_time is a number of seconds, or None for no limit, not {wall_time!r}")
    return round(wall_time * 1000)


@dataclass(frozen=True)
class BudgetLimits:
    """Limits of a budget; None is no limit."""

    requests: Optional[int] = None
    """Requests to models: turns, summaries, and every repetition of a failed one."""
    turns: Optional[int] = None
    """Requests for the next message of a conversation."""
    tokens: Optional[int] = None
    """Tokens in and out, cached ones included."""
    cost: Optional[float] = None
    """US dollars."""
    wall_time: Optional[float] = None
    """Seconds during which at least one of the sessions runs."""
    ignore_unknown_prices: bool = False
    """With a limit of cost: count requests whose price nobody knows as free, instead of refusing them."""

    def _json(self) -> str:
        limits = {
            "requests": self.requests,
            "turns": self.turns,
            "tokens": self.tokens,
            "cost": self.cost,
            "wallTimeMs": _milliseconds(self.wall_time),
            "ignoreUnknownPrices": self.ignore_unknown_prices,
        }
        return json_text({key: limit for key, limit in limits.items() if limit is not None})


@dataclass(frozen=True)
class BudgetUse:
    """What was spent so far."""

    requests: int
    turns: int
    tokens: int
    cost: float
    """US dollars, of requests whose price is known."""
    unpriced_requests: int
    """Requests whose price nobody knows."""
    wall_time: float
    """Seconds during which a session ran."""


class Budget:
    """Hard limits for what sessions may spend, and what they spent. Several sessions may share one.

    A request that would break a limit is not sent: the run ends with an event ``BudgetExceeded``, and the session
    goes on when the limits allow it again.
    """

    def __init__(
        self,
        *,
        requests: Optional[int] = None,
        turns: Optional[int] = None,
        tokens: Optional[int] = None,
        cost: Optional[float] = None,
        wall_time: Optional[float] = None,
        ignore_unknown_prices: bool = False,
    ) -> None:
        """As ``BudgetLimits``."""
        limits = BudgetLimits(requests, turns, tokens, cost, wall_time, ignore_unknown_prices)
        self._native = native.Budget(limits._json())

    @property
    def used(self) -> BudgetUse:
        """What was spent so far."""
        value = json.loads(self._native.used())
        return BudgetUse(
            requests=value["requests"],
            turns=value["turns"],
            tokens=value["tokens"],
            cost=float(value["cost"]),
            unpriced_requests=value["unpricedRequests"],
            wall_time=value["wallTimeMs"] / 1000,
        )

    @property
    def limits(self) -> BudgetLimits:
        """The limits now. Assign others at any time, also while sessions run."""
        value = json.loads(self._native.limits())
        time = value["wallTimeMs"]
        return BudgetLimits(
            requests=value["requests"],
            turns=value["turns"],
            tokens=value["tokens"],
            cost=value["cost"],
            wall_time=None if time is None else time / 1000,
            ignore_unknown_prices=value["ignoreUnknownPrices"],
        )

    @limits.setter
    def limits(self, limits: BudgetLimits) -> None:
        self._native.set_limits(limits._json())

    def __repr__(self) -> str:
        return f"<Budget {self._native.limits()}, used {self._native.used()}>"


Budgets = Union[Budget, Sequence[Budget]]
"""One budget, or several that all hold."""


def native_budgets(budget: Optional[Budgets]) -> List[native.Budget]:
    """The budgets as the native half takes them."""
    given: List[Any] = list(budget) if isinstance(budget, Iterable) else [] if budget is None else [budget]
    if not all(isinstance(one, Budget) for one in given):
        raise InvalidArgumentError("budget is a Budget, or a list of them")
    return [one._native for one in given]
