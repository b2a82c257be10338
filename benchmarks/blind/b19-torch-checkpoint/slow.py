import argparse
import math
import time

import torch
import torch.nn.functional as F

from encoder_s import CharLM


def get_batch(text, ctx, n, gen):
    i = torch.randint(len(text) - ctx - 1, (n, 1), generator=gen) + torch.arange(ctx + 1)
    chunk = text[i]
    return chunk[:, :-1], chunk[:, 1:]


def cosine(step, total, warm=5):
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / (total - warm)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--ctx", type=int, default=128)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--d", type=int, default=160)
    ap.add_argument("--depth", type=int, default=4)
    ap.add_argument("--iters", type=int, default=50)
    a = ap.parse_args()
    torch.manual_seed(1)
    gen = torch.Generator().manual_seed(1)
    text = torch.randint(96, (200_000,), generator=gen)
    model = CharLM(96, a.d, 4, a.depth, a.ctx)
    opt = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: cosine(s, a.iters))
    t0 = 0.0
    for it in range(a.iters):
        if it == 10:
            t0 = time.perf_counter()
        x, y = get_batch(text, a.ctx, a.batch, gen)
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        if it % 20 == 0:
            print(f"iter {it}: loss {loss.item():.4f} lr {sched.get_last_lr()[0]:.2e}")
    print(f"ms/step {1e3 * (time.perf_counter() - t0) / (a.iters - 10):.2f}")


if __name__ == "__main__":
    main()
