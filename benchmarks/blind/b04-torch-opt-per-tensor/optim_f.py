import torch


def LayerwiseAdam(model, lr, decay):
    """Adam whose learning rate decays with the depth of the layer."""
    params = list(model.parameters())
    lrs = [lr * decay ** (i // 4) for i in range(len(params))]
    groups = [{"params": [p for p, r in zip(params, lrs) if r == v], "lr": v} for v in dict.fromkeys(lrs)]
    return torch.optim.Adam(groups, fused=True)
