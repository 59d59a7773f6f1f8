"""stable-baselines3 2.9.2: DQN reads its loss in each gradient step, before the backward pass (SL020)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from . import milliseconds, repaired

PACKAGE, VERSION = "stable-baselines3", "2.9.2"
STANDS_IN = ""
ALONE = True
STEPS = 300
REPAIR = {
    "losses.append(loss.item())": "losses.append(loss.detach())",
    'self.logger.record("train/loss", np.mean(losses))': 'self.logger.record("train/loss", th.stack(losses).mean().item())',
}


def run(tree: Path) -> dict[str, Any]:
    """300 gradient steps of ``train``, with the default network and one that gives the GPU about as much to do as the host has."""
    sys.path.insert(0, str(tree))
    import gymnasium
    import numpy as np
    import stable_baselines3
    import torch
    from stable_baselines3.common.logger import configure
    from stable_baselines3.dqn import dqn

    if stable_baselines3.__version__ != VERSION:
        raise RuntimeError(f"stable_baselines3 {stable_baselines3.__version__} was imported")
    mended = repaired(dqn, REPAIR)
    outcomes = {}
    for name, widths, batch in (("64, 64, batch 32 (the defaults)", [64, 64], 32), ("2048, 2048, batch 2048", [2048, 2048], 2048)):
        agent = dqn.DQN("MlpPolicy", gymnasium.make("CartPole-v1"), device="cuda", buffer_size=20_000, policy_kwargs={"net_arch": widths})
        agent.set_logger(configure(None, []))
        assert agent.replay_buffer is not None
        generator = np.random.default_rng(0)
        for _ in range(5_000):
            now, then = generator.random((2, 1, 4), dtype=np.float32)
            agent.replay_buffer.add(now, then, np.array([[generator.integers(2)]]), np.ones(1), np.zeros(1), [{}])

        def steps(module: Any, agent: Any = agent, batch: int = batch) -> int:
            module.DQN.train(agent, STEPS, batch)
            return STEPS

        outcomes[f"stable_baselines3/dqn/dqn.py:221, {name}"] = milliseconds(torch, lambda s=steps: s(dqn), lambda s=steps: s(mended))
    return outcomes
