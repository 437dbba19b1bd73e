"""Speech recognition: convolutions, a packed LSTM and CTC, with a greedy decoder."""

import tandem.torch as torch
import tandem.torch.nn as nn
import tandem.torch.nn.functional as F
from tandem.torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


class CNNLayerNorm(nn.Module):
    def __init__(self, n_feats):
        super().__init__()
        self.layer_norm = nn.LayerNorm(n_feats)

    def forward(self, x):
        x = x.transpose(2, 3).contiguous()
        x = self.layer_norm(x)
        return x.transpose(2, 3).contiguous()


class ResidualCNN(nn.Module):
    def __init__(self, in_channels, out_channels, kernel, stride, dropout, n_feats):
        super().__init__()
        self.cnn1 = nn.Conv2d(in_channels, out_channels, kernel, stride, padding=kernel // 2)
        self.cnn2 = nn.Conv2d(out_channels, out_channels, kernel, stride, padding=kernel // 2)
        self.dropout1, self.dropout2 = nn.Dropout(dropout), nn.Dropout(dropout)
        self.layer_norm1, self.layer_norm2 = CNNLayerNorm(n_feats), CNNLayerNorm(n_feats)

    def forward(self, x):
        residual = x
        x = self.cnn1(self.dropout1(F.gelu(self.layer_norm1(x))))
        x = self.cnn2(self.dropout2(F.gelu(self.layer_norm2(x))))
        x += residual
        return x


class SpeechRecognitionModel(nn.Module):
    def __init__(self, n_rnn_layers, rnn_dim, n_class, n_feats, stride=2, dropout=0.0):
        super().__init__()
        n_feats = n_feats // 2
        self.cnn = nn.Conv2d(1, 4, 3, stride=stride, padding=3 // 2)
        self.rescnn_layers = nn.Sequential(*[ResidualCNN(4, 4, 3, 1, dropout, n_feats) for _ in range(2)])
        self.fully_connected = nn.Linear(n_feats * 4, rnn_dim)
        self.rnn = nn.LSTM(rnn_dim, rnn_dim, n_rnn_layers, bidirectional=True, batch_first=True)
        self.classifier = nn.Sequential(
            nn.Linear(rnn_dim * 2, rnn_dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(rnn_dim, n_class)
        )

    def forward(self, x, lengths):
        x = self.cnn(x)
        x = self.rescnn_layers(x)
        sizes = x.size()
        x = x.view(sizes[0], sizes[1] * sizes[2], sizes[3])
        x = x.transpose(1, 2)
        x = self.fully_connected(x)
        self.rnn.flatten_parameters()
        x = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        x, _ = self.rnn(x)
        x, out_lengths = pad_packed_sequence(x, batch_first=True)
        return self.classifier(x), out_lengths


def greedy_decoder(output, lengths, blank_label=0):
    arg_maxes = torch.argmax(output, dim=2)
    decodes = []
    for i, args in enumerate(arg_maxes):
        decode = []
        for j, index in enumerate(args[: lengths[i]]):
            if index != blank_label:
                if j != 0 and index == args[j - 1]:
                    continue
                decode.append(index.item())
        decodes.append(decode)
    return decodes


def main(make, initialize):
    out = []
    frames = [12, 16, 9]
    specs = [torch.tensor(make("s%d" % n, (n, 8)), dtype=torch.float32) for n in frames]
    spectrograms = pad_sequence(specs, batch_first=True).unsqueeze(1).transpose(2, 3)
    labels = [torch.Tensor(make("l%d" % n, (n // 4,), high=5) + 1) for n in frames]
    label_lengths = [len(l) for l in labels]
    labels = pad_sequence(labels, batch_first=True).long()
    input_lengths = [(n + 1) // 2 for n in frames]
    model = SpeechRecognitionModel(2, 6, 6, 8)
    initialize(model)
    criterion = nn.CTCLoss(blank=0, zero_infinity=True)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    model.train()
    for step in range(5):
        optimizer.zero_grad()
        output, lengths = model(spectrograms, torch.tensor(input_lengths))
        output = F.log_softmax(output, dim=2)
        loss = criterion(output.transpose(0, 1), labels, lengths, torch.tensor(label_lengths))
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        out += [loss.item(), norm.item()]
    flat = torch.cat([l[:n] for l, n in zip(labels, label_lengths)])
    each = F.ctc_loss(
        output.detach().transpose(0, 1), flat, tuple(lengths.tolist()), tuple(label_lengths), reduction="none"
    )
    out += each.tolist()
    for decode in greedy_decoder(output, lengths):
        out += [len(decode)] + decode
    out.append(sum(p.numel() for p in model.parameters() if p.requires_grad))
    return out
