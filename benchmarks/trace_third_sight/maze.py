"""Proximal policy optimization in a maze of the host: rollouts of many mazes, advantages, minibatches, an early stop."""

import time

import numpy as np
import torch
from torch import nn, optim
from torch.distributions import Categorical


class Mazes:
    moves = np.array([(0, 1), (0, -1), (1, 0), (-1, 0)])

    def __init__(self, count, size, seed):
        self.rng = np.random.default_rng(seed)
        self.count, self.size, self.limit = count, size, 60
        self.walls = self.rng.random((count, size, size)) < 0.2
        self.place = np.zeros((count, 2), int)
        self.goal = np.full((count, 2), size - 1)
        self.age = np.zeros(count, int)

    def observe(self):
        seen = np.zeros((self.count, 3, self.size, self.size), np.float32)
        every = np.arange(self.count)
        seen[:, 0] = self.walls
        seen[every, 1, self.place[:, 0], self.place[:, 1]] = 1
        seen[every, 2, self.goal[:, 0], self.goal[:, 1]] = 1
        return seen

    def step(self, action):
        there = np.clip(self.place + self.moves[action], 0, self.size - 1)
        blocked = self.walls[np.arange(self.count), there[:, 0], there[:, 1]]
        self.place = np.where(blocked[:, None], self.place, there)
        self.age += 1
        won = (self.place == self.goal).all(1)
        done = won | (self.age >= self.limit)
        self.place[done], self.age[done] = 0, 0
        return self.observe(), np.where(won, 1.0, -0.01).astype(np.float32), done


class ActorCritic(nn.Module):
    def __init__(self, size, actions=4):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * size * size, 256),
            nn.ReLU(),
        )
        self.policy, self.value = nn.Linear(256, actions), nn.Linear(256, 1)

    def forward(self, seen):
        x = self.trunk(seen)
        return Categorical(logits=self.policy(x)), self.value(x).squeeze(-1)


class Rollout:
    def __init__(self):
        self.clear()

    def clear(self):
        self.seen, self.actions, self.logprobs, self.values, self.rewards, self.dones = [], [], [], [], [], []


def collect(agent, mazes, seen, steps, device, rollout, lengths):
    rollout.clear()
    for _ in range(steps):
        x = torch.as_tensor(seen, device=device)
        with torch.no_grad():
            chances, value = agent(x)
            action = chances.sample()
            logprob = chances.log_prob(action)
        seen, reward, done = mazes.step(action.cpu().numpy())
        rollout.seen.append(x)
        rollout.actions.append(action)
        rollout.logprobs.append(logprob)
        rollout.values.append(value)
        rollout.rewards.append(torch.tensor(reward, device=device))
        rollout.dones.append(torch.tensor(done, dtype=torch.float32, device=device))
        lengths.extend(reward[done])
    with torch.no_grad():
        _, last = agent(torch.as_tensor(seen, device=device))
    return seen, last


def advantages(rollout, last, gamma=0.99, lam=0.95):
    found, running = [], torch.zeros_like(last)
    following = last
    for t in reversed(range(len(rollout.rewards))):
        going = 1 - rollout.dones[t]
        delta = rollout.rewards[t] + gamma * following * going - rollout.values[t]
        running = delta + gamma * lam * going * running
        found.append(running)
        following = rollout.values[t]
    return torch.stack(found[::-1])


def update(agent, optimizer, rollout, advantage, epochs, size, clip=0.2, most_kl=0.03):
    seen, actions = torch.cat(rollout.seen), torch.cat(rollout.actions)
    old, values = torch.cat(rollout.logprobs), torch.cat(rollout.values)
    advantage = advantage.flatten()
    wanted = advantage + values
    losses, entropies = [], []
    for _ in range(epochs):
        for rows in torch.randperm(len(actions)).split(size):
            chances, value = agent(seen[rows])
            ratio = (chances.log_prob(actions[rows]) - old[rows]).exp()
            adv = advantage[rows]
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            policy_loss = -torch.min(adv * ratio, adv * ratio.clamp(1 - clip, 1 + clip)).mean()
            value_loss = (value - wanted[rows]).pow(2).mean()
            entropy = chances.entropy().mean()
            loss = policy_loss + 0.5 * value_loss - 0.01 * entropy
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
            losses.append(loss.item())
            entropies.append(entropy.item())
        with torch.no_grad():
            kl = (old[rows] - agent(seen[rows])[0].log_prob(actions[rows])).mean()
        if kl > most_kl:
            break
    return np.mean(losses), np.mean(entropies)


def main(count=256, size=10, updates=8, steps=64):
    torch.manual_seed(0)
    device = torch.device("cuda:0")
    mazes, agent = Mazes(count, size, 0), ActorCritic(size).to(device)
    optimizer, rollout = optim.Adam(agent.parameters(), lr=3e-4, eps=1e-5), Rollout()
    seen = mazes.observe()
    for number in range(updates):
        begun, lengths = time.time(), []
        seen, last = collect(agent, mazes, seen, steps, device, rollout, lengths)
        loss, entropy = update(agent, optimizer, rollout, advantages(rollout, last), 4, 2048)
        speed = count * steps / (time.time() - begun)
        print(f"update {number}: loss {loss:.3f} entropy {entropy:.2f} reward {np.mean(lengths):.2f}, {speed:.0f} steps/s")


if __name__ == "__main__":
    main()
