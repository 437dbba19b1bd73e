"""GANs: gradient penalty, conditional batch normalization, weight_norm and spectral_norm."""

import tandem.torch as torch
import tandem.torch.autograd as autograd
import tandem.torch.nn as nn
import tandem.torch.nn.functional as F
from tandem.torch.nn.utils import spectral_norm
from tandem.torch.nn.utils.parametrizations import weight_norm


class ResBlockG(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(cin), nn.BatchNorm2d(cout)
        self.conv1, self.conv2 = nn.Conv2d(cin, cout, 3, 1, 1), nn.Conv2d(cout, cout, 3, 1, 1)
        self.shortcut = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(cin, cout, 1))

    def forward(self, x):
        h = F.interpolate(F.relu(self.bn1(x)), scale_factor=2, mode="nearest")
        h = self.conv2(F.relu(self.bn2(self.conv1(h))))
        return h + self.shortcut(x)


class ConditionalBatchNorm2d(nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.num_features = num_features
        self.bn = nn.BatchNorm2d(num_features, affine=False)
        self.embed = nn.Embedding(num_classes, num_features * 2)
        self.embed.weight.data[:, :num_features].normal_(1, 0.02)
        self.embed.weight.data[:, num_features:].zero_()

    def forward(self, x, y):
        out = self.bn(x)
        gamma, beta = self.embed(y).chunk(2, 1)
        return gamma.view(-1, self.num_features, 1, 1) * out + beta.view(-1, self.num_features, 1, 1)


class Generator(nn.Module):
    def __init__(self, z=4):
        super().__init__()
        self.l1 = weight_norm(nn.Linear(z, 4 * 2 * 2))
        self.block = ResBlockG(4, 4)
        self.cbn = ConditionalBatchNorm2d(4, 3)
        self.out = nn.Conv2d(4, 1, 3, 1, 1)

    def forward(self, z, y):
        h = self.l1(z).view(-1, 4, 2, 2)
        return torch.tanh(self.out(F.leaky_relu(self.cbn(self.block(h), y), 0.2)))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.LeakyReLU(0.2, inplace=True),
            nn.AvgPool2d(2),
            nn.Conv2d(4, 4, 3, padding=1),
            nn.LeakyReLU(0.2, inplace=True),
        )
        self.linear = nn.Linear(4, 1)
        self.embed = nn.Embedding(3, 4)

    def forward(self, x, y):
        h = self.conv(x).sum(dim=(2, 3))
        return self.linear(h) + (self.embed(y) * h).sum(1, keepdim=True)


def calc_gradient_penalty(netD, real, fake, y, alpha):
    alpha = alpha.expand(real.size(0), int(real.nelement() / real.size(0))).contiguous().view(*real.size())
    interpolates = alpha * real + ((1 - alpha) * fake)
    interpolates = autograd.Variable(interpolates, requires_grad=True)
    disc = netD(interpolates, y)
    gradients = autograd.grad(
        outputs=disc,
        inputs=interpolates,
        grad_outputs=torch.ones(disc.size()),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    gradients = gradients.view(gradients.size(0), -1)
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean() * 10


def main(make, initialize):
    out = []
    G, D = Generator(), Discriminator()
    initialize(G), initialize(D)
    optD = torch.optim.RMSprop(D.parameters(), lr=1e-3)
    optG = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.0, 0.9))
    one = torch.tensor(1, dtype=torch.float)
    mone = one * -1
    for it in range(3):
        for p in D.parameters():
            p.requires_grad = True
        for d in range(2):
            D.zero_grad()
            real = torch.tensor(make("r%d%d" % (it, d), (4, 1, 4, 4))).float().tanh()
            y = torch.tensor(make("y%d%d" % (it, d), (4,), high=3))
            D_real = D(real, y).mean()
            D_real.backward(mone)
            noise = torch.from_numpy(make("n%d%d" % (it, d), (4, 4))).float()
            with torch.no_grad():
                fake = G(noise, y)
            D_fake = D(fake, y).mean()
            D_fake.backward(one)
            gp = calc_gradient_penalty(
                D, real, fake, y, torch.tensor(make("a%d%d" % (it, d), (4, 1))).float().sigmoid()
            )
            gp.backward()
            optD.step()
            out += [(D_real - D_fake).item(), gp.item()]
        for p in D.parameters():
            p.requires_grad = False
        G.zero_grad()
        loss = D(G(noise, y), y).mean()
        loss.backward(mone)
        optG.step()
        out.append(loss.item())
    out += [
        G.l1.weight.norm().item(),
        G.cbn.bn.running_var.sum().item(),
        G.block.bn2.num_batches_tracked.item(),
    ]
    # hinge loss with spectral normalization
    sn = nn.Sequential(
        spectral_norm(nn.Linear(4, 6)), nn.ReLU(), spectral_norm(nn.Linear(6, 1), n_power_iterations=3)
    )
    initialize(sn)
    for m in (sn[0], sn[2]):
        m.weight_u.copy_(F.normalize(torch.ones_like(m.weight_u), dim=0))
        m.weight_v.copy_(F.normalize(torch.ones_like(m.weight_v), dim=0))
    opt = torch.optim.SGD(sn.parameters(), lr=0.1)
    x = torch.tensor(make("sx", (5, 4))).float()
    for _ in range(3):
        opt.zero_grad()
        loss = F.relu(1.0 - sn(x)).mean() + F.relu(1.0 + sn(-x)).mean()
        loss.backward()
        opt.step()
        out.append(loss.item())
    sn.eval()
    out += sn(x).flatten().tolist() + [torch.linalg.matrix_norm(sn[0].weight, 2).item()]
    return out
