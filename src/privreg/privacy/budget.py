"""A privacy budget: one type for the several ways in which the field states one."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, sqrt

from privreg.privacy.neighbours import Neighbours
from privreg.validation import require_number


@dataclass(frozen=True)
class Budget:
    r"""A zero-concentrated budget ρ and the neighbouring relation that it is meant for.

    .. math:: D_\alpha(M(D)\,\|\,M(D')) \le \rho\,\alpha, \qquad \alpha > 1

    Parameters
    ----------
    rho : float
        Budget ρ of zCDP, more than 0; `inf` promises nothing.
    neighbours : Neighbours
        Neighbouring relation, replace-one by default.

    Attributes
    ----------
    root : float
        √(2ρ): the μ of a single Gaussian mechanism that spends all of it, and the ρ of bombari2025,
        whose budgets read ρ²/2-zCDP.

    Examples
    --------
    >>> Budget.half_square(1.0)
    Budget(rho=0.5, neighbours='replace-one')
    >>> round(Budget.zcdp(0.125).epsilon(delta=1e-6), 3)
    2.419
    >>> Budget.zcdp(0.1) + Budget.zcdp(0.4)
    Budget(rho=0.5, neighbours='replace-one')

    Source
    ------
    Bun and Steinke (2016), Definition 1.1 and Lemma 1.7 (budgets add up).
    """

    rho: float
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    root: float = field(init=False, compare=False)
    _stated: tuple[float, float] | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        rho = require_number("rho", self.rho, above=0, infinite=True)
        object.__setattr__(self, "rho", rho)
        object.__setattr__(self, "neighbours", Neighbours(self.neighbours))
        # The double of a large finite budget is infinite.
        root = sqrt(2.0 * rho) if rho < 1 else 2.0 * sqrt(0.5 * rho)
        object.__setattr__(self, "root", root)
        object.__setattr__(self, "_stated", None)

    def __repr__(self) -> str:
        return f"Budget(rho={self.rho:g}, neighbours={self.neighbours.value!r})"

    @classmethod
    def zcdp(cls, rho: float, *, neighbours: Neighbours | str = Neighbours.REPLACE_ONE) -> Budget:
        """ρ-zCDP, as brown2024 states its budgets."""
        return cls(rho, Neighbours(neighbours))

    @classmethod
    def half_square(
        cls, root: float, *, neighbours: Neighbours | str = Neighbours.REPLACE_ONE
    ) -> Budget:
        """ρ²/2-zCDP, as bombari2025 states its budgets.

        Parameters
        ----------
        root : float
            √(2ρ), at least 1e-150 and at most 1e150, where its square is a number; or `inf`.
        neighbours : Neighbours
            Neighbouring relation.
        """
        return cls._from_root("root", root, neighbours)

    @classmethod
    def _from_root(cls, name: str, value: float, neighbours: Neighbours | str) -> Budget:
        root = require_number(name, value, least=1e-150, infinite=True)
        if 1e150 < root < inf:
            raise ValueError(f"{name} must be at most 1e+150 or infinite, got {root}")
        budget = cls(root**2 / 2, Neighbours(neighbours))
        # The root that was stated, to the last digit, not the root of its rounded square.
        object.__setattr__(budget, "root", root)
        return budget

    @classmethod
    def gaussian_dp(
        cls, mu: float, *, neighbours: Neighbours | str = Neighbours.REPLACE_ONE
    ) -> Budget:
        """The zCDP that a μ-Gaussian-DP promise implies, μ²/2 (the converse does not hold).

        Parameters
        ----------
        mu : float
            μ, with the range of `half_square`'s root.
        neighbours : Neighbours
            Neighbouring relation.
        """
        return cls._from_root("mu", mu, neighbours)

    @classmethod
    def approximate(
        cls,
        epsilon: float,
        delta: float,
        *,
        neighbours: Neighbours | str = Neighbours.REPLACE_ONE,
    ) -> Budget:
        """The largest zCDP budget whose tight conversion keeps (ε, δ)-DP.

        Parameters
        ----------
        epsilon : float
            ε, at least 1e-100 and at most 1e99.
        delta : float
            δ in (0, 1).
        neighbours : Neighbours
            Neighbouring relation.

        Guarantee
        ---------
        Every mechanism with this budget is (ε, δ)-DP under the relation.
        """
        from privreg.privacy.zcdp import from_approximate_tight

        rho = from_approximate_tight(
            require_number("epsilon", epsilon), delta=require_number("delta", delta)
        )
        budget = cls(float(rho), Neighbours(neighbours))
        object.__setattr__(budget, "_stated", (float(epsilon), float(delta)))
        return budget

    def gaussian(self) -> Budget:
        """Budget for mechanisms that only add Gaussian noise, in shares fixed beforehand.

        Where (ε, δ) was stated, their exact trade-off keeps it with 11 to 16 % more ρ than zCDP's
        conversion for ε up to 8 at δ = 1e-6; a budget stated otherwise is left alone.

        Guarantee
        ---------
        Every such mechanism with the result is (ε, δ)-DP as stated (`gaussian_rho`).

        Examples
        --------
        >>> stated = Budget.approximate(1.0, 1e-6)
        >>> round(stated.rho, 4), round(stated.gaussian().rho, 4)
        (0.0244, 0.028)
        """
        from privreg.privacy.gaussian_dp import gaussian_rho

        if self._stated is None:
            return self
        epsilon, delta = self._stated
        # Below 1e-100 both conversions agree to 1 %.
        exact = gaussian_rho(epsilon, delta=delta) if delta >= 1e-100 else 0.0
        return Budget(max(self.rho, exact), self.neighbours)

    def gaussian_epsilon(self, *, delta: float) -> float:
        """Exact ε of mechanisms that only add Gaussian noise; at most `epsilon`."""
        from privreg.privacy.gaussian_dp import gaussian_epsilon

        failure = require_number("delta", delta, above=0, below=1)
        if not 1e-250 <= self.rho <= 1e100:
            return self.epsilon(delta=failure)
        return gaussian_epsilon(self.rho, delta=failure)

    def epsilon(self, *, delta: float) -> float:
        """Least ε known at which every mechanism with this budget is (ε, δ)-DP."""
        from privreg.privacy.zcdp import to_approximate_tight

        failure = require_number("delta", delta, above=0, below=1)
        return inf if self.rho == inf else float(to_approximate_tight(self.rho, delta=failure))

    def share(self, fraction: float) -> Budget:
        """A part of the budget, `fraction` in [1e-100, 1] of ρ."""
        return Budget(
            self.rho * require_number("fraction", fraction, least=1e-100, most=1), self.neighbours
        )

    def __add__(self, other: Budget) -> Budget:
        """Budget of releasing both, each may depend on the other's output; one relation only."""
        if not isinstance(other, Budget):
            return NotImplemented
        if other.neighbours is not self.neighbours:
            raise ValueError(
                f"neighbours must be {self.neighbours.value!r} in both budgets, "
                f"got {other.neighbours.value!r}"
            )
        return Budget(self.rho + other.rho, self.neighbours)
