"""Classification by an MLP: mini-batches of shuffled indices, early stopping, save and load."""

import copy
import io

import tandem.torch as torch
import tandem.torch.nn as nn
import tandem.torch.nn.functional as F
import tandem.torch.optim as optim
from tandem.torch.optim.lr_scheduler import StepLR

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class NeuralNetwork(nn.Module):
    def __init__(self, in_features=16, hidden=12, classes=4):
        super(NeuralNetwork, self).__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(
            nn.Linear(in_features, hidden),
            nn.ReLU(),
            nn.Dropout(p=0.0),
            nn.Linear(hidden, hidden),
            nn.LeakyReLU(0.1),
            nn.Linear(hidden, classes),
        )
        self.apply(self._init_weights)

    @staticmethod
    def _init_weights(m):
        if isinstance(m, nn.Linear):
            torch.nn.init.xavier_uniform_(m.weight)
            m.bias.data.fill_(0.01)

    def forward(self, x):
        x = self.flatten(x)
        logits = self.linear_relu_stack(x)
        return logits


def train_epoch(model, X, y, loss_fn, optimizer, batch_size, order):
    model.train()
    total = 0.0
    for start in range(0, X.size(0), batch_size):
        batch = order[start : start + batch_size]
        data, target = X[batch].to(device), y[batch].to(device)
        pred = model(data)
        loss = loss_fn(pred, target)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * data.size(0)
    return total / len(X)


def evaluate(model, X, y, loss_fn):
    model.eval()
    with torch.no_grad():
        output = model(X)
        loss = loss_fn(output, y).item()
        pred = output.argmax(dim=1, keepdim=True)
        correct = pred.eq(y.view_as(pred)).sum().item()
        _, predicted = torch.max(output.data, 1)
        assert (predicted == y).sum().item() == correct
        top2 = output.topk(2, dim=1).indices
        hits = (top2 == y.unsqueeze(1)).any(dim=1).float().mean()
    return loss, correct / y.size(0), hits.item()


def main(make, initialize):
    torch.manual_seed(0)
    X = torch.from_numpy(make("images", (48, 4, 4))).float()
    y = torch.tensor(make("labels", (48,), high=4), dtype=torch.long)
    model = NeuralNetwork().to(device)
    initialize(model)
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3, nesterov=True)
    scheduler = StepLR(optimizer, step_size=2, gamma=0.7)
    results, best, best_state = [], float("inf"), None
    for epoch in range(5):
        order = torch.tensor(make(f"order{epoch}", (48,), permutation=True))
        results.append(train_epoch(model, X, y, loss_fn, optimizer, 16, order))
        scheduler.step()
        valid = evaluate(model, X, y, loss_fn)
        results.extend(valid)
        results.append(scheduler.get_last_lr()[0])
        if valid[0] < best:
            best, best_state = valid[0], copy.deepcopy(model.state_dict())
    buffer = io.BytesIO()
    torch.save({"model": best_state, "epoch": epoch}, buffer)
    buffer.seek(0)
    checkpoint = torch.load(buffer, weights_only=True)
    again = NeuralNetwork()
    missing = again.load_state_dict(checkpoint["model"])
    assert not missing.missing_keys and checkpoint["epoch"] == 4
    results.append(evaluate(again, X, y, loss_fn)[0])
    probs = F.softmax(again(X[:3]), dim=-1)
    results.extend(probs.detach().cpu().numpy().ravel().tolist())
    results.append(sum(p.numel() for p in model.parameters() if p.requires_grad))
    return results
