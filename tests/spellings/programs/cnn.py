"""A convolutional network with batch normalization and a residual block, trained by Adam and a plateau schedule."""

import tandem.torch as torch
import tandem.torch.nn as nn
import tandem.torch.nn.functional as F
from tandem.torch import optim


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != self.expansion * planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, self.expansion * planes, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(self.expansion * planes),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class Net(nn.Module):
    def __init__(self, num_classes=3):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3)
        self.pool = nn.MaxPool2d(2, 2)
        self.layers = self._make_layer(4, 6, [2, 1])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc1 = nn.Linear(6, 8)
        self.fc2 = nn.Linear(8, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def _make_layer(self, in_planes, planes, strides):
        layers = []
        for stride in strides:
            layers.append(BasicBlock(in_planes, planes, stride))
            in_planes = planes
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.layers(x)
        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        x = F.dropout(x, p=0.0, training=self.training)
        x = F.relu(self.fc1(x))
        x = self.fc2(x)
        return F.log_softmax(x, dim=1)


def main(make, initialize):
    net = Net()
    initialize(net)
    criterion = nn.NLLLoss()
    optimizer = optim.Adam(net.parameters(), lr=0.01, betas=(0.9, 0.99), weight_decay=1e-4)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=0)
    results, running_loss = [], 0.0
    for i in range(6):
        inputs = torch.tensor(make(f"images{i}", (8, 1, 12, 12)), dtype=torch.float32)
        labels = torch.LongTensor(make(f"labels{i}", (8,), high=3))
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
        results += [loss.item(), optimizer.param_groups[0]["lr"]]
        scheduler.step(loss.item())
    net.eval()
    correct = total = 0
    with torch.no_grad():
        images = torch.tensor(make("test", (16, 1, 12, 12)), dtype=torch.float32)
        labels = torch.tensor(make("answers", (16,), high=3))
        outputs = net(images)
        _, predicted = torch.max(outputs, 1)
        total += labels.size(0)
        correct += (predicted == labels).sum().item()
        results += F.nll_loss(outputs, labels, reduction="none").tolist()
    results += [running_loss, correct / total]
    for name, buffer in net.named_buffers():
        if not name.endswith("num_batches_tracked"):
            results += buffer.flatten().tolist()
    results.append(net.conv1.weight.grad.norm().item())
    return results
