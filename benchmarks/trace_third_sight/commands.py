"""Spoken commands are classified from spectrograms: mixed precision, clipped gradients, an average of the weights, validation."""

import argparse
import copy
import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Commands(Dataset):
    def __init__(self, count, classes, train, seed):
        rng = np.random.default_rng(seed)
        self.waves = rng.standard_normal((count, 8000)).astype(np.float32)
        self.labels = rng.integers(0, classes, count)
        self.train = train

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        wave = self.waves[i]
        if self.train:
            wave = np.roll(wave, random.randint(-400, 400))
        return torch.from_numpy(wave), int(self.labels[i])


class Spectrogram(nn.Module):
    def __init__(self, n_fft=256, hop=64):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))

    def forward(self, wave):
        spec = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True)
        return torch.log1p(spec.abs()).unsqueeze(1)


class Classifier(nn.Module):
    def __init__(self, classes, width=48):
        super().__init__()
        self.spec = Spectrogram()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.Conv2d(2 * width, 4 * width, 3, stride=2, padding=1),
            nn.BatchNorm2d(4 * width),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(4 * width, classes)

    def forward(self, wave):
        return self.head(self.drop(self.features(self.spec(wave)).flatten(1)))


class Ema:
    def __init__(self, model, decay=0.999):
        self.model, self.decay = copy.deepcopy(model).eval(), decay

    @torch.no_grad()
    def update(self, model):
        source = model.state_dict()
        for name, value in self.model.state_dict().items():
            if value.dtype.is_floating_point:
                value.mul_(self.decay).add_(source[name], alpha=1 - self.decay)
            else:
                value.copy_(source[name])


def train_epoch(model, ema, loader, criterion, optimizer, scaler, scheduler, device, log_every):
    model.train()
    running, correct, seen = 0.0, 0, 0
    for step, (wave, label) in enumerate(loader):
        wave, label = wave.to(device), label.to(device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            scores = model(wave)
            loss = criterion(scores, label)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        ema.update(model)
        running += loss.item() * wave.size(0)
        correct += (scores.argmax(1) == label).sum().item()
        seen += wave.size(0)
        if step % log_every == 0:
            print(f"  step {step}: loss {running / seen:.3f}, norm {norm:.2f}, scale {scaler.get_scale():.0f}")
    return running / seen, correct / seen


@torch.inference_mode()
def evaluate(model, loader, criterion, device, classes):
    model.eval()
    confusion = torch.zeros(classes, classes, dtype=torch.long)
    total = 0.0
    for wave, label in loader:
        scores = model(wave.to(device))
        total += criterion(scores, label.to(device)).item() * len(label)
        for t, p in zip(label, scores.argmax(1).cpu(), strict=False):
            confusion[t, p] += 1
    return total / len(loader.dataset), confusion.diag().sum().item() / confusion.sum().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--classes", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda")
    train = DataLoader(Commands(4096, args.classes, True, 0), args.batch_size, shuffle=True, drop_last=True)
    valid = DataLoader(Commands(1024, args.classes, False, 1), 2 * args.batch_size)
    model = Classifier(args.classes).to(device)
    ema = Ema(model)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=args.epochs * len(train))
    scaler = torch.amp.GradScaler("cuda")
    best = 0.0
    for epoch in range(args.epochs):
        start = time.time()
        loss, accuracy = train_epoch(model, ema, train, criterion, optimizer, scaler, scheduler, device, 20)
        valid_loss, valid_accuracy = evaluate(ema.model, valid, criterion, device, args.classes)
        print(f"{epoch}: {loss:.3f} {accuracy:.1%} / {valid_loss:.3f} {valid_accuracy:.1%} in {time.time() - start:.1f} s")
        if valid_accuracy > best:
            best = valid_accuracy
            state = {name: value.cpu() for name, value in ema.model.state_dict().items()}
            torch.save(state, "/tmp/commands.pt")


if __name__ == "__main__":
    main()
