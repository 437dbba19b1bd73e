"""The functions that :mod:`tandem.nn.functional` gathers, by kind.

- activations.py: functions of elements, softmax
- losses.py: losses of an input and a target
- metric_losses.py: distances, losses of distances and margins
- dropping.py: dropout of elements and channels
- padding.py: pad by reflection, repetition, wrapping; pixel_shuffle
- embedding.py: rows of tables
- pooling.py: adaptive windows, norms of windows
- resampling.py: interpolate
"""
