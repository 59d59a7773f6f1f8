"""A small image network learns from labels and a larger teacher: mixed precision, an average of the weights, meters, validation."""

import copy
import math
import time
from collections import defaultdict

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, count, classes, seed):
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(count, 3, 48, 48, generator=generator)
        self.y = torch.randint(0, classes, (count,), generator=generator)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        image = self.x[index]
        if index % 2:
            image = image.flip(-1)
        return image, self.y[index]


def network(width, depth, classes):
    layers = [nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
    for level in range(depth):
        layers += [nn.Conv2d(width, width, 3, padding=1, stride=2 if level % 2 else 1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


class SmoothedValue:
    def __init__(self):
        self.total, self.count, self.values = 0.0, 0, []

    def update(self, value, n=1):
        self.total += value * n
        self.count += n
        self.values.append(value)

    @property
    def average(self):
        return self.total / max(self.count, 1)


class MetricLogger:
    def __init__(self):
        self.meters = defaultdict(SmoothedValue)

    def update(self, n=1, **values):
        for name, value in values.items():
            if isinstance(value, torch.Tensor):
                value = value.item()
            self.meters[name].update(value, n)

    def __str__(self):
        return " ".join(f"{name} {meter.average:.4f}" for name, meter in self.meters.items())


class WeightAverage:
    def __init__(self, model, decay):
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for mine, other in zip(self.module.state_dict().values(), model.state_dict().values(), strict=True):
            if mine.dtype.is_floating_point:
                mine.mul_(self.decay).add_(other, alpha=1 - self.decay)
            else:
                mine.copy_(other)


def distillation_loss(scores, wanted, labels, temperature, share):
    soft = F.kl_div(F.log_softmax(scores / temperature, 1), F.softmax(wanted / temperature, 1), reduction="batchmean")
    return share * temperature**2 * soft + (1 - share) * F.cross_entropy(scores, labels)


def hits(scores, labels):
    return (scores.argmax(1) == labels).float().mean() * 100


def train_one_epoch(student, teacher, average, loader, optimizer, scaler, scheduler, device, epoch):
    student.train()
    logger = MetricLogger()
    for step, (images, labels) in enumerate(loader):
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        with torch.no_grad(), torch.autocast("cuda", torch.float16):
            wanted = teacher(images)
        with torch.autocast("cuda", torch.float16):
            scores = student(images)
        loss = distillation_loss(scores.float(), wanted.float(), labels, 4.0, 0.7)
        if not math.isfinite(loss.item()):
            raise SystemExit(f"loss is {loss.item()}")
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(student.parameters(), 2.0)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        average.update(student)
        logger.update(len(labels), loss=loss, accuracy=hits(scores, labels), norm=norm)
        if step % 20 == 0:
            print(f"[{epoch}] {step}/{len(loader)} {logger} lr {scheduler.get_last_lr()[0]:.5f}")


@torch.inference_mode()
def evaluate(model, loader, device, classes):
    model.eval()
    logger = MetricLogger()
    right, seen = torch.zeros(classes, device=device), torch.zeros(classes, device=device)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        scores = model(images)
        logger.update(len(labels), loss=F.cross_entropy(scores, labels), accuracy=hits(scores, labels))
        for one in range(classes):
            chosen = labels == one
            right[one] += (scores.argmax(1)[chosen] == one).sum()
            seen[one] += chosen.sum()
    return logger.meters["loss"].average, (right / seen.clamp(min=1)).mean().item()


def main():
    device, classes, epochs = "cuda", 10, 3
    torch.manual_seed(0)
    train = DataLoader(Pictures(2560, classes, 0), batch_size=64, shuffle=True, pin_memory=True, drop_last=True)
    valid = DataLoader(Pictures(512, classes, 1), batch_size=64)
    teacher = network(128, 6, classes).to(device).eval()
    student = network(48, 4, classes).to(device)
    average = WeightAverage(student, 0.99)
    optimizer = torch.optim.AdamW(student.parameters(), 1e-3, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=epochs * len(train))
    scaler = torch.amp.GradScaler("cuda")
    best = 0.0
    for epoch in range(epochs):
        begun = time.time()
        train_one_epoch(student, teacher, average, train, optimizer, scaler, scheduler, device, epoch)
        loss, accuracy = evaluate(average.module, valid, device, classes)
        if accuracy > best:
            best = accuracy
            torch.save({"model": average.module.state_dict(), "epoch": epoch}, "/tmp/distilled.pt")
        print(f"epoch {epoch}: {loss:.4f} {accuracy:.3f}, {time.time() - begun:.1f} s")


if __name__ == "__main__":
    main()
