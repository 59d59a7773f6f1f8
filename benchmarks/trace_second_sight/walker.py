"""Proximal policy optimization of a continuous control task: rollouts in an environment of the host, then epochs of updates."""

import time
from collections import deque

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal


class Pendulums:
    def __init__(self, count, seed):
        self.random = np.random.default_rng(seed)
        self.count, self.limit = count, 200
        self.reset()

    def reset(self):
        self.angle = self.random.uniform(-np.pi, np.pi, self.count)
        self.speed = self.random.uniform(-1, 1, self.count)
        self.steps = np.zeros(self.count, int)
        return self.seen()

    def seen(self):
        return np.stack([np.cos(self.angle), np.sin(self.angle), self.speed], 1).astype(np.float32)

    def step(self, torque):
        torque = np.clip(torque[:, 0], -2, 2)
        cost = ((self.angle + np.pi) % (2 * np.pi) - np.pi) ** 2 + 0.1 * self.speed**2 + 0.001 * torque**2
        self.speed = np.clip(self.speed + (15 * np.sin(self.angle) + 3 * torque) * 0.05, -8, 8)
        self.angle = self.angle + self.speed * 0.05
        self.steps += 1
        done = self.steps >= self.limit
        self.angle[done], self.steps[done] = self.random.uniform(-np.pi, np.pi, done.sum()), 0
        return self.seen(), -cost.astype(np.float32), done


def layer(inputs, outputs, gain=2**0.5):
    made = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


class Agent(nn.Module):
    def __init__(self, seen, actions, width=256):
        super().__init__()
        self.critic = nn.Sequential(layer(seen, width), nn.Tanh(), layer(width, width), nn.Tanh(), layer(width, 1, 1.0))
        self.actor = nn.Sequential(layer(seen, width), nn.Tanh(), layer(width, width), nn.Tanh(), layer(width, actions, 0.01))
        self.logstd = nn.Parameter(torch.zeros(1, actions))

    def value(self, seen):
        return self.critic(seen).squeeze(-1)

    def act(self, seen, action=None):
        mean = self.actor(seen)
        chances = Normal(mean, self.logstd.expand_as(mean).exp())
        if action is None:
            action = chances.sample()
        return action, chances.log_prob(action).sum(1), chances.entropy().sum(1), self.value(seen)


class RunningMeanStd:
    def __init__(self):
        self.mean, self.var, self.count = 0.0, 1.0, 1e-4

    def update(self, rows):
        mean, var, count = rows.mean(), rows.var(), rows.size
        delta, total = mean - self.mean, self.count + count
        self.mean += delta * count / total
        self.var = (self.var * self.count + var * count + delta**2 * self.count * count / total) / total
        self.count = total


def main(updates=12, steps=64, envs=32, epochs=6, minibatches=8, target_kl=0.05):
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    world, agent = Pendulums(envs, 0), Agent(3, 1).to(device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4, eps=1e-5)
    scale, returns = RunningMeanStd(), deque(maxlen=100)
    seen = torch.zeros((steps, envs, 3), device=device)
    actions = torch.zeros((steps, envs, 1), device=device)
    logprobs, rewards, dones, values = (torch.zeros((steps, envs), device=device) for _ in range(4))
    next_seen, next_done = torch.Tensor(world.reset()).to(device), torch.zeros(envs).to(device)
    totals, begun = np.zeros(envs), time.time()
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = 3e-4 * (1 - update / updates)
        for step in range(steps):
            seen[step], dones[step] = next_seen, next_done
            with torch.no_grad():
                action, logprob, _, value = agent.act(next_seen)
            actions[step], logprobs[step], values[step] = action, logprob, value
            state, reward, done = world.step(action.cpu().numpy())
            scale.update(reward)
            rewards[step] = torch.tensor(reward / np.sqrt(scale.var + 1e-8)).to(device)
            next_seen, next_done = torch.Tensor(state).to(device), torch.Tensor(done.astype(np.float32)).to(device)
            totals += reward
            for index in np.flatnonzero(done):
                returns.append(totals[index])
                totals[index] = 0
        with torch.no_grad():
            advantages, last = torch.zeros_like(rewards), 0
            next_value = agent.value(next_seen)
            for t in reversed(range(steps)):
                going = 1.0 - (next_done if t == steps - 1 else dones[t + 1])
                following = next_value if t == steps - 1 else values[t + 1]
                delta = rewards[t] + 0.99 * following * going - values[t]
                advantages[t] = last = delta + 0.99 * 0.95 * going * last
            wanted = advantages + values
        flat = [one.flatten(0, 1) for one in (seen, actions, logprobs, advantages, wanted)]
        order, clipped = np.arange(steps * envs), []
        for _ in range(epochs):
            np.random.shuffle(order)
            for rows in np.split(order, minibatches):
                x, a, old, adv, ret = (one[rows] for one in flat)
                _, new, entropy, value = agent.act(x, a)
                logratio = new - old
                ratio = logratio.exp()
                with torch.no_grad():
                    approx_kl = ((ratio - 1) - logratio).mean()
                    clipped += [((ratio - 1.0).abs() > 0.2).float().mean().item()]
                adv = (adv - adv.mean()) / (adv.std() + 1e-8)
                policy_loss = torch.max(-adv * ratio, -adv * ratio.clamp(0.8, 1.2)).mean()
                loss = policy_loss - 0.01 * entropy.mean() + 0.5 * F_mse(value, ret)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
            if approx_kl > target_kl:
                break
        mean = np.mean(returns) if returns else float("nan")
        print(f"{update}: return {mean:.1f} loss {loss.item():.3f} clipped {np.mean(clipped):.2f}", f"{time.time() - begun:.1f} s")


def F_mse(value, wanted):
    return ((value - wanted) ** 2).mean()


if __name__ == "__main__":
    main()
