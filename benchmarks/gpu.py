"""Time of fits on a GPU: against the floor, against one core, and with streamed rows.

The floor is one Gram matrix and one eigendecomposition of the same rows by the array library
itself, on the same device. All methods run in one process, in turns; medians of five with
quartiles. Needs torch or CuPy and a GPU.
"""

import argparse
import csv
import importlib
import tempfile
import time
from pathlib import Path

import numpy as np
import sklearn
from threadpoolctl import threadpool_limits

from timing import draw, floor
from unflip import LPClassifier, NoiseModel
from unflip.data.streamed import StreamedRows, streamed
from unflip.features import KernelFeatures
from unflip.ridge.spectrum import decompose
from verdicts import verdict

REGS = np.logspace(-3, 3, 50)
NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1, pi_neg=0.5)
GIGABYTE = 1e9
COLUMNS = (
    *("library", "n", "p", "k", "dtype", "work"),
    *("milliseconds", "lower", "upper", "floors"),
)
GIVEN = "LPClassifier, noise rates given"
DEFAULT = "LPClassifier, noise rates estimated"
#: Largest ratio to the floor, by (rows, features, classes, dtype) and method.
LIMITS = {
    (50_000, 768, 10, "float32"): {GIVEN: 12, DEFAULT: 24},
    (20_000, 4096, 2, "float32"): {GIVEN: 3, DEFAULT: 5},
    (1_000_000, 1000, 2, "float64"): {GIVEN: 2.6},
}


def noise_of(k):
    """Return unequal noise rates for two classes, or 30% uniform noise for more."""
    return NOISE if k == 2 else NoiseModel(0.7 * np.eye(k) + 0.3 / k, np.full(k, 1 / k))


class Library:
    """An array library with a GPU."""

    def __init__(self, name):
        self.name = name
        self.xp = importlib.import_module(name)

    def empty(self):
        """Return an empty array on the device."""
        return self.xp.empty(0, device="cuda") if self.name == "torch" else self.xp.empty(0)

    def rows(self, n, p, dtype="float64", k=2):
        """Draw rows on the device, and noisy labels of classes with different means."""
        kind = getattr(self.xp, dtype)
        y = np.random.default_rng(0).integers(k, size=n)
        observed = self.from_host(noise_of(k).flip(y, random_state=0))
        if self.name == "torch":
            self.xp.manual_seed(0)
            X = self.xp.randn(n, p, dtype=kind, device="cuda")
        else:
            X = self.xp.random.default_rng(0).standard_normal((n, p), dtype=kind)
        X[:, :k] += 2 * self.from_host(np.eye(k, dtype=dtype)[y])
        # Unequal variances: real data are not isotropic either.
        X *= self.from_host(np.logspace(0, -1, p, dtype=dtype))
        return X, observed

    def to_host(self, array):
        """Copy an array to the host."""
        return array.cpu().numpy() if self.name == "torch" else array.get()

    def from_host(self, array):
        """Copy an array to the device."""
        return (
            self.xp.as_tensor(array, device="cuda")
            if self.name == "torch"
            else self.xp.asarray(array)
        )

    def wait(self):
        """Wait until the device is idle."""
        self.xp.cuda.synchronize() if self.name == "torch" else self.xp.cuda.Device().synchronize()

    def free(self):
        """Free cached device memory."""
        if self.name == "torch":
            self.xp.cuda.empty_cache()
        else:
            self.xp.get_default_memory_pool().free_all_blocks()

    def floor(self, X):
        """Compute one Gram matrix and its eigendecomposition."""
        self.xp.linalg.eigh(X.T @ X)


def in_turns(library, functions, n_repeats=5):
    """Time the functions in turns, after two warm-ups; return ms, (repeats, functions)."""
    seconds = np.empty((n_repeats + 2, len(functions)))
    for i in range(n_repeats + 2):
        for j, function in enumerate(functions):
            library.wait()
            start = time.perf_counter()
            function()
            library.wait()
            seconds[i, j] = time.perf_counter() - start
    return 1e3 * seconds[2:]


def summary(name, values, base):
    """Print and return the quartiles of the times, and their ratio to the floor."""
    low, middle, high = np.percentile(values, [25, 50, 75])
    print(
        f"    {name:44} {middle:9.1f} ms ({low:.1f} to {high:.1f}) {middle / base:7.2f} floors",
        flush=True,
    )
    return name, middle, low, high, middle / base


def of_size(library, n, p, dtype="float64", k=2):
    """Time fits of one size on the device, and check the limits."""
    print(
        f"{library.name} {library.xp.__version__}, {n} × {p}, {k} classes, {dtype} on the device",
        flush=True,
    )
    X, y = library.rows(n, p, dtype, k)
    functions = {"floor: Gram matrix and eigendecomposition": lambda: library.floor(X)}
    if k == 2:
        targets = 2.0 * y - 1
        shares = library.xp.stack([1.0 - y, 1.0 * y], axis=1)
        functions |= {
            "50 values of reg, exact leave-one-out": lambda: (
                decompose(X, shares=shares).leave_one_out(targets, REGS).scores
            )
        }
    functions |= {
        GIVEN: lambda: LPClassifier(noise_of(k)).fit(X, y),
        DEFAULT: lambda: LPClassifier().fit(X, y),
    }
    times = in_turns(library, list(functions.values()))
    base = float(np.median(times[:, 0]))
    lines = [
        (library.name, n, p, k, dtype, *summary(name, times[:, i], base))
        for i, name in enumerate(functions)
    ]
    for line in lines:
        limit = LIMITS.get((n, p, k, dtype), {}).get(line[5])
        if limit is not None:
            verdict(line[-1] <= limit, f"{line[5]} ≤ {limit} floors", f"{line[-1]:.2f}")
    return lines


def against_core(library, n, p):
    """Compare results and times with one core of the host."""
    X, y = draw(n, p)
    X[:, 0] += y
    y = NOISE.flip(y, random_state=0)
    on_device = library.from_host(X)
    labels = library.from_host(y)
    targets = 2.0 * y - 1
    device_targets = library.from_host(targets)

    def core():
        return decompose(X).leave_one_out(targets, REGS).scores

    def device():
        return decompose(on_device).leave_one_out(device_targets, REGS).scores

    with threadpool_limits(1):
        device()
        library.wait()
        seconds = []
        for function in (device, core, lambda: floor(X)):
            start = time.perf_counter()
            result = function()
            library.wait()
            seconds.append(time.perf_counter() - start)
            if function is device:
                scores = library.to_host(result)
            elif function is core:
                error = np.abs(scores - result).max() / result.std()
        fit_device = LPClassifier(NOISE).fit(on_device, labels)
        fit_core = LPClassifier(NOISE).fit(X, y)
    print(
        f"{n} × {p}: leave-one-out, 50 values of reg: {seconds[1]:.2f} s on one core (floor "
        f"{seconds[2]:.2f} s), {1e3 * seconds[0]:.1f} ms on the device, "
        f"{seconds[1] / seconds[0]:.0f} times as fast; largest difference of a score {error:.1e} "
        "of their standard deviation",
        flush=True,
    )
    coef = library.to_host(fit_device.coef_)
    error = np.abs(coef - fit_core.coef_).max() / np.abs(fit_core.coef_).max()
    print(
        f"    LPClassifier: largest difference of a coefficient {error:.1e} of the largest",
        flush=True,
    )


def with_kernels(library, n, p, n_components):
    """Compare kernel features, and fits with them, with one core of the host."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = NOISE.flip((np.abs(X[:, :4]).sum(axis=1) > 3).astype(int), random_state=0)
    on_device = library.from_host(X)
    labels = library.from_host(y)
    features = KernelFeatures("matern", n_components=n_components)
    mapped = features.fit_transform(on_device)
    functions = {
        "floor: Gram matrix and eigendecomposition": lambda: library.floor(mapped),
        "kernel features": lambda: features.fit_transform(on_device),
        "LPClassifier, matern": lambda: LPClassifier(features=features).fit(on_device, labels),
        "LPClassifier, auto": lambda: LPClassifier(features="auto").fit(on_device, labels),
    }
    print(f"{n} × {p}, {n_components} landmarks, float64 on the device", flush=True)
    times = in_turns(library, list(functions.values()))
    base = float(np.median(times[:, 0]))
    lines = [
        (library.name, n, n_components, 2, "float64", *summary(name, times[:, i], base))
        for i, name in enumerate(functions)
    ]
    with threadpool_limits(1):
        start = time.perf_counter()
        fit_core = LPClassifier(features=features).fit(X[: n // 10], y[: n // 10])
        seconds = time.perf_counter() - start
    fit_device = LPClassifier(features=features).fit(on_device[: n // 10], labels[: n // 10])
    proba = library.to_host(fit_device.predict_proba(on_device[: n // 10]))
    error = np.abs(proba - fit_core.predict_proba(X[: n // 10])).max()
    print(
        f"    a tenth of the rows on one core: {seconds:.2f} s; largest difference of a "
        f"probability {error:.1e}",
        flush=True,
    )
    return lines


def through_device(library, gigabytes, p, folder):
    """Stream a single-precision file through the device: copies, leave-one-out, a full fit."""
    path = Path(folder) / "unflip-streamed-rows.f32"
    n = int(gigabytes * GIGABYTE / 4 / p)
    try:
        labels = write_rows(library, path, n, p)
        rows = np.memmap(path, dtype=np.float32, mode="r", shape=(n, p))
        print(
            f"{n} × {p} float32, {rows.nbytes / GIGABYTE:.1f} GB, from a file in the host's page "
            "cache",
            flush=True,
        )
        stream(library, rows, labels)
    finally:
        path.unlink(missing_ok=True)


def write_rows(library, path, n, p):
    """Write the same rows repeatedly, slightly shifted, to a file; return their labels."""
    block, labels = (library.to_host(part) for part in library.rows(100_000, p, "float32"))
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        for start in range(0, n, len(block)):
            moved = block + 0.01 * rng.standard_normal(p, dtype=np.float32)
            moved[: n - start].tofile(file)
    return np.resize(labels, n)


def stream(library, rows, labels):
    """Time copies of the rows, and fits with different numbers of passes."""
    like = library.empty()
    n, p = rows.shape
    height = StreamedRows.block_values // p
    parts = [slice(start, min(start + height, n)) for start in range(0, n, height)]
    y = library.from_host(labels)
    targets = 2.0 * y - 1
    shares = library.xp.stack([1.0 - y, 1.0 * y], axis=1)
    held = streamed(rows, like)

    def copies():
        for part in parts:
            held[part, :]

    def plain_copies():
        for part in parts:
            library.from_host(np.array(rows[part]))

    def sums():
        return decompose(streamed(rows, like), shares=shares)

    work = {
        "copies alone": copies,
        "one pass: Gram matrix, eigendecomposition": sums,
        "two passes: leave-one-out, 5 values of reg": lambda: (
            sums().leave_one_out(targets, REGS[::10]).scores
        ),
        GIVEN: lambda: LPClassifier(NOISE).fit(streamed(rows, like), y),
        "plain copies by the array library, one by one": plain_copies,
    }
    for name, function in work.items():
        seconds = in_turns(library, [function], 1 if function is plain_copies else 3)[:, 0] / 1e3
        middle = np.median(seconds)
        rate = rows.nbytes / GIGABYTE / middle
        print(
            f"    {name:50} {middle:6.2f} s ({seconds.min():.2f} to {seconds.max():.2f}), "
            f"{rate:5.1f} GB/s",
            flush=True,
        )


def main():
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--arrays", default="torch", choices=["torch", "cupy"], help="array library"
    )
    parser.add_argument(
        "--rows",
        type=int,
        nargs="*",
        default=[100_000, 1_000_000],
        help="numbers of rows, with 1000 features",
    )
    parser.add_argument(
        "--gigabytes", type=float, default=20.0, help="size of the streamed file; 0 skips this part"
    )
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where the file is")
    parser.add_argument("--out", type=Path, default=Path("results/gpu.csv"), help="CSV file")
    options = parser.parse_args()
    library = Library(options.arrays)
    lines = []
    with sklearn.config_context(array_api_dispatch=True):
        shapes = [(n, 1000, "float64", 2) for n in options.rows]
        shapes += [(n, p, dtype, k) for n, p, k, dtype in LIMITS if n not in options.rows]
        for n, p, dtype, k in shapes:
            lines += of_size(library, n, p, dtype, k)
            library.free()
        against_core(library, 100_000, 1000)
        lines += with_kernels(library, 100_000, 50, 1000)
        if options.gigabytes:
            through_device(library, options.gigabytes, 1000, options.folder)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(lines)


if __name__ == "__main__":
    main()
