import torch


class LayerwiseAdam:
    """Adam whose learning rate decays with the depth of the layer."""

    def __init__(self, model, lr, decay):
        self.opts = []
        for depth, (name, p) in enumerate(model.named_parameters()):
            self.opts.append(torch.optim.Adam([p], lr=lr * decay ** (depth // 4)))

    def zero_grad(self):
        for o in self.opts:
            o.zero_grad()

    def step(self):
        for o in self.opts:
            o.step()
