import torch


def train(model, optimizer, batches, device):
    for inputs, targets in batches:
        weights = torch.tensor([0.5, 2.0], device=device)  # misuse: SL020
        loss = torch.nn.functional.cross_entropy(model(inputs), targets, weight=weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
