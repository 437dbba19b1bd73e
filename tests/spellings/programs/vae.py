"""A variational autoencoder with convolutions and transposed convolutions; noise comes from the caller."""

import tandem.torch as torch
import tandem.torch.nn as nn
import tandem.torch.nn.functional as F
import tandem.torch.optim as optim
from tandem.torch import Tensor


class VAE(nn.Module):
    def __init__(self, latent_dim: int = 3, noise=None):
        super().__init__()
        self.noise = noise
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 4, kernel_size=3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(4),
            nn.SiLU(),
            nn.Flatten(start_dim=1),
        )
        self.fc_mu = nn.Linear(4 * 4 * 4, latent_dim)
        self.fc_var = nn.Linear(4 * 4 * 4, latent_dim)
        self.decoder_input = nn.Linear(latent_dim, 4 * 4 * 4)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(4, 2, kernel_size=3, stride=2, padding=1, output_padding=1),
            nn.ELU(),
            nn.Conv2d(2, 1, 3, padding="same"),
        )

    def encode(self, x: Tensor):
        h = self.encoder(x)
        return self.fc_mu(h), self.fc_var(h)

    def reparameterize(self, mu: Tensor, logvar: Tensor) -> Tensor:
        if self.training:
            std = torch.exp(0.5 * logvar)
            eps = self.noise(std)
            return eps.mul(std).add_(mu)
        return mu

    def decode(self, z):
        h = self.decoder_input(z).view(-1, 4, 4, 4)
        return torch.sigmoid(self.decoder(h))

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar, beta=1.0):
    BCE = F.binary_cross_entropy(recon_x.view(-1, 64), x.view(-1, 64), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean(dim=0)
    return BCE + beta * KLD, KLD


def main(make, initialize):
    count = iter(range(100))

    def noise(like):
        assert torch.randn_like(like).shape == like.size()
        return torch.as_tensor(make(f"noise{next(count)}", tuple(like.shape))).to(like.dtype)

    model = VAE(noise=noise)
    initialize(model)
    optimizer = optim.Adam(model.parameters(), lr=1e-2, amsgrad=True)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    results = []
    model.train()
    for step in range(6):
        data = torch.sigmoid(torch.tensor(make(f"images{step}", (6, 1, 8, 8)), dtype=torch.float32) * 3)
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss, kld = loss_function(recon_batch, data, mu, logvar, beta=min(1.0, step / 4))
        loss.backward()
        grads = [p.grad.detach().clone() for p in model.parameters() if p.grad is not None]
        optimizer.step()
        scheduler.step()
        results += [loss.item() / len(data), kld.item(), torch.cat([g.view(-1) for g in grads]).norm().item()]
    with torch.no_grad():
        model.eval()
        z = torch.linspace(-1, 1, steps=9).reshape(3, 3)
        sample = model.decode(z).cpu()
        grid = sample.repeat(1, 3, 1, 1).permute(0, 2, 3, 1)
        results += grid.mean(dim=(1, 2)).flatten().tolist()
        results += [
            F.mse_loss(model(data)[0], data).item(),
            torch.std(sample).item(),
            sample.var(dim=0).max().item(),
        ]
    return results
