"""Random numbers.

namespace.py: ``td.random``
philox.py: the generator Philox4x32-10
key_bits.py: keys as uint32 tensors, random bits, split and fold_in
typed_keys.py: ``Key`` objects
portable_math.py: logarithm, cosine and inverse normal with the same bits on every backend
uniform.py: uniform, normal, integers, permutation, bernoulli
continuous.py: continuous distributions from uniform numbers
discrete.py: rademacher, categorical, choice
gamma.py: the gamma distribution and those made of it
gamma_derivative.py: its derivative by the shape parameter
counts.py: poisson, binomial, geometric
rejection.py: array kernels of rejection samplers
mixtures.py: wald, double_sided_maxwell, multinomial
multivariate.py: distributions of vectors and matrices
"""
