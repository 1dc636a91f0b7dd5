"""The polynomials of csrc/include/tensorpy/math_bessel.inc: `python -m benchmarks.fit_bessel` prints coefficients.

A function is interpolated at the Chebyshev points of its interval with 60 digits, cut where the rest is below the last
bit of a double, and turned into powers of its variable, from the constant on. Needs mpmath.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as m

m.mp.dps = 60
FIRST_AIRY = 2 * m.mpf(2) ** 1.5 / 3  # zeta(2)
LAST_AIRY = m.mpf(16) / 3  # zeta(4)


def chebyshev(f: Callable[[Any], Any], a: Any, b: Any, n: int = 64) -> list[Any]:
    """The interpolant at n points, cut."""
    points = [m.cos(m.pi * (k + m.mpf(1) / 2) / n) for k in range(n)]
    values = [f((a + b) / 2 + (b - a) / 2 * t) for t in points]
    sums = (m.fsum(v * m.cos(j * m.acos(t)) for t, v in zip(points, values, strict=True)) for j in range(n))
    c = [s * (1 if j == 0 else 2) / n for j, s in enumerate(sums)]
    least = min(abs(v) for v in values)
    return c[: max(k for k in range(n) if abs(c[k]) > least * m.mpf(2) ** -57) + 1]


def powers(c: list[Any], scale: Any, offset: Any) -> list[Any]:
    """The sum of c[k] T_k(offset + scale s) as powers of s."""
    before, now = [m.mpf(1)], [m.mpf(offset), m.mpf(scale)]
    result = [c[0]] + [m.mpf(0)] * (len(c) - 1)
    for k in range(1, len(c)):
        result = [r + c[k] * (now[i] if i < len(now) else 0) for i, r in enumerate(result)]
        after = [2 * offset * v for v in now] + [m.mpf(0)]
        after = [v + (2 * scale * now[i - 1] if i else 0) for i, v in enumerate(after)]
        before, now = now, [v - (before[i] if i < len(before) else 0) for i, v in enumerate(after)]
    return result


def hankel(order: int, first: bool) -> Callable[[Any], Any]:
    """P, or x Q, by y = 64 / x^2."""

    def f(y: Any) -> Any:
        x = 8 / m.sqrt(y)
        c, s = m.cos(x - order * m.pi / 2 - m.pi / 4), m.sin(x - order * m.pi / 2 - m.pi / 4)
        j, k = m.besselj(order, x), m.bessely(order, x)
        return m.sqrt(m.pi * x / 2) * (j * c + k * s if first else (k * c - j * s) * x)

    return f


def airy_wave(first: bool) -> Callable[[Any], Any]:
    """P, or zeta Q, by y = (zeta(4) / zeta)^2."""

    def f(y: Any) -> Any:
        zeta = LAST_AIRY / m.sqrt(y)
        x = (3 * zeta / 2) ** (m.mpf(2) / 3)
        c, s, a, b = m.cos(zeta - m.pi / 4), m.sin(zeta - m.pi / 4), m.airyai(-x), m.airybi(-x)
        return m.sqrt(m.pi * m.sqrt(x)) * (a * c - b * s if first else (a * s + b * c) * zeta)

    return f


def airy_right(w: Any) -> Any:
    """exp(zeta) x^(1/4) Ai(x) by 1 / zeta."""
    x = (3 / w / 2) ** (m.mpf(2) / 3)
    return m.exp(1 / w) * m.sqrt(m.sqrt(x)) * m.airyai(x)


def without_zeros(order: int) -> Callable[[Any], Any]:
    a, b = (m.besseljzero(order, k) ** 2 for k in (1, 2))
    return lambda u: m.besselj(order, m.sqrt(u)) / (m.sqrt(u) ** order * (u - a) * (u - b))


def log_free(order: int, u: Any) -> Any:
    """What Y has beside its logarithm, and for order 1 beside its pole, over x."""
    x = m.sqrt(u)
    rest = m.bessely(order, x) - 2 / m.pi * m.log(x) * m.besselj(order, x)
    return (rest + 2 / (m.pi * x)) / x if order else rest


def k_near(order: int, u: Any) -> Any:
    x = m.sqrt(u)
    return x**order * (m.besselk(order, x) + (-1) ** order * m.log(x / 2) * m.besseli(order, x))


def scaled(function: Callable[..., Any], order: int, sign: int) -> Callable[[Any], Any]:
    """exp(-+x) sqrt(x) I or K, by 1 / x."""
    return lambda v: m.exp(sign / v) * m.sqrt(1 / v) * function(order, 1 / v)


# name, function, interval; and how the variable of the interval comes from that of the polynomial: "t" is scaled to
# [-1, 1], "u" is itself, "s" is what it lacks to the end
FITS: list[tuple[str, Callable[[Any], Any], Any, Any, str]] = [
    *((f"bessel_j{n}_near", without_zeros(n), 0, 64, "s") for n in (0, 1)),
    *((f"bessel_y{n}_near", lambda u, n=n: log_free(n, u), 0, 64, "t") for n in (0, 1)),
    *((f"bessel_{'p' if p else 'q'}{n}", hankel(n, p), 0, 1, "t") for n in (0, 1) for p in (True, False)),
    *((f"bessel_i{n}_near", lambda u, n=n: m.besseli(n, m.sqrt(u)) / m.sqrt(u) ** n, 0, 64, "u") for n in (0, 1)),
    *((f"bessel_i{n}_far", scaled(m.besseli, n, -1), 0, m.mpf(1) / 8, "t") for n in (0, 1)),
    *((f"bessel_i{n}_below_2", lambda u, n=n: m.besseli(n, m.sqrt(u)) / m.sqrt(u) ** n, 0, 4, "u") for n in (0, 1)),
    *((f"bessel_k{n}_near", lambda u, n=n: k_near(n, u), 0, 4, "u") for n in (0, 1)),
    *((f"bessel_k{n}_far", scaled(m.besselk, n, 1), 0, m.mpf(1) / 2, "t") for n in (0, 1)),
    ("airy_right", airy_right, 0, 1 / FIRST_AIRY, "t"),
    ("airy_p", airy_wave(True), 0, 1, "t"),
    ("airy_q", airy_wave(False), 0, 1, "t"),
    ("airy_below", m.airyai, -4, -1, "t"),
    ("airy_above", m.airyai, -1, 2, "t"),
]


def main() -> None:
    for name, f, a, b, variable in FITS:
        a, b = m.mpf(a), m.mpf(b)
        c = chebyshev(f, a, b)
        half = {"t": (1, 0), "u": (2 / (b - a), -(a + b) / (b - a)), "s": (-2 / (b - a), (b - a) / (b - a))}[variable]
        print(name, *(m.nstr(v, 20) for v in powers(c, *half)), sep="\n    ")


if __name__ == "__main__":
    main()
