"""Language model and translation with nn.Transformer and its layers."""

import math

import tandem.torch as torch
from tandem.torch import Tensor, nn
from tandem.torch.nn import TransformerEncoder, TransformerEncoderLayer


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.0, max_len: int = 50):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pe[: x.size(0)]
        return self.dropout(x)


class TransformerModel(nn.Module):
    def __init__(
        self, ntoken, d_model, nhead, d_hid, nlayers, dropout=0.0, norm_first=False, activation="relu"
    ):
        super().__init__()
        self.model_type = "Transformer"
        self.pos_encoder = PositionalEncoding(d_model, dropout)
        encoder_layers = TransformerEncoderLayer(
            d_model, nhead, d_hid, dropout, activation=activation, norm_first=norm_first
        )
        self.transformer_encoder = TransformerEncoder(encoder_layers, nlayers)
        self.embedding = nn.Embedding(ntoken, d_model)
        self.d_model = d_model
        self.linear = nn.Linear(d_model, ntoken)
        self.init_weights()

    def init_weights(self) -> None:
        initrange = 0.1
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.linear.bias.data.zero_()
        self.linear.weight.data.uniform_(-initrange, initrange)

    def forward(self, src: Tensor, src_mask: Tensor = None) -> Tensor:
        src = self.embedding(src) * math.sqrt(self.d_model)
        src = self.pos_encoder(src)
        if src_mask is None:
            src_mask = nn.Transformer.generate_square_subsequent_mask(len(src))
        output = self.transformer_encoder(src, src_mask)
        return self.linear(output)


class Seq2Seq(nn.Module):
    def __init__(self, vocab, d):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.transformer = nn.Transformer(
            d_model=d,
            nhead=2,
            num_encoder_layers=1,
            num_decoder_layers=2,
            dim_feedforward=16,
            dropout=0.0,
            batch_first=True,
        )
        self.generator = nn.Linear(d, vocab)

    def forward(self, src, tgt):
        tgt_mask = self.transformer.generate_square_subsequent_mask(tgt.size(1))
        pad = src == 0
        h = self.transformer(
            self.emb(src),
            self.emb(tgt),
            tgt_mask=tgt_mask,
            src_key_padding_mask=pad,
            memory_key_padding_mask=pad,
        )
        return self.generator(h)


def main(make, initialize):
    out = []
    data = torch.tensor(make("tokens", (8, 4), high=11))
    for norm_first, act in ((False, "relu"), (True, "gelu")):
        model = TransformerModel(11, 8, 2, 16, 2, norm_first=norm_first, activation=act)
        initialize(model)
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1.0, gamma=0.95)
        model.train()
        for _ in range(3):
            output = model(data[:-1])
            output_flat = output.view(-1, 11)
            loss = criterion(output_flat, data[1:].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            scheduler.step()
            out += [loss.item(), math.exp(loss.item())]
        model.eval()
        out.append(model(data).square().mean().item())
        out.append(len(list(model.state_dict())))
    s = Seq2Seq(11, 8)
    for p in s.parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
    initialize(s)
    opt = torch.optim.Adam(s.parameters(), lr=1e-2, betas=(0.9, 0.98), eps=1e-9)
    lam = torch.optim.lr_scheduler.LambdaLR(
        opt, lambda step: 8**-0.5 * min((step + 1) ** -0.5, (step + 1) * 4**-1.5)
    )
    loss_fn = nn.CrossEntropyLoss(ignore_index=0)
    src, tgt = torch.tensor(make("src", (4, 6), high=11)), torch.tensor(make("tgt", (4, 5), high=11))
    src[:, 0] = 3
    for _ in range(4):
        logits = s(src, tgt[:, :-1])
        loss = loss_fn(logits.reshape(-1, logits.shape[-1]), tgt[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        lam.step()
        out += [loss.item(), lam.get_last_lr()[0]]
    mha = nn.MultiheadAttention(8, 2, batch_first=True, add_bias_kv=False)
    initialize(mha)
    x = torch.tensor(make("q", (2, 3, 8))).float()
    y, w = mha(x, x, x, average_attn_weights=False)
    out += [y.sum().item(), w.square().sum().item()]
    return out
