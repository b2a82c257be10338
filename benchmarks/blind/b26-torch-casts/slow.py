"""Speech denoising with a small waveform U-Net."""
import argparse
import time

import torch

from precision_s import UNet1d


class Mixer:
    def __init__(self, n, length):
        t = torch.linspace(0, 60, length)
        self.clean = torch.stack([torch.sin(t * (1 + i / n)) for i in range(n)])[:, None]

    def batches(self, size, steps):
        for _ in range(steps):
            c = self.clean[torch.randint(len(self.clean), (size,))]
            yield c + 0.2 * torch.randn_like(c), c


def si_snr(est, ref, eps=1e-8):
    dot = (est * ref).sum(-1, keepdim=True)
    proj = dot * ref / (ref.pow(2).sum(-1, keepdim=True) + eps)
    return 10 * torch.log10(proj.pow(2).sum(-1) / ((est - proj).pow(2).sum(-1) + eps) + eps)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--length", type=int, default=8192)
    ap.add_argument("--batch", type=int, default=6)
    ap.add_argument("--steps", type=int, default=45)
    a = ap.parse_args()
    torch.manual_seed(0)
    net = UNet1d()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=30)
    took = []
    for i, (noisy, clean) in enumerate(Mixer(200, a.length).batches(a.batch, a.steps)):
        t = time.perf_counter()
        loss = -si_snr(net(noisy), clean).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step(loss.item())
        took.append(time.perf_counter() - t)
        if i % 20 == 0:
            print(f"{i:3d} si-snr {-loss.item():.2f} dB")
    print(f"ms/step {1e3 * sum(took[10:]) / len(took[10:]):.2f}")


if __name__ == "__main__":
    main()
