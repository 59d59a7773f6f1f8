"""Rollouts of PPO: values and log-probabilities go to the host step by step; the actions have to, since the environment is there."""

import numpy
import torch
from torch import nn


class Environments:
    def __init__(self, count, width):
        self.state = numpy.random.default_rng(0).standard_normal((count, width)).astype(numpy.float32)
        self.push = numpy.random.default_rng(1).standard_normal((8, width)).astype(numpy.float32)

    def step(self, actions):
        self.state = numpy.tanh(self.state * 0.99 + self.push[actions])
        return self.state, self.state[:, 0].copy(), self.state[:, 1] > 0.999


class Policy(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, 2048), nn.Tanh(), nn.Linear(2048, 2048), nn.Tanh())
        self.actor = nn.Linear(2048, 8)
        self.critic = nn.Linear(2048, 1)

    def forward(self, x):
        x = self.body(x)
        return self.actor(x), self.critic(x).squeeze(-1)


def make():
    torch.manual_seed(0)
    return Policy(32).cuda(), Environments(1024, 32)


@torch.no_grad()
def run(made, steps=128):
    policy, environments = made
    count = len(environments.state)
    values = torch.zeros(steps, count)
    # REPAIR values = torch.zeros(steps, count, device="cuda")
    logprobs = torch.zeros(steps, count)
    # REPAIR logprobs = torch.zeros(steps, count, device="cuda")
    seen = torch.from_numpy(environments.state).to("cuda")
    for step in range(steps):
        scores, value = policy(seen)
        chances = torch.distributions.Categorical(logits=scores, validate_args=False)
        action = chances.sample()
        values[step] = value  # STALL
        # REPAIR values[step] = value
        logprobs[step] = chances.log_prob(action)  # STALL
        # REPAIR logprobs[step] = chances.log_prob(action)
        state, _reward, _done = environments.step(action.cpu().numpy())
        seen = torch.from_numpy(state).to("cuda")
    return values.mean(), logprobs.mean()


if __name__ == "__main__":
    print(run(make()))
