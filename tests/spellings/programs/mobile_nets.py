"""Blocks of MobileNet, ConvNeXt and DenseNet, and distillation."""

import math
from collections.abc import Callable
from functools import partial

import tandem.torch as torch
from tandem.torch import Tensor, nn
from tandem.torch.nn import functional as F


def _make_divisible(v: float, divisor: int, min_value: int | None = None) -> int:
    if min_value is None:
        min_value = divisor
    new_v = max(min_value, int(v + divisor / 2) // divisor * divisor)
    if new_v < 0.9 * v:
        new_v += divisor
    return new_v


class Conv2dNormActivation(nn.Sequential):
    def __init__(
        self,
        cin,
        cout,
        kernel_size=3,
        stride=1,
        groups=1,
        norm_layer: Callable[..., nn.Module] | None = nn.BatchNorm2d,
        activation_layer: Callable[..., nn.Module] | None = nn.ReLU,
        dilation=1,
        inplace: bool | None = True,
    ):
        padding = (kernel_size - 1) // 2 * dilation
        layers = [
            nn.Conv2d(
                cin,
                cout,
                kernel_size,
                stride,
                padding,
                dilation=dilation,
                groups=groups,
                bias=norm_layer is None,
            )
        ]
        if norm_layer is not None:
            layers.append(norm_layer(cout))
        if activation_layer is not None:
            params = {} if inplace is None else {"inplace": inplace}
            layers.append(activation_layer(**params))
        super().__init__(*layers)
        self.out_channels = cout


class SqueezeExcitation(nn.Module):
    def __init__(self, input_channels, squeeze_channels, activation=nn.ReLU, scale_activation=nn.Sigmoid):
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def _scale(self, input: Tensor) -> Tensor:
        scale = self.avgpool(input)
        return self.scale_activation(self.fc2(self.activation(self.fc1(scale))))

    def forward(self, input: Tensor) -> Tensor:
        return self._scale(input) * input


class InvertedResidual(nn.Module):
    def __init__(self, cin, exp, cout, k, s, use_se, act):
        super().__init__()
        self.use_res_connect = s == 1 and cin == cout
        layers: list[nn.Module] = []
        if exp != cin:
            layers.append(Conv2dNormActivation(cin, exp, 1, activation_layer=act))
        layers.append(Conv2dNormActivation(exp, exp, k, s, groups=exp, activation_layer=act))
        if use_se:
            layers.append(
                SqueezeExcitation(
                    exp, _make_divisible(exp // 4, 2), scale_activation=partial(nn.Hardsigmoid, inplace=True)
                )
            )
        layers.append(Conv2dNormActivation(exp, cout, 1, activation_layer=None))
        self.block = nn.Sequential(*layers)

    def forward(self, x):
        result = self.block(x)
        if self.use_res_connect:
            result += x
        return result


class StochasticDepth(nn.Module):
    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, input):
        if not self.training or self.p == 0.0:
            return input
        survival = 1.0 - self.p
        size = [input.shape[0]] + [1] * (input.ndim - 1)
        noise = torch.empty(size, dtype=input.dtype, device=input.device)
        noise = noise.bernoulli_(survival)
        noise.div_(survival)
        return input * noise

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(p={self.p}, mode={self.mode})"


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        x = x.permute(0, 2, 3, 1)
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class CNBlock(nn.Module):
    def __init__(self, dim, layer_scale, p=0.0, norm_layer=None):
        super().__init__()
        if norm_layer is None:
            norm_layer = partial(nn.LayerNorm, eps=1e-6)
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim, bias=True),
            LayerNorm2d(dim, eps=1e-6),
            nn.Conv2d(dim, 2 * dim, 1),
            nn.GELU(),
            nn.Conv2d(2 * dim, dim, 1),
        )
        self.layer_scale = nn.Parameter(torch.ones(dim, 1, 1) * layer_scale)
        self.stochastic_depth = StochasticDepth(p, "row")

    def forward(self, input):
        result = self.layer_scale * self.block(input)
        result = self.stochastic_depth(result)
        result += input
        return result


class _DenseLayer(nn.Module):
    def __init__(self, cin, growth):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(cin)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(cin, growth, kernel_size=3, padding=1, bias=False)

    def forward(self, input):
        prev_features = [input] if isinstance(input, Tensor) else input
        return self.conv1(self.relu1(self.norm1(torch.cat(prev_features, 1))))


class _DenseBlock(nn.ModuleDict):
    def __init__(self, num_layers, cin, growth):
        super().__init__()
        for i in range(num_layers):
            self.add_module("denselayer%d" % (i + 1), _DenseLayer(cin + i * growth, growth))

    def forward(self, init_features):
        features = [init_features]
        for name, layer in self.items():
            features.append(layer(features))
        return torch.cat(features, 1)


class Net(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.features = nn.Sequential(
            Conv2dNormActivation(1, 4, stride=2, activation_layer=nn.Hardswish),
            InvertedResidual(4, 8, 4, 3, 1, True, nn.Hardswish),
            InvertedResidual(4, 8, 6, 5, 2, False, nn.ReLU6),
            CNBlock(6, 0.5),
            _DenseBlock(2, 6, 2),
        )
        self.classifier = nn.Sequential(
            nn.Linear(10, 8),
            nn.Hardswish(inplace=True),
            nn.Dropout(p=0.0, inplace=True),
            nn.Linear(8, classes),
        )
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                fan_out = m.kernel_size[0] * m.kernel_size[1] * m.out_channels
                nn.init.normal_(m.weight, 0, math.sqrt(2.0 / (fan_out // m.groups)))
                if m.bias is not None:
                    nn.init.zeros_(m.bias)
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.ones_(m.weight)
                nn.init.zeros_(m.bias)

    def forward(self, x):
        x = self.features(x)
        x = x.mean([2, 3])
        x = torch.flatten(x, 1)
        return self.classifier(x)


def distillation_loss(student, teacher, labels, T=2.0, alpha=0.5):
    soft = (
        F.kl_div(F.log_softmax(student / T, dim=1), F.softmax(teacher / T, dim=1), reduction="batchmean")
        * T
        * T
    )
    return alpha * soft + (1 - alpha) * F.cross_entropy(student, labels)


def main(make, initialize):
    out = []
    teacher, student = Net(), Net()
    initialize(teacher), initialize(student)
    with torch.no_grad():
        for p in teacher.parameters():
            p.add_(0.1 * torch.sin(p))
    teacher.eval()
    x = torch.tensor(make("x", (4, 1, 12, 12)), dtype=torch.float32)
    y = torch.tensor(make("y", (4,), high=3))
    opt = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9, weight_decay=4e-5)
    for i in range(4):
        with torch.no_grad():
            target = teacher(x)
        loss = distillation_loss(student(x), target, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        out.append(loss.item())
    student.eval()
    out += student(x).flatten().tolist()
    assert (
        len(
            [
                m
                for m in student.modules()
                if isinstance(m, nn.Conv2d) and m.groups == m.in_channels and m.groups > 1
            ]
        )
        == 3
    )
    assert repr(student.features[3].stochastic_depth) == "StochasticDepth(p=0.0, mode=row)"
    out.append(sum(p.numel() for p in student.parameters()))
    macs = {}

    def count(name):
        def hook(module, args, output):
            macs[name] = output.shape[2] * output.shape[3] * module.weight.numel()

        return hook

    handles = [
        m.register_forward_hook(count(n)) for n, m in student.named_modules() if isinstance(m, nn.Conv2d)
    ]
    student(x)
    for h in handles:
        h.remove()
    out.append(sum(macs.values()))
    return out
