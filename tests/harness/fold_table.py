"""The folds of tandem's reductions by name."""

from tandem.operators.reductions import folds

FOLDS = {
    "sum": folds.SUM,
    "prod": folds.PROD,
    "max": folds.MAX,
    "min": folds.MIN,
    "any": folds.ANY,
    "all": folds.ALL_TRUE,
    "argmax": folds.ARGMAX,
    "argmin": folds.ARGMIN,
}
