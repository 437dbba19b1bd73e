"""A multi-layer perceptron on two spirals: SGD with momentum, a schedule, accuracy."""

import numpy as np
import tandem as torch
import tandem.nn.functional as F
from tandem import nn, optim


class MLP(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.fc1 = nn.Linear(2, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, 2)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = torch.tanh(self.fc2(x))
        return self.fc3(x)


def main(initialize, steps=20):
    rng = np.random.default_rng(0)
    angle = rng.uniform(0.5, 7.0, 100)
    side = rng.integers(0, 2, 100)
    points = np.stack([np.cos(angle + np.pi * side), np.sin(angle + np.pi * side)], 1) * angle[:, None] / 7
    x, y = torch.tensor(points.astype(np.float32)), torch.tensor(side)
    model = MLP(32)
    initialize(model)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=8, gamma=0.5)
    criterion = nn.CrossEntropyLoss()
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        correct = (model(x).argmax(dim=1) == y).sum().item()
    return losses, correct
