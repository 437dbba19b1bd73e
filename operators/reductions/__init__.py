"""Reductions, scans and sorting.

folds.py: sum, prod, max, argmax, any, ...
scans.py: cumsum and cumprod
cumulative.py: cumulative_sum and cumulative_prod
segments.py: segment_sum, segment_prod, segment_max, segment_min
complex_folds.py: sums and products of complex numbers in compiled code
sorting.py: argsort, sort, argtopk and sort_values
extrema.py: max, min, cummax, cummin with indices; aminmax
order_statistics.py: kthvalue, topk, mode
partitions.py: lexsort, partition, argpartition, sort_complex
searching.py: searchsorted and isin
selection.py: argselect: positions of elements by rank
sets.py: unique_all, unique_counts, unique_inverse, unique_values
unique.py: unique, also of slices along an axis
statistics.py: mean, var, std, count_nonzero
nan_reductions.py: reductions and scans that skip NaN
quantiles.py: median, quantile, percentile
covariance.py: ptp, average, cov, corrcoef
histograms.py: bincount, digitize, histogram, histogram_bin_edges, histogram2d
histogram_grids.py: histogramdd
polynomials.py: polyadd, polysub, polymul, polyder, polyint
set_operations.py: intersect1d, union1d, setdiff1d, setxor1d
signals.py: interp, convolve, correlate, unwrap, gradient
calculus.py: ediff1d, trapezoid, polyval
"""
