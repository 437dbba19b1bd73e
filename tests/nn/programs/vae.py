"""A variational autoencoder of points on a ring of bumps: reparametrized noise, two losses, Adam."""

import numpy as np
import tandem as torch
from tandem import nn, optim
from tandem.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 16)
        self.fc21 = nn.Linear(16, 3)
        self.fc22 = nn.Linear(16, 3)
        self.fc3 = nn.Linear(3, 16)
        self.fc4 = nn.Linear(16, 20)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, eps):
        std = torch.exp(0.5 * logvar)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x, eps):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar, eps)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x, reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def main(initialize, steps=15):
    rng = np.random.default_rng(4)
    model = VAE()
    initialize(model)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    model.train()
    for _ in range(steps):
        center = rng.uniform(0, 20, (16, 1))
        data = torch.tensor(np.exp(-0.1 * (np.arange(20) - center) ** 2).astype(np.float32))
        eps = torch.tensor(rng.standard_normal((16, 3)).astype(np.float32))
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data, eps)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        optimizer.step()
        losses.append(loss.item() / 16)
    with torch.no_grad():
        sample = model.decode(torch.zeros(1, 3))
    return losses, sample[0, :4].tolist()
