"""A VQ-VAE with codebook averages, fine tuning with hooks, and style transfer."""

from collections import OrderedDict

import tandem.torch as torch
from tandem.torch import nn
from tandem.torch.nn import functional as F


class VectorQuantizer(nn.Module):
    def __init__(self, num_embeddings, dim, commitment_cost=0.25, decay=0.9, epsilon=1e-5):
        super().__init__()
        self._num_embeddings, self._dim, self._cost, self._decay, self._epsilon = (
            num_embeddings,
            dim,
            commitment_cost,
            decay,
            epsilon,
        )
        embed = torch.randn(num_embeddings, dim)
        self.register_buffer("embedding", embed)
        self.register_buffer("_ema_cluster_size", torch.zeros(num_embeddings))
        self.register_buffer("_ema_w", embed.clone())

    def forward(self, inputs):
        inputs = inputs.permute(0, 2, 3, 1).contiguous()
        input_shape = inputs.shape
        flat_input = inputs.view(-1, self._dim)
        distances = (
            torch.sum(flat_input**2, dim=1, keepdim=True)
            + torch.sum(self.embedding**2, dim=1)
            - 2 * torch.matmul(flat_input, self.embedding.t())
        )
        encoding_indices = torch.argmin(distances, dim=1).unsqueeze(1)
        encodings = torch.zeros(encoding_indices.shape[0], self._num_embeddings, device=inputs.device)
        encodings.scatter_(1, encoding_indices, 1)
        quantized = torch.matmul(encodings, self.embedding).view(input_shape)
        if self.training:
            self._ema_cluster_size = self._ema_cluster_size * self._decay + (1 - self._decay) * torch.sum(
                encodings, 0
            )
            n = torch.sum(self._ema_cluster_size.data)
            self._ema_cluster_size = (
                (self._ema_cluster_size + self._epsilon) / (n + self._num_embeddings * self._epsilon) * n
            )
            dw = torch.matmul(encodings.t(), flat_input.detach())
            self._ema_w = self._ema_w * self._decay + (1 - self._decay) * dw
            self.embedding = self._ema_w / self._ema_cluster_size.unsqueeze(1)
        e_latent_loss = F.mse_loss(quantized.detach(), inputs)
        loss = self._cost * e_latent_loss
        quantized = inputs + (quantized - inputs).detach()
        avg_probs = torch.mean(encodings, dim=0)
        perplexity = torch.exp(-torch.sum(avg_probs * torch.log(avg_probs + 1e-10)))
        return loss, quantized.permute(0, 3, 1, 2).contiguous(), perplexity, encodings


class ResidualStack(nn.Module):
    def __init__(self, channels, layers):
        super().__init__()
        self._layers = nn.ModuleList(
            [
                nn.Sequential(
                    OrderedDict(
                        relu=nn.ReLU(False),
                        conv=nn.Conv2d(channels, channels, 3, padding=1, bias=False),
                        out=nn.Conv2d(channels, channels, 1),
                    )
                )
                for _ in range(layers)
            ]
        )

    def forward(self, x):
        for i in range(len(self._layers)):
            x = x + self._layers[i](x)
        return F.relu(x)


class VQVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 4, 4, stride=2, padding=1), nn.ReLU(), ResidualStack(4, 2), nn.Conv2d(4, 3, 1)
        )
        self.vq = VectorQuantizer(5, 3)
        self.decoder = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1),
            ResidualStack(4, 1),
            nn.ConvTranspose2d(4, 1, kernel_size=4, stride=2, padding=1),
        )

    def forward(self, x):
        loss, quantized, perplexity, _ = self.vq(self.encoder(x))
        return loss, self.decoder(quantized), perplexity


class Backbone(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 3, padding=1),
            nn.ReLU(inplace=True),
        )
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.classifier = nn.Sequential(nn.Flatten(), nn.Dropout(0.0), nn.Linear(6, classes))

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)))


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    G = torch.mm(features, features.t())
    return G.div(a * b * c * d)


def main(make, initialize):
    out = []
    model = VQVAE()
    initialize(model)
    model.vq.embedding.copy_(torch.tensor(make("emb", (5, 3))))
    model.vq._ema_w.copy_(model.vq.embedding)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2, amsgrad=False)
    x = torch.tensor(make("x", (3, 1, 8, 8))).float()
    variance = torch.var(x)
    for _ in range(4):
        opt.zero_grad()
        vq_loss, recon, perplexity = model(x)
        recon_error = F.mse_loss(recon, x) / variance
        loss = recon_error + vq_loss
        loss.backward()
        opt.step()
        out += [recon_error.item(), perplexity.item()]
    out.append(model.vq.embedding.abs().sum().item())
    # fine tuning: load all but the head, freeze, replace the head, check that only it changes
    pretrained = Backbone()
    initialize(pretrained)
    net = Backbone(2)
    state = {k: v for k, v in pretrained.state_dict().items() if not k.startswith("classifier.2")}
    missing, unexpected = net.load_state_dict(state, strict=False)
    assert missing == ["classifier.2.weight", "classifier.2.bias"] and unexpected == []
    for name, child in net.named_children():
        if name == "features":
            for param in child.parameters():
                param.requires_grad_(False)
    num_ftrs = net.classifier[-1].in_features
    net.classifier[-1] = nn.Linear(num_ftrs, 2)
    initialize(net.classifier)
    features = {}

    def get_activation(name):
        def hook(model, input, output):
            features[name] = output.detach()

        return hook

    handle = net.features[4].register_forward_hook(get_activation("conv2"))
    opt = torch.optim.SGD(filter(lambda p: p.requires_grad, net.parameters()), lr=0.1, momentum=0.9)
    before = net.features[0].weight.clone()
    labels = torch.tensor([0, 1, 1])
    best_acc, best = 0.0, None
    for epoch in range(4):
        for phase in ["train", "val"]:
            net.train() if phase == "train" else net.eval()
            opt.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                outputs = net(x)
                _, preds = torch.max(outputs, 1)
                loss = F.cross_entropy(outputs, labels)
                if phase == "train":
                    loss.backward()
                    opt.step()
            acc = torch.sum(preds == labels.data).double() / 3
            out += [loss.item(), acc.item()]
            if phase == "val" and acc >= best_acc:
                best_acc = acc
                best = {k: v.clone() for k, v in net.state_dict().items()}
    handle.remove()
    assert torch.equal(before, net.features[0].weight) and len(features) == 1
    net.load_state_dict(best)
    out += [features["conv2"].abs().sum().item(), gram_matrix(features["conv2"]).sum().item()]
    # style transfer: the input is the parameter
    content = torch.tensor(make("content", (1, 1, 8, 8))).float()
    style = gram_matrix(net.features(torch.tensor(make("style", (1, 1, 8, 8))).float())).detach()
    image = nn.Parameter(content.clone())
    opt = torch.optim.Adam([image], lr=0.05)
    for _ in range(4):
        opt.zero_grad()
        f = net.features(image)
        tv = (image[..., 1:] - image[..., :-1]).abs().mean() + (
            image[..., 1:, :] - image[..., :-1, :]
        ).abs().mean()
        loss = 100 * F.mse_loss(gram_matrix(f), style) + F.mse_loss(f, net.features(content)) + 0.1 * tv
        loss.backward()
        opt.step()
        with torch.no_grad():
            image.clamp_(-2, 2)
        out.append(loss.item())
    # class activation by occlusion and saliency
    inp = content.clone().requires_grad_()
    score = net(inp)[0].max()
    score.backward()
    saliency, _ = torch.max(inp.grad.data.abs(), dim=1)
    out += [saliency.sum().item(), saliency.reshape(-1).topk(3)[0].sum().item()]
    return out
