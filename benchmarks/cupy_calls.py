"""Which functions of CuPy ``cupy_waits.py`` calls, and with what: values by the name of a parameter, and calls written by hand."""

from __future__ import annotations

from typing import Any

MODULES = (
    "cupy", "cupy.linalg", "cupy.fft", "cupy.random", "cupy.polynomial.polynomial", "cupy.polynomial.polyutils", "cupy.lib.stride_tricks",
    "cupyx", "cupyx.linalg", "cupyx.scipy", "cupyx.scipy.fft", "cupyx.scipy.fftpack", "cupyx.scipy.interpolate", "cupyx.scipy.linalg",
    "cupyx.scipy.ndimage", "cupyx.scipy.signal", "cupyx.scipy.signal.windows", "cupyx.scipy.sparse", "cupyx.scipy.sparse.csgraph",
    "cupyx.scipy.sparse.linalg", "cupyx.scipy.spatial", "cupyx.scipy.spatial.distance", "cupyx.scipy.special", "cupyx.scipy.stats",
)  # fmt: skip
OBJECTS = {
    "cupy.ndarray": "x",
    "cupy.random.RandomState": "state",
    "cupy.random.Generator": "rng",
    "cupyx.scipy.sparse.csr_matrix": "csr",
    "cupyx.scipy.sparse.csc_matrix": "csc",
    "cupyx.scipy.sparse.coo_matrix": "coo",
    "cupyx.scipy.sparse.dia_matrix": "dia",
    "cupy.poly1d": "poly",
}
"""Types whose methods are measured, and the name of a value of each."""
OPERATORS = {
    f"__{name}__"
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "neg", "abs", "invert", "and", "or", "xor", "lshift"),
        *("eq", "ne", "lt", "le", "gt", "ge", "iadd", "isub", "imul", "itruediv", "copy", "deepcopy"),
        *("bool", "int", "float", "complex", "index", "len", "iter", "str", "repr", "reduce", "radd", "rsub", "rmul", "rtruediv", "divmod"),
    )
}
LEFT = {
    "cupy.show_config", "cupy.ndarray.dump", "cupy.ndarray.tofile", "cupy.save", "cupy.savez", "cupy.savez_compressed", "cupy.savetxt",
    "cupy.load", "cupy.loadtxt", "cupy.genfromtxt", "cupy.fromfile", "cupy.memoize", "cupy.clear_memo", "cupy.RawKernel", "cupy.RawModule",
    "cupy.ElementwiseKernel", "cupy.ReductionKernel", "cupy.vectorize", "cupy.fuse", "cupy.get_default_memory_pool", "cupy.ufunc",
    "cupy.get_default_pinned_memory_pool", "cupy.disable_experimental_feature_warning", "cupy.is_available", "cupy.errstate", "cupy.geterr",
    "cupy.seterr", "cupy.asnumpy_chunked", "cupy.get_array_module", "cupyx.get_array_module", "cupyx.scipy.get_array_module", "cupyx.jit",
    "cupy.printoptions", "cupy.set_printoptions", "cupy.get_printoptions", "cupy.format_float_positional", "cupy.format_float_scientific",
    "cupy.random.RandomState.seed", "cupy.ndarray.__iter__", "cupyx.DistributedArray", "cupyx.runtime", "cupyx.time", "cupyx.optimizing",
}  # fmt: skip
"""Files, printing, settings, and what makes kernels."""
LEFT_BELOW = ("cupy.random.BitGenerator", "cupy.random.MRG32k3a", "cupy.random.Philox", "cupy.random.XORWOW", "cupy.cuda")
MOST_PLAIN, MOST_CALLS = 4, 10
"""Calls of a function that succeed: without options, and in all. Calls by hand come on top."""

PROFILES = ("x", "v", "i", "b", "c", "spd", "csr", "img", "h64")
"""Names of arrays that take the places of parameters that are arrays: a matrix, a vector, integers, truth values, complex numbers, …"""

SAME = {
    "shape": "(8, 8)", "newshape": "(-1,)", "dtype": "cupy.float32", "axis": "0", "axis1": "0", "axis2": "1", "axes": "(0, 1)", "n": "4",
    "N": "4", "M": "16", "Nx": "16", "k": "1", "m": "3", "num": "8", "repeats": "2", "reps": "2", "order": "1", "start": "0", "stop": "10",
    "step": "1", "size": "(8,)", "source": "0", "destination": "1", "indices_or_sections": "2", "pad_width": "1", "shift": "1",
    "sigma": "1.0", "angle": "30.0", "zoom": "2.0", "matrix": "eye2", "indices": "i", "ind": "i", "index": "i", "idx": "i",
    "condition": "x > 0.5", "condlist": "[x > 0.5, x > 0.1]", "choicelist": "[x, x]", "choices": "[x, x, x, x]", "mask": "x > 0.5",
    "q": "0.5", "bins": "10", "deg": "2", "degree": "2", "rcond": "1e-6", "a_min": "0.1", "a_max": "0.9", "min": "0.1", "max": "0.9",
    "low": "0", "high": "10", "p": "0.5", "lam": "2.0", "scale": "1.0", "loc": "0.0", "df": "3.0", "dfnum": "3.0", "dfden": "4.0",
    "kappa": "1.0", "mu": "0.5", "alpha": "1.5", "beta": "1.5", "left": "0.0", "mode": "'constant'", "right": "1.0", "ngood": "5",
    "nbad": "5", "nsample": "5", "nonc": "1.0", "mean": "v8", "cov": "spd8", "pvals": "[0.5, 0.5]", "seed": "1", "footprint": "foot",
    "structure": "foot", "weights": "w", "kernel_size": "3", "func": "cupy.sum", "function": "cupy.sum", "func1d": "cupy.sum",
    "arrays": "[x, x]", "tup": "(x, x)", "seq": "(x, x)", "arys": "x", "blocks": "[[csr, csr], [csr, csr]]", "mats": "[csr, csr]",
    "subscripts": "'ij,jk->ik'", "operands": "x", "bit_width": "4", "wavelet": "8", "window": "'hann'", "Nperseg": "16", "fs": "1.0",
    "cutoff": "0.3", "numtaps": "11", "Wn": "0.3", "rp": "1.0", "rs": "40.0", "ftype": "'lowpass'", "btype": "'low'", "bands": "[0, 0.2, 0.3, 0.5]",
    "desired": "[1, 0]", "freq": "[0, 0.5, 1]", "gain": "[1, 1, 0]", "up": "2", "down": "1", "width": "0.5", "std": "2.0", "tau": "2.0",
    "window_length": "5", "polyorder": "2", "theta": "0.5", "lower": "True", "kth": "3", "dim": "4", "diagonals": "[v8]", "offsets": "[0]",
    "format": "'csr'", "metric": "'euclidean'", "xi": "v", "xp": "grid", "fp": "grid", "points": "grid", "values": "grid", "t": "grid",
    "obj": "1", "copies": "2", "element": "x", "test_elements": "v", "ar1": "i", "ar2": "i", "side": "'left'", "multi_index": "(i, i)",
    "dims": "(8, 8)", "slices": "i", "x_min": "0.0", "vals": "x[0]", "arr1": "i", "ufunc": "cupy.add", "fill_value": "1.0", "dst": "x",
    "src": "y", "block_size": "16", "buffer": "bytes(64)", "string": "b'12345678'", "iterable": "range(4)", "ndim": "2", "nrows": "8",
}  # fmt: skip
"""The value of a parameter by its name, where it is no array."""
OPTIONS = {
    "axis": "0", "keepdims": "True", "n": "16", "k": "1", "full": "True", "return_index": "True", "return_inverse": "True", "ddof": "1",
    "return_counts": "True", "equal_nan": "True", "size": "(16,)", "weights": "w", "rowvar": "False", "mode": "'full'", "where": "x > 0.5",
    "compute_uv": "False", "full_matrices": "False", "dtype": "cupy.float64", "order": "2", "ord": "1", "minlength": "8", "labels": "lab",
    "check_finite": "True", "overwrite_a": "True", "assume_unique": "True", "p": "pv", "replace": "False", "bins": "bins", "range": "(0.0, 1.0)",
    "density": "True", "tol": "1e-6", "return_residuals": "True", "out": None, "side": "'right'", "sorter": None, "copy": "True",
}  # fmt: skip
"""What an option is given that has a default."""

BY_HAND: dict[str, tuple[str, ...]] = {
    "cupy.ndarray.__getitem__": (
        "x[0]", "x[1:3]", "x[0, 0]", "x[x > 0.5]", "x[i]", "x[[0, 2]]", "x[hi]", "x[hb]", "x[cupy.array(1)]", "x[..., None]", "v[v > 0.5]", "x[i, i]",
        "x[b]",
    ),
    "cupy.ndarray.__setitem__": (
        "x.__setitem__(0, 1.0)", "x.__setitem__(slice(0, 2), y[:2])", "x.__setitem__(x > 0.5, 0.0)", "x.__setitem__(i, 0.0)",
        "x.__setitem__([0, 2], 1.0)", "x.__setitem__(0, h[0])", "x.__setitem__(slice(None), h)", "x.__setitem__(x > 0.5, y[x > 0.5])",
        "x.__setitem__(hb, 1.0)",
    ),
    "cupy.ndarray.__contains__": ("0.5 in v",),
    "cupy.ndarray.__iter__": ("list(v)",),
    "cupy.ndarray.__format__": ("format(n, '.3f')", "f'{n}'"),
    "cupy.ndarray.__bool__": ("bool(n)",), "cupy.ndarray.__int__": ("int(n)",), "cupy.ndarray.__float__": ("float(n)",),
    "cupy.ndarray.__complex__": ("complex(n)",), "cupy.ndarray.__index__": ("[0, 1, 2][cupy.array(1)]",),
    "cupy.ndarray.item": ("n.item()", "x.item(3)"),
    "cupy.ndarray.get": ("x.get()", "x.get(blocking=False)", "x.get(out=h)", "x.get(out=pin)", "x.get(out=pin, blocking=False)"),
    "cupy.ndarray.set": ("x.set(h)", "x.set(pin)"),
    "cupy.asnumpy": ("cupy.asnumpy(x)", "cupy.asnumpy(x, blocking=False)", "cupy.asnumpy(x, out=pin)", "cupy.asnumpy(h)"),
    "cupy.asarray": ("cupy.asarray(h)", "cupy.asarray(pin)", "cupy.asarray(x)", "cupy.asarray([1.0, 2.0])", "cupy.asarray(2.0)", "cupy.asarray([n, n])"),
    "cupy.array": ("cupy.array(h)", "cupy.array(pin)", "cupy.array(x)", "cupy.array([1.0, 2.0])", "cupy.array([n, n])", "cupy.array(x, copy=True)"),
    "cupy.ndarray.take": ("x.take(i)", "x.take(3)", "x.take([0, 2], axis=0)"),
    "cupy.ndarray.choose": ("i.choose([v8, v8, v8, v8, v8, v8, v8, v8])",),
    "cupy.ndarray.compress": ("x.compress(b[0])", "x.compress([True, False], axis=0)"),
    "cupy.ndarray.put": ("x.put(i, 1.0)",), "cupy.ndarray.repeat": ("x.repeat(2)", "x.repeat([2] * 64, axis=0)"),
    "cupy.ndarray.astype": ("x.astype('f2')", "x.astype('f4', copy=False)", "c.astype('c16')"), "cupy.ndarray.view": ("x.view('i4')",),
    "cupy.ndarray.reshape": ("x.reshape(-1)", "x.T.reshape(-1)"), "cupy.ndarray.clip": ("x.clip(0.1, 0.9)", "x.clip(n, None)"),
    "cupy.ndarray.fill": ("x.fill(0)", "x.fill(n)"), "cupy.ndarray.sort": ("x.sort()", "x.sort(axis=0)"),
    "cupy.ndarray.searchsorted": ("grid.searchsorted(v)",), "cupy.ndarray.partition": ("x.partition(3)",),
    "cupy.repeat": ("cupy.repeat(x, 2)", "cupy.repeat(v, [2] * 64)"),
    "cupy.where": ("cupy.where(x > 0.5, x, y)", "cupy.where(x > 0.5)"),
    "cupy.interp": ("cupy.interp(v, grid, grid)",), "cupy.searchsorted": ("cupy.searchsorted(grid, v)",), "cupy.digitize": ("cupy.digitize(v, bins)",),
    "cupy.histogram": ("cupy.histogram(v)", "cupy.histogram(v, bins=bins)", "cupy.histogram(v, bins=10, range=(0.0, 1.0))"),
    "cupy.histogram2d": ("cupy.histogram2d(v, v)", "cupy.histogram2d(v, v, bins=[bins, bins])"),
    "cupy.histogramdd": ("cupy.histogramdd(x[:, :2])", "cupy.histogramdd((v, v), bins=[bins, bins])"),
    "cupy.bincount": ("cupy.bincount(i)", "cupy.bincount(i, minlength=64)"),
    "cupy.einsum": ("cupy.einsum('ij,jk->ik', x, y)", "cupy.einsum('ii', x)", "cupy.einsum('ij->j', x)"),
    "cupy.tensordot": ("cupy.tensordot(x, y, 1)",), "cupy.allclose": ("cupy.allclose(x, y)",), "cupy.array_equal": ("cupy.array_equal(x, y)",),
    "cupy.select": ("cupy.select([x > 0.5, x > 0.1], [x, y])", "cupy.select([x > 0.5], [x], 1.0)"),
    "cupy.put_along_axis": ("cupy.put_along_axis(x, i[None], 1.0, axis=1)",), "cupy.take_along_axis": ("cupy.take_along_axis(x, i[None], axis=1)",),
    "cupy.apply_along_axis": ("cupy.apply_along_axis(cupy.sum, 0, x)",), "cupy.linspace": ("cupy.linspace(0, 1, 8)", "cupy.linspace(n, 2.0, 8)"),
    "cupy.arange": ("cupy.arange(8)",), "cupy.full": ("cupy.full(8, 1.0)", "cupy.full(8, n)"), "cupy.copyto": ("cupy.copyto(x, y)", "cupy.copyto(x, h)", "cupy.copyto(x, 1.0)"),
    "cupy.place": ("cupy.place(x, x > 0.5, v)",), "cupy.putmask": ("cupy.putmask(x, x > 0.5, y)",), "cupy.piecewise": ("cupy.piecewise(x, [x > 0.5], [1.0, 0.0])",),
    "cupy.percentile": ("cupy.percentile(x, 50)", "cupy.percentile(x, [10, 90])", "cupy.percentile(x, v[:2], axis=0)", "cupy.percentile(x, 50, axis=0)"),
    "cupy.quantile": ("cupy.quantile(x, 0.5)", "cupy.quantile(x, [0.1, 0.9], axis=0)"), "cupy.pad": ("cupy.pad(x, 1)", "cupy.pad(x, 1, mode='reflect')"),
    "cupy.linalg.lstsq": ("cupy.linalg.lstsq(x, v, rcond=None)",), "cupy.linalg.matrix_power": ("cupy.linalg.matrix_power(x, 3)", "cupy.linalg.matrix_power(spd, -1)"),
    "cupy.linalg.multi_dot": ("cupy.linalg.multi_dot([x, x, x])",), "cupy.linalg.norm": (
        "cupy.linalg.norm(x)", "cupy.linalg.norm(x, axis=1)", "cupy.linalg.norm(x, ord=2)", "cupy.linalg.norm(x, 'nuc')", "cupy.linalg.norm(x, cupy.inf)",
    ),
    "cupy.random.choice": ("cupy.random.choice(8, 4)", "cupy.random.choice(8, 4, replace=False)", "cupy.random.choice(v, 4)", "cupy.random.choice(64, 4, p=pv)"),
    "cupy.random.multinomial": ("cupy.random.multinomial(10, [0.5, 0.5])",),
    "cupy.random.RandomState.choice": ("state.choice(8, 4)", "state.choice(64, 4, p=pv)"), "cupy.random.permutation": ("cupy.random.permutation(8)", "cupy.random.permutation(x)"),
    "cupy.random.multivariate_normal": ("cupy.random.multivariate_normal(v8, spd8, 4)", "cupy.random.multivariate_normal(v8, spd8, 4, method='cholesky')"),
    "cupyx.scatter_add": ("cupyx.scatter_add(x, i, 1.0)",), "cupyx.scatter_max": ("cupyx.scatter_max(x, i, 1.0)",), "cupyx.scatter_min": ("cupyx.scatter_min(x, i, 1.0)",),
    "cupyx.scipy.linalg.lu_solve": ("cupyx.scipy.linalg.lu_solve(lu, v)",), "cupyx.scipy.linalg.solve_triangular": ("cupyx.scipy.linalg.solve_triangular(spd, v)",),
    "cupyx.scipy.sparse.csr_matrix": (
        "cupyx.scipy.sparse.csr_matrix(x)", "cupyx.scipy.sparse.csr_matrix((csr.data, csr.indices, csr.indptr), shape=(64, 64))",
        "cupyx.scipy.sparse.csr_matrix((csr.data, csr.indices, csr.indptr))", "cupyx.scipy.sparse.csr_matrix(coo)", "cupyx.scipy.sparse.csr_matrix((8, 8))",
    ),
    "cupyx.scipy.sparse.coo_matrix": (
        "cupyx.scipy.sparse.coo_matrix(x)", "cupyx.scipy.sparse.coo_matrix((coo.data, (coo.row, coo.col)), shape=(64, 64))",
        "cupyx.scipy.sparse.coo_matrix((coo.data, (coo.row, coo.col)))", "cupyx.scipy.sparse.coo_matrix(csr)",
    ),
    "cupyx.scipy.sparse.csr_matrix.__getitem__": ("csr[0]", "csr[0, 0]", "csr[1:3]", "csr[i]", "csr[:, 1]"),
    "cupyx.scipy.sparse.csr_matrix.__matmul__": ("csr @ x", "csr @ v", "csr @ csr"), "cupyx.scipy.sparse.csr_matrix.dot": ("csr.dot(x)", "csr.dot(v)", "csr.dot(csr)"),
    "cupyx.scipy.sparse.csr_matrix.__add__": ("csr + csr", "csr + x"), "cupyx.scipy.sparse.csr_matrix.get": ("csr.get()",),
    "cupyx.scipy.sparse.linalg.cg": ("cupyx.scipy.sparse.linalg.cg(spcsr, w)", "cupyx.scipy.sparse.linalg.cg(spcsr, w, maxiter=2)"),
    "cupyx.scipy.sparse.linalg.gmres": ("cupyx.scipy.sparse.linalg.gmres(spcsr, w, maxiter=2)",),
    "cupyx.scipy.sparse.linalg.spsolve": ("cupyx.scipy.sparse.linalg.spsolve(spcsr, w)",), "cupyx.scipy.sparse.linalg.eigsh": ("cupyx.scipy.sparse.linalg.eigsh(spcsr, k=2)",),
    "cupyx.scipy.sparse.linalg.svds": ("cupyx.scipy.sparse.linalg.svds(spcsr, k=2)",), "cupyx.scipy.sparse.linalg.norm": ("cupyx.scipy.sparse.linalg.norm(csr)",),
    "cupyx.scipy.signal.firwin": ("cupyx.scipy.signal.firwin(11, 0.3)",), "cupyx.scipy.signal.butter": ("cupyx.scipy.signal.butter(4, 0.3)", "cupyx.scipy.signal.butter(4, 0.3, output='sos')"),
    "cupyx.scipy.signal.lfilter": ("cupyx.scipy.signal.lfilter(v8, w[:1], v)", "cupyx.scipy.signal.lfilter([1.0, 0.5], [1.0, 0.2], v)"),
    "cupyx.scipy.signal.filtfilt": ("cupyx.scipy.signal.filtfilt([1.0, 0.5], [1.0, 0.2], v)",), "cupyx.scipy.signal.resample": ("cupyx.scipy.signal.resample(v, 32)",),
    "cupyx.scipy.signal.sosfilt": ("cupyx.scipy.signal.sosfilt(sos, w)",), "cupyx.scipy.signal.resample_poly": ("cupyx.scipy.signal.resample_poly(v, 2, 1)",),
    "cupyx.scipy.signal.find_peaks": ("cupyx.scipy.signal.find_peaks(v)", "cupyx.scipy.signal.find_peaks(v, height=0.5)"),
    "cupyx.scipy.signal.convolve": ("cupyx.scipy.signal.convolve(v, v8)", "cupyx.scipy.signal.convolve(v, v8, method='direct')"),
    "cupyx.scipy.ndimage.label": ("cupyx.scipy.ndimage.label(b)", "cupyx.scipy.ndimage.label(b, structure=foot)"),
    "cupyx.scipy.ndimage.affine_transform": ("cupyx.scipy.ndimage.affine_transform(x, eye2)",), "cupyx.scipy.ndimage.zoom": ("cupyx.scipy.ndimage.zoom(x, 2)",),
    "cupyx.scipy.ndimage.map_coordinates": ("cupyx.scipy.ndimage.map_coordinates(x, cupy.stack([v, v]))",), "cupyx.scipy.ndimage.rotate": ("cupyx.scipy.ndimage.rotate(x, 30)",),
    "cupyx.scipy.ndimage.median_filter": ("cupyx.scipy.ndimage.median_filter(x, 3)",), "cupyx.scipy.ndimage.convolve": ("cupyx.scipy.ndimage.convolve(x, y[:3, :3])",),
    **{f"cupyx.scipy.ndimage.{one}": (f"cupyx.scipy.ndimage.{one}(x)", f"cupyx.scipy.ndimage.{one}(x, lab)", f"cupyx.scipy.ndimage.{one}(x, lab, [1, 2])",
       f"cupyx.scipy.ndimage.{one}(x, lab, ids)") for one in (
        "sum", "mean", "variance", "standard_deviation", "minimum", "maximum", "median", "extrema", "center_of_mass", "minimum_position", "maximum_position",
        "sum_labels",
    )},
    "cupyx.scipy.interpolate.interp1d": ("cupyx.scipy.interpolate.interp1d(grid, grid)",), "cupyx.scipy.interpolate.CubicSpline": ("cupyx.scipy.interpolate.CubicSpline(grid, grid)",),
    "cupyx.scipy.interpolate.RegularGridInterpolator": ("cupyx.scipy.interpolate.RegularGridInterpolator((grid, grid), grid[:, None] * grid)",),
    "cupyx.scipy.spatial.distance.cdist": ("cupyx.scipy.spatial.distance.cdist(x, y)",), "cupyx.scipy.spatial.distance.pdist": ("cupyx.scipy.spatial.distance.pdist(x)",),
    "cupyx.scipy.spatial.KDTree": ("cupyx.scipy.spatial.KDTree(h64[:, :3])",), "cupyx.empty_pinned": ("cupyx.empty_pinned(8)",),
}  # fmt: skip
"""Calls of functions whose arguments no signature tells."""


def argument(name: str, profile: str) -> str:
    """The code of a required argument: by its name, else an array."""
    return SAME.get(name, profile)


def option(name: str, default: object) -> str | None:
    """The code of an argument with a default, to see the other way round; none, where nothing is known of it."""
    if name in OPTIONS:
        return OPTIONS[name]
    if default is True or str(default) == "True":
        return "False"
    return "True" if default is False or str(default) == "False" else None


def names() -> dict[str, Any]:
    """The values that calls use."""
    import cupy
    import cupyx
    import cupyx.scipy.sparse
    import numpy

    state = numpy.random.default_rng(0)
    h = state.random((64, 64), dtype=numpy.float32)
    pin = cupyx.empty_pinned((64, 64), numpy.float32)
    pin[...] = h
    dense = (h * (h > 0.9)).astype("f4")
    wide = h.astype("f8")
    spd = wide @ wide.T + 64 * numpy.eye(64)
    signs = wide.copy()
    given = {
        "x": h, "y": h[::-1].copy(), "v": h[0].copy(), "i": numpy.arange(8), "b": h > 0.5, "c": h.astype("c8"), "spd": spd, "spd8": spd[:8, :8].copy(),
        "v8": wide[0, :8].copy(), "img": state.random((32, 32, 3)).astype("f4"), "h64": signs, "n": numpy.array(0.5, "f4"), "w": numpy.ones(64),
        "grid": numpy.arange(64.0), "bins": numpy.linspace(0, 1, 9), "eye2": numpy.eye(2), "foot": numpy.ones((3, 3)), "pv": numpy.full(64, 1 / 64),
        "lab": (h * 4).astype("i4"), "ids": numpy.array([1, 2]), "sos": numpy.array([[1, 0.5, 0.2, 1, 0.1, 0.1]]), "dense": dense,
    }  # fmt: skip
    kept: dict[str, Any] = {name: cupy.asarray(value) for name, value in given.items()}
    return kept | {
        "cupy": cupy, "cupyx": cupyx, "h": h, "pin": pin, "hi": numpy.arange(4), "hb": h > 0.5, "state": cupy.random.RandomState(0),
        "rng": cupy.random.default_rng(0), "numpy": numpy, "signs": signs,
    }  # fmt: skip


def prepared(kept: dict[str, Any]) -> dict[str, Any]:
    """The values, with arrays copied, since calls change them."""
    import cupy
    import cupyx.scipy.sparse as sparse

    again = {name: value.copy() if isinstance(value, cupy.ndarray) else value for name, value in kept.items()}
    csr = again["csr"] = sparse.csr_matrix(again["dense"])
    again |= {"coo": csr.tocoo(), "csc": csr.tocsc(), "dia": sparse.dia_matrix(again["spd8"]), "spcsr": sparse.csr_matrix(again["spd"])}
    again["poly"] = cupy.poly1d(again["v8"])
    again["lu"] = (again["spd"], cupy.arange(64, dtype="i4"))
    return again


def kind_of(value: Any) -> str:
    """What a call gives, in a word or two."""
    import cupy
    import numpy

    if isinstance(value, cupy.ndarray):
        return "device array"
    if isinstance(value, (numpy.ndarray, bytes)):
        return "host array"
    if isinstance(value, (bool, int, float, complex, str, numpy.generic)):
        return "host scalar"
    if isinstance(value, (list, tuple)):
        return "tuple of " + ", ".join(sorted({kind_of(one) for one in value})) if value else "tuple"
    home = type(value).__module__.split(".")[0]
    return "none" if value is None else f"object of {home}" if home in ("cupy", "cupyx", "cupy_backends") else "host object"
