"""Updates of PPO: the approximate divergence is read after each minibatch, to end early."""

import numpy
import torch
from torch import nn


def make():
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(64, 2048), nn.Tanh(), nn.Linear(2048, 2048), nn.Tanh(), nn.Linear(2048, 8)).cuda()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-6)
    seen = torch.randn(32768, 64, device="cuda")
    actions = torch.randint(0, 8, (32768,), device="cuda")
    return policy, optimizer, seen, actions, torch.randn(32768, device="cuda")


def logprob_of(policy, seen, actions):
    return torch.log_softmax(policy(seen), 1).gather(1, actions[:, None]).squeeze(1)


def run(made, epochs=8, size=4096):
    policy, optimizer, seen, actions, gains = made
    random = numpy.random.default_rng(0)
    with torch.no_grad():
        old = logprob_of(policy, seen, actions)
    for _ in range(epochs):
        order = torch.from_numpy(random.permutation(len(seen))).pin_memory().to("cuda", non_blocking=True)
        for start in range(0, len(seen), size):
            rows = order[start : start + size]
            difference = logprob_of(policy, seen[rows], actions[rows]) - old[rows]
            ratio = difference.exp()
            gain = gains[rows]
            loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            divergence = ((ratio - 1) - difference).mean()
            # REPAIR if start + size >= len(seen) and divergence.item() > 10.0:
            if divergence.item() > 10.0:  # STALL
                break
    return loss.item()


if __name__ == "__main__":
    print(run(make()))
