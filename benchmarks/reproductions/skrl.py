"""skrl 2.1.1: TD3 reads up to eleven numbers in each gradient step, for a tracker that is written at intervals (SL020)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from . import milliseconds, repaired

PACKAGE, VERSION = "skrl", "2.1.1"
STANDS_IN = ""
ALONE = True
STEPS = 300
REPAIR = {"policy_loss.item())": "policy_loss.detach())", "critic_loss.item())": "critic_loss.detach())"} | {
    f"torch.{kind}({values}).item())": f"torch.{kind}({values}).detach())"
    for kind in ("max", "min", "mean")
    for values in ("critic_1_values", "critic_2_values", "target_values")
}


def run(tree: Path) -> dict[str, Any]:
    """300 gradient steps of ``update`` with hidden layers of 512 and 256, and of 2048 and 2048; batches of 4,096."""
    sys.path.insert(0, str(tree))
    import gymnasium
    import torch
    from skrl.agents.torch.td3 import td3
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import DeterministicMixin, Model

    mended = repaired(td3, REPAIR)
    observations = gymnasium.spaces.Box(-1, 1, (24,))
    actions = gymnasium.spaces.Box(-1, 1, (4,))

    class Network(DeterministicMixin, Model):  # type: ignore[misc]
        def __init__(self, reads_actions: bool, first: int, second: int) -> None:
            Model.__init__(self, observation_space=observations, action_space=actions, device="cuda")
            DeterministicMixin.__init__(self)
            self.reads_actions = reads_actions
            width, out = (28, 1) if reads_actions else (24, 4)
            relu = torch.nn.ReLU
            self.net = torch.nn.Sequential(
                torch.nn.Linear(width, first), relu(), torch.nn.Linear(first, second), relu(), torch.nn.Linear(second, out)
            )

        def compute(self, inputs: Any, role: str) -> Any:
            given = [inputs["observations"], inputs["taken_actions"]] if self.reads_actions else [inputs["observations"]]
            return self.net(torch.cat(given, dim=1)), {}

    def agent(module: Any, hidden: tuple[int, int]) -> Any:
        models = {
            name: Network("critic" in name, *hidden)
            for name in ("policy", "target_policy", "critic_1", "critic_2", "target_critic_1", "target_critic_2")
        }
        memory = RandomMemory(memory_size=10_000, num_envs=1, device="cuda")
        config = {"batch_size": 4096, "gradient_steps": STEPS, "experiment": {"write_interval": 0, "checkpoint_interval": 0}}
        made = module.TD3(models=models, memory=memory, observation_space=observations, action_space=actions, device="cuda", cfg=config)
        made.init()
        for _ in range(6_000):
            pair = torch.rand(2, 1, 24, device="cuda")
            memory.add_samples(
                observations=pair[0],
                next_observations=pair[1],
                states=None,
                next_states=None,
                actions=torch.rand(1, 4, device="cuda"),
                rewards=torch.rand(1, 1, device="cuda"),
                terminated=torch.zeros(1, 1, dtype=torch.bool, device="cuda"),
            )
        made.enable_models_training_mode(True)
        return made

    def steps(one: Any) -> int:
        one.update(timestep=0, timesteps=1)
        one.tracking_data.clear()
        return STEPS

    outcomes = {}
    for hidden in ((512, 256), (2048, 2048)):
        released, other = agent(td3, hidden), agent(mended, hidden)
        outcomes[f"skrl/agents/torch/td3/td3.py:432, {hidden[0]}, {hidden[1]}, batch 4096"] = milliseconds(
            torch, lambda one=released: steps(one), lambda one=other: steps(one)
        )
    return outcomes
