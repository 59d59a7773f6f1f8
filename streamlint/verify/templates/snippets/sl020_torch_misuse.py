import torch


def train(model, optimizer, batches):
    total = 0.0
    for inputs, targets in batches:
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()  # misuse: SL020
    return total
