import time
import torch
import torch.nn as nn


class Forecaster(nn.Module):
    def __init__(self, n_in=6, hidden=48):
        super().__init__()
        self.rnn = nn.GRU(n_in, hidden, batch_first=True)
        self.readout = nn.Linear(hidden, n_in)

    def forward(self, x, h):
        y, h = self.rnn(x, h)
        return self.readout(y), h


def signal(batch, length, n_in):
    t = torch.arange(length).float()[None, :, None]
    phase = torch.rand(batch, 1, n_in) * 6.28
    freq = 0.05 + 0.2 * torch.rand(batch, 1, n_in)
    return torch.sin(freq * t + phase)


def sgd_update(params, lr):
    for p in params:
        p.data.add_(p.grad, alpha=-lr)
        p.grad = None


def run(chunks=80, window=10, batch=16):
    torch.manual_seed(0)
    series = signal(batch, chunks * window + 1, 6)
    model = Forecaster()
    params = list(model.parameters())
    state = torch.zeros(1, batch, 48)
    marks = []
    for c in range(chunks):
        tic = time.perf_counter()
        seg = series[:, c * window:(c + 1) * window + 1]
        pred, state = model(seg[:, :-1], state)
        loss = (pred - seg[:, 1:]).pow(2).mean()
        loss.backward()
        state = state.detach()
        sgd_update(params, 0.1)
        marks.append(time.perf_counter() - tic)
        if c % 10 == 0:
            print("chunk", c, "mse", round(loss.item(), 5))
    return sum(marks[5:]) / len(marks[5:])


print("STEP_MS", run() * 1000)
