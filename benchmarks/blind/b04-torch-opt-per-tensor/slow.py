"""DQN-like agent on a toy chain, many small heads."""
import argparse
import random
import time
from collections import deque

import torch
from torch import nn
import torch.nn.functional as F

from optim_s import LayerwiseAdam


class QNet(nn.Module):
    def __init__(self, obs, actions, width=32, depth=24):
        super().__init__()
        self.inp = nn.Linear(obs, width)
        self.mid = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.value, self.adv = nn.Linear(width, 1), nn.Linear(width, actions)

    def forward(self, x):
        x = torch.relu(self.inp(x))
        for m in self.mid:
            x = x + 0.1 * torch.relu(m(x))
        a = self.adv(x)
        return self.value(x) + a - a.mean(-1, keepdim=True)


class Replay:
    def __init__(self, size):
        self.buf = deque(maxlen=size)

    def add(self, *row):
        self.buf.append(row)

    def sample(self, n):
        s, a, r, s2 = zip(*random.sample(self.buf, n))
        return torch.stack(s), torch.tensor(a), torch.tensor(r), torch.stack(s2)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--obs", type=int, default=8)
    p.add_argument("--updates", type=int, default=100)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--gamma", type=float, default=0.97)
    a = p.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    net, target = QNet(a.obs, 4), QNet(a.obs, 4)
    target.load_state_dict(net.state_dict())
    opt = LayerwiseAdam(net, 1e-3, 0.97)
    replay = Replay(5000)
    state = torch.randn(a.obs)
    for _ in range(500):
        act = random.randrange(4)
        nxt = 0.9 * state + 0.1 * torch.randn(a.obs) + 0.05 * (act - 1.5)
        replay.add(state, act, float(nxt.mean()), nxt)
        state = nxt
    t0 = None
    for u in range(a.updates):
        if u == 20:
            t0 = time.perf_counter()
        s, act, r, s2 = replay.sample(a.batch)
        with torch.no_grad():
            y = r + a.gamma * target(s2).max(1).values
        q = net(s).gather(1, act[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(q, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if u % 100 == 0:
            target.load_state_dict(net.state_dict())
            print(f"update {u} td {loss.item():.5f}")
    print(f"ms/step {1e3 * (time.perf_counter() - t0) / (a.updates - 20):.2f}")


if __name__ == "__main__":
    main()
