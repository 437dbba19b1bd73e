"""An LSTM that predicts the next point of sine waves: RMSprop, clipped gradients."""

import numpy as np
import tandem as torch
from tandem import nn
from tandem.nn.utils import clip_grad_norm_
from tandem.optim import RMSprop


class Forecaster(nn.Module):
    def __init__(self, hidden_size=16, num_layers=2):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden_size, num_layers, batch_first=True)
        self.head = nn.Linear(hidden_size, 1)

    def forward(self, x, state=None):
        output, state = self.lstm(x, state)
        return self.head(output).squeeze(-1), state


def main(initialize, steps=10):
    rng = np.random.default_rng(2)
    model = Forecaster()
    initialize(model)
    optimizer = RMSprop(model.parameters(), lr=0.01)
    criterion = nn.MSELoss()
    losses = []
    for _ in range(steps):
        phase = rng.uniform(0, 6, (8, 1)) + np.arange(13) * 0.4
        wave = torch.tensor(np.sin(phase).astype(np.float32))
        prediction, _ = model(wave[:, :-1].unsqueeze(-1))
        loss = criterion(prediction, wave[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        norm = clip_grad_norm_(model.parameters(), max_norm=0.5)
        optimizer.step()
        losses += [loss.item(), norm.item()]
    generated, state, x = [], None, torch.zeros(1, 1, 1)
    with torch.no_grad():
        for _ in range(5):
            y, state = model(x, state)
            generated.append(y.item())
            x = y.unsqueeze(-1)
    return losses, generated
