"""Generation of tokens with a cache: a penalty for repetition, nucleus sampling, stop tokens, and text that is shown as it comes."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x, cache):
        b, t, w = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        return self.out(y.transpose(1, 2).reshape(b, t, w)), (k, v)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, cache):
        y, cache = self.attention(self.n1(x), cache)
        x = x + y
        return x + self.mlp(self.n2(x)), cache


class LM(nn.Module):
    def __init__(self, words=32000, width=1024, depth=12, heads=16):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, ids, past=None):
        x = self.embed(ids)
        present = []
        for i, block in enumerate(self.blocks):
            x, kv = block(x, past[i] if past is not None else None)
            present.append(kv)
        return self.head(self.norm(x)), present


def penalize(logits, generated, penalty):
    for row in range(logits.size(0)):
        for token in set(generated[row].tolist()):
            logits[row, token] = logits[row, token] / penalty
    return logits


def top_p(logits, p):
    ordered, index = torch.sort(logits, descending=True, dim=-1)
    remove = F.softmax(ordered, dim=-1).cumsum(-1) > p
    remove[:, 1:] = remove[:, :-1].clone()
    remove[:, 0] = False
    return logits.masked_fill(remove.scatter(1, index, remove), float("-inf"))


@torch.inference_mode()
def generate(model, ids, max_new_tokens, eos, temperature=0.8, p=0.9, penalty=1.1, callback=None):
    past = None
    unfinished = torch.ones(ids.size(0), dtype=torch.long, device=ids.device)
    current = ids
    for _ in range(max_new_tokens):
        logits, past = model(current, past)
        logits = penalize(logits[:, -1].float(), ids, penalty) / temperature
        probs = F.softmax(top_p(logits, p), dim=-1)
        token = torch.multinomial(probs, num_samples=1)
        token = token * unfinished[:, None] + eos * (1 - unfinished[:, None])
        ids = torch.cat((ids, token), dim=1)
        unfinished = unfinished * (token.squeeze(1) != eos).long()
        if callback is not None:
            callback(token[:, 0].cpu())
        if unfinished.max() == 0:
            break
        current = token
    return ids


class Streamer:
    def __init__(self):
        self.shown = []

    def __call__(self, tokens):
        self.shown.append(" ".join(str(int(one)) for one in tokens))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0")
    model = LM().to(device).eval()
    prompt = torch.randint(0, 32000, (2, 24), device=device)
    streamer = Streamer()
    for _ in range(3):
        out = generate(model, prompt, 60, eos=2, callback=streamer)
    print(out.shape, len(streamer.shown))


if __name__ == "__main__":
    main()
