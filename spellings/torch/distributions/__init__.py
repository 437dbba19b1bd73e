"""``tandem.torch.distributions``."""
