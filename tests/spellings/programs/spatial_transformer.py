"""A spatial transformer with grid_sample, and a segmentation net with unpooling."""

import tandem.torch as torch
import tandem.torch.nn as nn
import tandem.torch.nn.functional as F


class STN(nn.Module):
    def __init__(self):
        super().__init__()
        self.localization = nn.Sequential(
            nn.Conv2d(1, 4, kernel_size=3),
            nn.MaxPool2d(2, stride=2),
            nn.ReLU(True),
            nn.Conv2d(4, 4, kernel_size=3),
            nn.MaxPool2d(2, stride=2),
            nn.ReLU(True),
        )
        self.fc_loc = nn.Sequential(nn.Linear(4 * 1 * 1, 8), nn.ReLU(True), nn.Linear(8, 3 * 2))
        self.fc_loc[2].weight.data.zero_()
        self.fc_loc[2].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))
        self.conv1 = nn.Conv2d(1, 4, kernel_size=3)
        self.conv2 = nn.Conv2d(4, 4, kernel_size=3)
        self.conv2_drop = nn.Dropout2d(p=0.0)
        self.fc1 = nn.Linear(4, 5)

    def stn(self, x):
        xs = self.localization(x)
        xs = xs.view(-1, 4)
        theta = self.fc_loc(xs)
        theta = theta.view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)

    def forward(self, x):
        x = self.stn(x)
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2, ceil_mode=True))
        x = F.adaptive_avg_pool2d(x, 1).view(-1, 4)
        return F.log_softmax(self.fc1(x), dim=1)


class SegNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1 = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.InstanceNorm2d(4, affine=True), nn.ReLU())
        self.enc2 = nn.Sequential(
            nn.Conv2d(4, 6, 3, padding="same", padding_mode="reflect"), nn.GroupNorm(3, 6), nn.SiLU()
        )
        self.pool = nn.MaxPool2d(2, stride=2, return_indices=True)
        self.unpool = nn.MaxUnpool2d(2, stride=2)
        self.dec2 = nn.Sequential(
            nn.Conv2d(6, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4, momentum=None), nn.ReLU6()
        )
        self.dec1 = nn.ConvTranspose2d(4, 2, 3, padding=1)

    def forward(self, x):
        x1 = self.enc1(x)
        p1, i1 = self.pool(x1)
        x2 = self.enc2(p1)
        p2, i2 = self.pool(x2)
        d2 = self.unpool(p2, i2, output_size=x2.size())
        d1 = self.unpool(self.dec2(d2), i1, output_size=x1.size())
        return self.dec1(d1)


class FocalLoss(nn.Module):
    def __init__(self, alpha=0.25, gamma=2.0, reduction="mean"):
        super().__init__()
        self.alpha, self.gamma, self.reduction = alpha, gamma, reduction

    def forward(self, inputs, targets):
        p = torch.sigmoid(inputs)
        ce = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
        p_t = p * targets + (1 - p) * (1 - targets)
        loss = ce * ((1 - p_t) ** self.gamma)
        alpha_t = self.alpha * targets + (1 - self.alpha) * (1 - targets)
        return (alpha_t * loss).mean()


def soft_iou(pred, target, eps=1e-6):
    inter = (pred * target).sum(dim=(2, 3))
    union = (pred + target - pred * target).sum(dim=(2, 3))
    return 1 - ((inter + eps) / (union + eps)).mean()


def main(make, initialize):
    out = []
    model = STN()
    bias = model.fc_loc[2].bias.data.clone()
    initialize(model)
    model.fc_loc[2].weight.data.mul_(0.1)
    model.fc_loc[2].bias.data.copy_(bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x = torch.tensor(make("x", (4, 1, 10, 10)), dtype=torch.float32)
    y = torch.tensor(make("y", (4,), high=5))
    for _ in range(4):
        optimizer.zero_grad()
        loss = F.nll_loss(model(x), y)
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    out.append(model.stn(x).abs().sum().item())
    net = SegNet()
    initialize(net)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2, amsgrad=True)
    focal, images = FocalLoss(), torch.tensor(make("im", (2, 1, 9, 10))).float()
    masks = torch.tensor(make("mk", (2, 2, 9, 10), high=2)).float()
    for _ in range(4):
        opt.zero_grad(set_to_none=True)
        logits = net(images)
        loss = focal(logits, masks) + soft_iou(logits.sigmoid(), masks)
        loss.backward()
        opt.step()
        out.append(loss.item())
    net.eval()
    with torch.inference_mode():
        pred = net(images).sigmoid().gt(0.5)
        confusion = torch.bincount(2 * masks.long().flatten() + pred.long().flatten(), minlength=4).reshape(
            2, 2
        )
        out += confusion.flatten().tolist() + [net.dec2[1].running_mean.sum().item()]
    grid = torch.stack(
        torch.meshgrid(torch.linspace(-1, 1, 3), torch.linspace(-1, 1, 4), indexing="xy"), dim=-1
    )
    out.append(
        F.grid_sample(images[:1], grid[None], mode="bicubic", padding_mode="reflection", align_corners=True)
        .sum()
        .item()
    )
    return out
