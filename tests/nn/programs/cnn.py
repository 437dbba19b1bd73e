"""A convolutional network with batch normalization on small images of bars: Adam, training and evaluation."""

import numpy as np
import tandem as torch
import tandem.nn as nn
import tandem.nn.functional as F
import tandem.optim as optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1, bias=False),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 8, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.AvgPool2d(2),
        )
        self.dropout = nn.Dropout(0.0)
        self.classifier = nn.Linear(8 * 2 * 2, 2)

    def forward(self, x):
        x = self.features(x)
        x = torch.flatten(x, 1)
        return F.log_softmax(self.classifier(self.dropout(x)), dim=1)


def make_batch(rng, size):
    images = rng.normal(0, 0.3, (size, 1, 8, 8))
    labels = rng.integers(0, 2, size)
    for image, label in zip(images, labels):
        at = rng.integers(0, 8)
        image[0, at if label else slice(None), slice(None) if label else at] += 1
    return torch.tensor(images.astype(np.float32)), torch.tensor(labels)


def main(initialize, steps=10):
    rng = np.random.default_rng(1)
    model = Net()
    initialize(model)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    losses = []
    model.train()
    for _ in range(steps):
        data, target = make_batch(rng, 16)
        optimizer.zero_grad(set_to_none=True)
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        data, target = make_batch(rng, 64)
        output = model(data)
        losses.append(F.nll_loss(output, target, reduction="sum").item() / 64)
        correct = (output.argmax(dim=1) == target).sum().item()
    return losses, correct
