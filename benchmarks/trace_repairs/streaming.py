"""Sampling of one sequence whose tokens are read one by one."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width=2048, depth=2, words=32000):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.cell = nn.ModuleList(nn.GRUCell(width, width) for _ in range(depth))
        self.head = nn.Linear(width, words)

    def forward(self, token, states):
        x, after = self.embed(token), []
        for cell, state in zip(self.cell, states, strict=True):
            x = cell(x, state)
            after.append(x)
        return self.head(x), after


def make():
    torch.manual_seed(0)
    return Model().cuda()


@torch.no_grad()
def run(model, length=150):
    token = torch.zeros(1, dtype=torch.long, device="cuda")
    states = [torch.zeros(1, 2048, device="cuda") for _ in range(2)]
    text = []
    for _ in range(length):
        scores, states = model(token, states)
        top = torch.topk(scores / 0.8, 50)
        choice = torch.multinomial(torch.softmax(top.values, -1), 1)
        token = top.indices.gather(-1, choice)[:, 0]
        text.append(token.item())  # STALL
        # REPAIR text.append(token)
    # REPAIR text = torch.cat(text).tolist()
    return text


if __name__ == "__main__":
    print(run(make()))
