"""The walk down the trees of a grove, compiled; `grove.descended` is the same in NumPy."""

import numba


@numba.njit(cache=True, nogil=True)
def descend(columns, thresholds, beyond, roots, inputs, out):
    """Write the leaf of each tree that each row of inputs falls into."""
    for i in range(len(inputs)):
        row = inputs[i]
        for t in range(len(roots)):
            node = roots[t]
            while columns[node] >= 0:
                node = node + 1 if row[columns[node]] <= thresholds[node] else beyond[node]
            out[i, t] = beyond[node]
