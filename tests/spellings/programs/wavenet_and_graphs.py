"""WaveNet, and graph networks: convolutions, attention, messages along edges."""

import math

import tandem.torch as torch
import tandem.torch.nn as nn
import tandem.torch.nn.functional as F
from tandem.torch.nn.modules.module import Module
from tandem.torch.nn.parameter import Parameter


class CausalConv1d(nn.Conv1d):
    def __init__(self, in_channels, out_channels, kernel_size, dilation=1, **kwargs):
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            padding=(kernel_size - 1) * dilation,
            dilation=dilation,
            **kwargs,
        )

    def forward(self, input):
        result = super().forward(input)
        if self.padding[0] != 0:
            return result[:, :, : -self.padding[0]]
        return result


class WaveNetBlock(nn.Module):
    def __init__(self, res, skip, kernel, dilation):
        super().__init__()
        self.filter = CausalConv1d(res, res, kernel, dilation)
        self.gate = CausalConv1d(res, res, kernel, dilation)
        self.res, self.skip = nn.Conv1d(res, res, 1), nn.Conv1d(res, skip, 1)

    def forward(self, x):
        z = torch.tanh(self.filter(x)) * torch.sigmoid(self.gate(x))
        return x + self.res(z), self.skip(z)


class WaveNet(nn.Module):
    def __init__(self, classes=8, res=4, skip=6, layers=3):
        super().__init__()
        self.input = CausalConv1d(1, res, 2)
        self.blocks = nn.ModuleList(WaveNetBlock(res, skip, 2, 2**i) for i in range(layers))
        self.end = nn.Sequential(nn.ReLU(), nn.Conv1d(skip, skip, 1), nn.ReLU(), nn.Conv1d(skip, classes, 1))

    def forward(self, x):
        x = self.input(x)
        skips = 0
        for block in self.blocks:
            x, s = block(x)
            skips = skips + s
        return self.end(skips)


def mu_law_encode(x, channels):
    mu = torch.tensor(channels - 1, dtype=x.dtype)
    x_mu = torch.sign(x) * torch.log1p(mu * torch.abs(x)) / torch.log1p(mu)
    return ((x_mu + 1) / 2 * mu + 0.5).to(torch.int64)


class GraphConvolution(Module):
    def __init__(self, in_features, out_features, bias=True):
        super(GraphConvolution, self).__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.spmm(adj, support) if adj.is_sparse else torch.mm(adj, support)
        return output if self.bias is None else output + self.bias

    def __repr__(self):
        return self.__class__.__name__ + " (" + str(self.in_features) + " -> " + str(self.out_features) + ")"


class GATLayer(nn.Module):
    def __init__(self, in_features, out_features, alpha=0.2):
        super().__init__()
        self.W = nn.Parameter(torch.empty(size=(in_features, out_features)))
        nn.init.xavier_uniform_(self.W.data, gain=1.414)
        self.a = nn.Parameter(torch.empty(size=(2 * out_features, 1)))
        nn.init.xavier_uniform_(self.a.data, gain=1.414)
        self.leakyrelu = nn.LeakyReLU(alpha)

    def forward(self, h, adj):
        Wh = torch.mm(h, self.W)
        n = self.W.shape[1]
        e = self.leakyrelu(torch.matmul(Wh, self.a[:n, :]) + torch.matmul(Wh, self.a[n:, :]).T)
        zero_vec = -9e15 * torch.ones_like(e)
        attention = torch.where(adj > 0, e, zero_vec)
        attention = F.softmax(attention, dim=1)
        return F.elu(torch.matmul(attention, Wh))


class EdgeConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(2 * cin, cout), nn.ReLU(), nn.Linear(cout, cout))

    def forward(self, x, edge_index):
        row, col = edge_index
        msg = self.mlp(torch.cat([x[col], x[row] - x[col]], dim=-1))
        out = x.new_zeros(x.size(0), msg.size(-1))
        count = x.new_zeros(x.size(0)).scatter_add_(0, col, torch.ones_like(col, dtype=x.dtype))
        out = out.scatter_reduce(0, col.unsqueeze(-1).expand_as(msg), msg, reduce="amax", include_self=False)
        return out, count


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.gc1, self.gc2 = GraphConvolution(4, 6), GraphConvolution(6, 3)
        self.gat, self.edge = GATLayer(4, 6), EdgeConv(4, 6)

    def forward(self, x, adj, edge_index):
        h, count = self.edge(x, edge_index)
        h = F.relu(self.gc1(x, adj)) + self.gat(x, adj) + h / count.clamp(min=1).unsqueeze(-1)
        h = F.dropout(h, 0.0, training=self.training)
        return F.log_softmax(self.gc2(h, adj), dim=1)


def normalize(mx):
    rowsum = mx.sum(1)
    r_inv = rowsum.pow(-1).flatten()
    r_inv[torch.isinf(r_inv)] = 0.0
    return torch.diag(r_inv) @ mx


def main(make, initialize):
    out = []
    net = WaveNet()
    initialize(net)
    wave = torch.tanh(torch.tensor(make("wave", (2, 1, 20)))).float()
    target = mu_law_encode(wave, 8).squeeze(1)
    opt = torch.optim.RMSprop(net.parameters(), lr=5e-3, centered=True)
    for _ in range(4):
        logits = net(wave[:, :, :-1])
        loss = F.cross_entropy(logits, target[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        out.append(loss.item())
    a = net(wave)[:, :, :10]
    wave2 = wave.clone()
    wave2[:, :, 10:] = 0
    assert torch.allclose(a, net(wave2)[:, :, :10], atol=1e-6)
    n = 7
    edges = torch.tensor(make("edges", (2, 14), high=n))
    adj = torch.zeros(n, n)
    adj[edges[0], edges[1]] = 1
    adj = adj + adj.t().multiply(adj.t() > adj) - adj.multiply(adj.t() > adj)
    adj = normalize(adj + torch.eye(n))
    x = torch.tensor(make("nodes", (n, 4))).float()
    labels = torch.tensor(make("labels", (n,), high=3))
    idx_train, idx_val = torch.LongTensor(range(4)), torch.LongTensor(range(4, 7))
    gcn = GCN()
    initialize(gcn)
    opt = torch.optim.Adam(gcn.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(4):
        gcn.train()
        opt.zero_grad()
        output = gcn(x, adj, edges)
        loss_train = F.nll_loss(output[idx_train], labels[idx_train])
        loss_train.backward()
        opt.step()
        gcn.eval()
        output = gcn(x, adj, edges)
        preds = output[idx_val].max(1, keepdim=True)[1].squeeze(1).type_as(labels)
        correct = preds.eq(labels[idx_val]).double().sum()
        out += [loss_train.item(), correct.item(), F.nll_loss(output[idx_val], labels[idx_val]).item()]
    assert str(gcn.gc1) == "GraphConvolution (4 -> 6)"
    return out
