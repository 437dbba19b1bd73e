"""The functions that :mod:`tandem.nn.functional` gathers, by kind.

- activations.py: functions of elements, softmax
- losses.py: losses of an input and a target
- metric_losses.py: distances, losses of distances and margins
- dropping.py: dropout of elements and channels
- padding.py: pad by reflection, repetition, wrapping; pixel_shuffle
- embedding.py: rows of tables
- grids.py: grid_sample, affine_grid
- pooling.py: adaptive windows, norms of windows
- sequence_losses.py: ctc_loss
- unpooling.py: positions of largest elements, max_unpool2d
- windows.py: which elements belong to a window
- resampling.py: interpolate
"""
