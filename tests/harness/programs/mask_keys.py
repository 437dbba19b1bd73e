"""An array, and keys with a mask of some of its axes."""

import numpy as np

X = np.arange(1.0, 13.0).reshape(3, 4)
MASK = np.array([[True, False, True, False], [False] * 4, [True] * 4])
ROWS = np.array([True, False, True])
KEYS = {
    "all axes": (MASK,),
    "rows": (ROWS,),
    "rows and a column": (ROWS, 1),
    "rows and columns": (ROWS, slice(1, 3)),
    "a row and columns": (2, MASK[0]),
    "columns": (slice(None), MASK[0]),
    "ellipsis": (..., MASK[0]),
    "apart": (ROWS, None, 1),
    "0-d": (np.array(True),),
}
