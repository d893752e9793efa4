"""The bytes of guest Python's interpreter that make numpy's default integer 64 bits wide, as on every 64-bit machine.

The interpreter is WebAssembly with 32-bit pointers. numpy 2 takes its default integer from the size of a pointer
(`NPY_DEFAULT_INT` is `NPY_INTP`), so that `numpy.arange(100000).sum()` would silently overflow. The package is a
finished binary with a known digest, so the constant is changed where numpy's C code uses it: type number 7 (`long`,
32 bits) becomes 9 (`long long`). Indices stay what they are: 32 bits, as pointers.

Index arguments that numpy casts only if it is "safe" (repeat, put, choose, reduceat, the sorter of searchsorted) must
take the new default integer too: bit 8, which numpy uses for nothing, then means casting of the "same kind", as it has
always been for `take` and for indexing. `numpy._core._type_aliases` has the names (`int_`, `uint`); see
`engines/python/library_host.py`.
"""

from __future__ import annotations

from typing import Final

from belljar.engines.artefact_host import Change

_LONG, _LONG_LONG = b"\x41\x07", b"\x41\x09"
"""`i32.const` with numpy's type number."""
_INT, _NUMPY_LONG, _NOTHING = b"\x41\xf4\xb2\xb9\x8c\x00", b"\x41\xf0\xbe\xcd\x8c\x00", b"\x41\x81\x80\x80\x80\x00"
"""`i32.const` with the address of Python's `int`, of `numpy.long`, of no object."""

_TRACKING, _POOL = (52761448, 52761506, 52768201, 52768259), (52776773, 52777880, 52783507, 52784614)
_RESERVOIR = (52792604, 52792662, 52798078, 52798136)

DEFAULT_INTEGER: Final = (
    # abstractdtypes.c: Python's int.
    *(Change(at, _LONG, _LONG_LONG) for at in (4993943, 4994008)),  # discover_descriptor_from_pylong
    Change(4994038, _LONG, _LONG_LONG),  # int_default_descriptor
    Change(4994094, b"\xdc", b"\xb4"),  # int_common_dtype, with bool: _Intp_dtype becomes _LongLong_dtype
    Change(4994359, b"\xdc", b"\xb4"),  # int_common_dtype, with a user's dtype
    Change(4981456, _LONG, _LONG_LONG),  # ctors.c, PyArray_ArangeObj
    Change(5030417, _LONG, _LONG_LONG),  # descriptor.c, _convert_from_type: dtype(int)
    Change(5000347, _LONG, _LONG_LONG),  # convert_datatype.c, can_cast_pyscalar_scalar_to
    Change(5785409, _LONG, _LONG_LONG),  # multiarraymodule.c: zero_pyint_like_arr
    # ufunc_object.c
    Change(6658792, _LONG, _LONG_LONG),  # convert_ufunc_arguments
    *(Change(at, _LONG, _LONG_LONG) for at in (6684200, 6684677)),  # py_resolve_dtypes_generic
    # try_trivial_scalar_call: its buffer has room for a pointer only, so all of Python's int take the general way (what
    # it does after an overflow: the overflow flag is not loaded, its address, which is not 0, is looked at instead).
    Change(6647315, b"\x28\x02\xd8\x03", b"\x01\x01\x01\x01"),
    # reducelike_promote_and_resolve: sum and prod of what has fewer than 8 bytes.
    Change(6695857, _LONG, _LONG_LONG),
    Change(6695878, b"\x41\x03", b"\x41\x07"),
    Change(79887033, b"\x08\x07\x08\x07\x08\x07\x08\x07\x08", b"\x0a\x09\x0a\x09\x0a\x09\x0a\x09\x0a"),
    # ctors.c, PyArray_FromArray: bit 8 is NPY_ARRAY_SAME_KIND_CASTING.
    Change(4974431, b"\x41\x80\x80\x80\x20", b"\x41\x88\x80\x80\x20"),
    *(Change(at, b"\x41\x81\x0a", b"\x41\x89\x0a") for at in (4813394, 4821311, 6676521)),  # put, repeat, reduceat
    Change(4828006, b"\x41\x00", b"\x41\x08"),  # choose
    Change(4843604, b"\x41\x80\x06", b"\x41\x88\x06"),  # searchsorted
    # numpy/random/mtrand.pyx
    Change(8771787, _INT, _NOTHING),  # randint: `dtype is int` no longer means `long`
    Change(8860845, b"\x41\x80\x02", b"\x41\x88\x02"),  # binomial: `n` may be an array of default integers
    # sklearn/utils/_random.pyx, sample_without_replacement: its buffers are of `long`.
    *(Change(at, _INT, _NUMPY_LONG) for at in (*_TRACKING, *_POOL, *_RESERVOIR)),
)
