"""Mixed precision with a GradScaler and a moving average of the weights; classes are counted in a confusion matrix."""

import copy
import math

import numpy as np
import torch
from torch import nn

CLASSES = 12


class UNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        wide = 2 * width
        self.down = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(width, wide, 3, stride=2, padding=1), nn.ReLU()
        )
        self.middle = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Conv2d(wide, wide, 3, padding=1), nn.ReLU())])
        self.up = nn.Sequential(nn.ConvTranspose2d(wide, width, 2, stride=2), nn.ReLU(), nn.ConvTranspose2d(width, CLASSES, 2, stride=2))

    def forward(self, x):
        return self.up(self.middle(self.down(x)))


class ModelEma:
    def __init__(self, model, decay=0.999):
        self.module = copy.deepcopy(model).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for mine, other in zip(self.module.state_dict().values(), model.state_dict().values(), strict=True):
            mine.copy_(self.decay * mine + (1.0 - self.decay) * other)


class Confusion:
    def __init__(self, classes, device):
        self.classes = classes
        self.matrix = torch.zeros(classes, classes, dtype=torch.int64, device=device)

    def update(self, target, pred):
        known = (target >= 0) & (target < self.classes)
        index = self.classes * target[known] + pred[known]
        self.matrix += torch.bincount(index, minlength=self.classes**2).reshape(self.classes, self.classes)

    def iou(self):
        h = self.matrix.float()
        return (h.diag() / (h.sum(1) + h.sum(0) - h.diag()).clamp(min=1)).cpu().numpy()


class Trainer:
    def __init__(self, device="cuda"):
        self.device = device
        self.model = UNet().to(device)
        self.ema = ModelEma(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        self.scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
        self.criterion = nn.CrossEntropyLoss(ignore_index=255)
        self.history = []

    def batch(self, rng, size=8):
        images = rng.standard_normal((size, 3, 256, 256)).astype(np.float32)
        labels = rng.integers(0, CLASSES, (size, 256, 256))
        labels[rng.random(labels.shape) < 0.05] = 255
        return torch.from_numpy(images), torch.from_numpy(labels)

    def train(self, steps):
        rng = np.random.default_rng(0)
        batches = [self.batch(rng) for _ in range(6)]
        for step in range(steps):
            images, labels = batches[step % len(batches)]
            images = images.to(self.device, non_blocking=True)
            labels = labels.to(self.device, non_blocking=True)
            with torch.autocast("cuda", dtype=torch.float16):
                loss = self.criterion(self.model(images), labels)
            if not math.isfinite(loss.item()):
                raise RuntimeError(f"loss is {loss.item()} in step {step}")
            self.optimizer.zero_grad(set_to_none=True)
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizer)
            grad_norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=5.0)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.ema.update(self.model)
            self.history.append({"loss": float(loss), "grad_norm": float(grad_norm), "scale": self.scaler.get_scale()})

    @torch.inference_mode()
    def evaluate(self, rounds):
        rng = np.random.default_rng(1)
        confusion = Confusion(CLASSES, self.device)
        for _ in range(rounds):
            images, labels = self.batch(rng)
            scores = self.ema.module(images.to(self.device))
            confusion.update(labels.to(self.device).flatten(), scores.argmax(1).flatten())
        return confusion.iou().mean()


if __name__ == "__main__":
    torch.manual_seed(0)
    trainer = Trainer()
    trainer.train(120)
    print(trainer.history[-1], trainer.evaluate(30))
