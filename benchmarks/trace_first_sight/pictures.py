"""A convolutional classifier, trained with clipped gradients and validated after each epoch, with meters and a loader of the host."""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class AverageMeter:
    def __init__(self, name):
        self.name = name
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = 0.0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


class Net(nn.Module):
    def __init__(self, classes=100, width=96):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)) for _ in range(6)
        )
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for block in self.blocks:
            x = x + block(x)
        return self.head(x.mean((2, 3)))


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        _, pred = output.topk(maxk, 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum(0) * (100.0 / target.size(0)) for k in topk]


def train_epoch(loader, model, criterion, optimizer, device, args):
    losses, top1, top5 = AverageMeter("loss"), AverageMeter("acc@1"), AverageMeter("acc@5")
    model.train()
    for i, (images, target) in enumerate(loader):
        images = images.to(device)
        target = target.to(device)
        output = model(images)
        loss = criterion(output, target)
        acc1, acc5 = accuracy(output, target, topk=(1, 5))
        losses.update(loss.item(), images.size(0))
        top1.update(acc1.item(), images.size(0))
        top5.update(acc5.item(), images.size(0))
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        if not torch.isfinite(norm):
            print("gradient is not finite, step", i)
            continue
        optimizer.step()
    return losses.avg, top1.avg


@torch.no_grad()
def validate(loader, model, criterion, device):
    losses, top1 = AverageMeter("loss"), AverageMeter("acc@1")
    model.eval()
    for images, target in loader:
        images, target = images.to(device, non_blocking=True), target.to(device, non_blocking=True)
        output = model(images)
        losses.update(criterion(output, target).item(), images.size(0))
        top1.update(accuracy(output, target)[0].item(), images.size(0))
    return losses.avg, top1.avg


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--clip", type=float, default=1.0)
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(4096, 3, 32, 32), torch.randint(0, 100, (4096,)))
    train_loader = DataLoader(data, batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(data, batch_size=args.batch_size, pin_memory=True)
    model = Net().to(device)
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    for epoch in range(args.epochs):
        start = time.time()
        loss, acc = train_epoch(train_loader, model, criterion, optimizer, device, args)
        val_loss, val_acc = validate(val_loader, model, criterion, device)
        scheduler.step()
        print(f"epoch {epoch}: {loss:.3f} {acc:.1f} / {val_loss:.3f} {val_acc:.1f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
