import torch


def train(model, optimizer, batches, device):
    weights = torch.tensor([0.5, 2.0]).pin_memory().to(device, non_blocking=True)
    for inputs, targets in batches:
        loss = torch.nn.functional.cross_entropy(model(inputs), targets, weight=weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
