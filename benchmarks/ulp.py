"""The largest error of each vectorised math function, per CPU capability, in units in the last place (ULP).

    python benchmarks/ulp.py [--full] [--capability avx2] [function ...]

float32 is compared on every 251st bit pattern (all of them with --full) with the C library in double precision, float64
on a sample that is dense in exponents with the C library in long double, and what the C library lacks with mpmath. The
error of a result is its distance from the exact one over the spacing of floats there; a NaN, infinity or zero that
should not be one, or the other way round, counts as inf. Capabilities that this CPU does not have are left out. "own"
is AVX2 with float's own functions where the others call libmvec, which other C libraries and OpenCL's CPU devices take.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FLAGS = {
    "baseline": ["-msse2"],
    "avx2": ["-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2"],
    "own": ["-mavx2", "-mfma", "-DTP_NO_LIBMVEC"],
    "avx512": ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma", "-mprefer-vector-width=512"],
}
FLAGS["avx512"] += ["-DTP_CAPABILITY=avx512", str(ROOT / "csrc/cpu/vector_math.c")]

# Functions that the C library has in long double; `{0}` stands for the suffix.
LIBM = (
    "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc"
).split()
FORMULAS = {
    "sigmoid": "1 / (1 + exp{0}(-x))",
    "rsqrt": "1 / sqrt{0}(x)",
    "lgamma": "lgamma{0}(x)",
}
MPMATH = ("digamma", "trigamma", "erfinv", "ndtri", "i0", "i0e", "i1", "i1e", "log_ndtr")

SOURCE = """
#define _GNU_SOURCE
#include "tensorpy/math.h"

static void run_f32(const float *x, float *y) { for (int i = 0; i < 4096; i++) y[i] = tp_%(name)s_f32(x[i]); }
static void run_f64(const double *x, double *y) { for (int i = 0; i < 4096; i++) y[i] = tp_%(name)s_f64(x[i]); }
void %(name)s_f32(const float *x, float *y) { run_f32(x, y); }
void %(name)s_f64(const double *x, double *y) { run_f64(x, y); }

static long double excess(long double got, long double want, int bits, int least, long double largest) {
    if (want != want || got != got) return want != want && got != got ? 0 : INFINITY;
    if (fabsl(want) > largest) return isinf(got) && (got > 0) == (want > 0) ? 0 : 1;
    if (isinf(got)) return 1;
    if (got == want) return 0;
    int e = least;
    if (want != 0) frexpl(want, &e);
    if (e < least) e = least;
    return fabsl(got - want) / ldexpl(1.0L, e - bits);
}

double %(name)s_worst_f32(unsigned step, unsigned *at) {
    static float in[4096], out[4096];
    double worst = 0;
    for (unsigned long long start = 0; start < 1ull << 32; start += 4096ull * step) {
        for (unsigned i = 0; i < 4096; i++) in[i] = TP_FROM_BITS_f32((unsigned)(start + (unsigned long long)i * step));
        run_f32(in, out);
        for (unsigned i = 0; i < 4096; i++) {
            const double x = in[i], want = %(double)s;
            const double error = excess(out[i], want, 24, -125, 0x1.ffffffp127);
            if (error > worst) worst = error, *at = TP_BITS_f32(in[i]);
        }
    }
    return worst;
}

double %(name)s_worst_f64(unsigned blocks, unsigned long long *at) {
    static double in[4096], out[4096];
    double worst = 0;
    unsigned long long state = 88172645463325252ull;
    for (unsigned b = 0; b < blocks; b++) {
        for (unsigned i = 0; i < 4096; i++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            /* all exponents; in every other block those of the numbers that matter */
            unsigned long long bits = state;
            if (b & 1) bits = (bits & 0x800fffffffffffffull) | ((1023 - 40 + (state >> 52) %% 52) << 52);
            in[i] = TP_FROM_BITS_f64(bits);
        }
        run_f64(in, out);
        for (unsigned i = 0; i < 4096; i++) {
            const long double x = in[i], want = %(long)s;
            const double error = excess(out[i], want, 53, -1021, 0x1.fffffffffffff8p1023L);
            if (error > worst) worst = error, *at = TP_BITS_f64(in[i]);
        }
    }
    return worst;
}
"""


def build(folder: Path, name: str, capability: str) -> ctypes.CDLL:
    formula = FORMULAS.get(name, f"{name}{{0}}(x)" if name in LIBM else "x")
    source = folder / f"{name}.c"
    source.write_text(SOURCE % {"name": name, "double": formula.format(""), "long": formula.format("l")})
    target = folder / f"{name}_{capability}.so"
    command = [shutil.which("gcc") or "cc", "-std=gnu11", "-O3", "-shared", "-fPIC", "-w"]
    command += ["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", *FLAGS[capability]]
    command += [f"-I{ROOT}/csrc/include", str(source), "-o", str(target), "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(target))


def reference(name: str) -> Callable[[Any], Any]:
    import mpmath as mp  # type: ignore[import-untyped]

    mp.mp.dps = 40
    table: dict[str, Callable[[Any], Any]] = {
        "digamma": mp.digamma,
        "trigamma": lambda x: mp.polygamma(1, x),
        "erfinv": mp.erfinv,
        "ndtri": lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1),
        "i0": lambda x: mp.besseli(0, x),
        "i1": lambda x: mp.besseli(1, x),
        "i0e": lambda x: mp.exp(-abs(x)) * mp.besseli(0, x),
        "i1e": lambda x: mp.exp(-abs(x)) * mp.besseli(1, x),
        "log_ndtr": lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2),
    }
    return table[name]


DOMAIN = {"erfinv": (-1.0, 1.0), "ndtri": (0.0, 1.0), "log_ndtr": (-30.0, 10.0), "digamma": (0.01, 50.0)}


def sampled(library: ctypes.CDLL, name: str, double: bool) -> float:
    """With mpmath, on a small sample."""
    exact = reference(name)
    low, high = DOMAIN.get(name, (-20.0, 50.0) if name.startswith("i") else (0.01, 50.0))
    kind = ctypes.c_double if double else ctypes.c_float
    xs, ys = (kind * 4096)(), (kind * 4096)()
    random.seed(1)
    for i in range(4096):
        xs[i] = random.uniform(low, high)
    getattr(library, f"{name}_f64" if double else f"{name}_f32")(xs, ys)
    worst = 0.0
    for i in range(0, 4096, 4):
        want = exact(xs[i])
        spacing = math.ulp(float(want)) if double else 2.0 ** (math.frexp(float(want))[1] - 24)
        worst = max(worst, float(abs(want - ys[i]) / spacing)) if want != 0 else worst
    return worst


def supported(capability: str) -> bool:
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return capability == "baseline" or {"avx512": " avx512dq "}.get(capability, " avx2 ") in flags


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", default=[*LIBM, *FORMULAS, *MPMATH])
    parser.add_argument("--full", action="store_true", help="every float32")
    parser.add_argument("--capability", action="append", choices=list(FLAGS))
    options = parser.parse_args()
    print(f"{'function':10} {'capability':10} {'float32':>8} {'at':>14} {'float64':>8} {'at':>24}")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.functions:
            for capability in filter(supported, options.capability or FLAGS):
                library = build(Path(folder), name, capability)
                if name in MPMATH:
                    single, double = sampled(library, name, False), sampled(library, name, True)
                    print(
                        f"{name:10} {capability:10} {single:8.2f} {'(sample)':>14} {double:8.2f} {'(sample)':>24}",
                        flush=True,
                    )
                    continue
                at32, at64 = ctypes.c_uint32(), ctypes.c_uint64()
                worst32, worst64 = getattr(library, f"{name}_worst_f32"), getattr(library, f"{name}_worst_f64")
                worst32.restype = worst64.restype = ctypes.c_double
                single = worst32(1 if options.full else 251, ctypes.byref(at32))
                double = worst64(2048 if options.full else 256, ctypes.byref(at64))
                x32 = ctypes.c_float.from_buffer(at32).value
                x64 = ctypes.c_double.from_buffer(at64).value
                print(f"{name:10} {capability:10} {single:8.2f} {x32:14.7g} {double:8.2f} {x64:24.17g}", flush=True)


if __name__ == "__main__":
    main()
