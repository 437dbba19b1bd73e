"""Operators of neural networks.

convolution.py: the general convolution, its shape rule, derivative and batching
convolution_body.py: the same by other operators, where it has no loop of its own
convolution_kernel.py: its array kernel
convolution_layers.py: conv1d to conv3d and their transposes
pooling.py: max and average pooling
normalization.py: softmax, logsumexp, layer_norm
losses.py: cross_entropy, mse_loss, one_hot
layers.py: dropout and attention
"""
