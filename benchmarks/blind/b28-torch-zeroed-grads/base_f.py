import time


class BaseTrainer:
    log_every = 25

    def __init__(self, model, optimizer, scheduler=None):
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler

    def loss(self, batch):
        raise NotImplementedError

    def training_step(self, batch):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(batch)
        loss.backward()
        self.optimizer.step()
        if self.scheduler is not None:
            self.scheduler.step()
        return loss.detach()

    def fit(self, batches, skip=5):
        took = []
        for i, b in enumerate(batches):
            t = time.perf_counter()
            loss = self.training_step(b)
            took.append(time.perf_counter() - t)
            if i % self.log_every == 0:
                print(f"step {i:4d}  loss {loss.item():.4f}")
        print(f"ms/step {1e3 * sum(took[skip:]) / len(took[skip:]):.2f}")
