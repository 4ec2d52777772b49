"""Processor settings of jobs: the same instructions, hence the same rounding.

OpenBLAS and NumPy choose their loops by processor, and sums in another order round differently.
Kernels of Numba need no pin: they use IEEE arithmetic in a fixed order.
"""

from __future__ import annotations

import os
import platform

# Memory that a job gives back stays with its process: arrays of some megabytes come and go in each
# pass, and the system clears every page anew. Read by the GNU C library, ignored by others.
ALLOCATOR = {"MALLOC_TRIM_THRESHOLD_": str(1 << 29), "MALLOC_MMAP_THRESHOLD_": str(1 << 25)}
# Parallelism is the workflow's; a BLAS that starts threads of its own fights with other jobs.
THREADS = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}


def prepare_environment(source: str) -> None:
    """Give this process' children pinned loops, one thread each, and the packages in `source`."""
    os.environ.update({**ALLOCATOR, **THREADS, **pinned()})
    others = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each != source]
    os.environ["PYTHONPATH"] = os.pathsep.join([source, *filter(None, others)])


def pinned() -> dict[str, str]:
    """Environment that holds BLAS and NumPy to AVX2; empty where there is no such processor.

    `OPENBLAS_CORETYPE` chooses the kernels of a processor with AVX2 and FMA, which every x86-64 one
    has had since 2013 (Intel) and 2015 (AMD). `NPY_DISABLE_CPU_FEATURES` leaves out wider vectors.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return {}
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    if not (__cpu_features__.get("AVX2") and __cpu_features__.get("FMA3")):
        return {}
    # Instruction sets beyond AVX2; their names in NumPy depend on its version.
    wide = [name for name in __cpu_dispatch__ if name.startswith(("AVX512", "X86_V4"))]
    return {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": " ".join(wide)}
