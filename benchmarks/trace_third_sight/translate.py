"""A small encoder and decoder learns to turn sequences around, then writes them token by token."""

import math
import time

import torch
from torch import nn
from torch.nn import functional as F

PAD, BOS, EOS = 0, 1, 2


def batches(count, size, words, longest, generator):
    for _ in range(count):
        lengths = torch.randint(5, longest, (size,), generator=generator)
        source = torch.zeros(size, longest + 1, dtype=torch.long)
        target = torch.zeros(size, longest + 2, dtype=torch.long)
        for i, n in enumerate(lengths):
            tokens = torch.randint(3, words, (int(n),), generator=generator)
            source[i, :n] = tokens
            target[i, 0] = BOS
            target[i, 1 : n + 1] = tokens.flip(0)
            target[i, n + 1] = EOS
        yield source, target


class Positions(nn.Module):
    def __init__(self, width, most=512):
        super().__init__()
        place = torch.arange(most).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(most, width)
        table[:, 0::2], table[:, 1::2] = torch.sin(place * rate), torch.cos(place * rate)
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.size(1)]


class Translator(nn.Module):
    def __init__(self, words, width=256, heads=4, layers=3):
        super().__init__()
        self.width = width
        self.embed = nn.Embedding(words, width, padding_idx=PAD)
        self.positions = Positions(width)
        self.body = nn.Transformer(width, heads, layers, layers, 4 * width, batch_first=True, dropout=0.1)
        self.head = nn.Linear(width, words)

    def encode(self, source):
        mask = source == PAD
        return self.body.encoder(self.positions(self.embed(source) * math.sqrt(self.width)), src_key_padding_mask=mask), mask

    def decode(self, target, memory, mask):
        causal = nn.Transformer.generate_square_subsequent_mask(target.size(1), device=target.device)
        x = self.positions(self.embed(target) * math.sqrt(self.width))
        return self.head(self.body.decoder(x, memory, tgt_mask=causal, memory_key_padding_mask=mask[:, : memory.size(1)]))

    def forward(self, source, target):
        memory, mask = self.encode(source)
        return self.decode(target, memory, mask)


def train(model, optimizer, scheduler, count, size, words, longest, device):
    generator = torch.Generator().manual_seed(0)
    model.train()
    tokens, total, start = 0, 0.0, time.time()
    for step, (source, target) in enumerate(batches(count, size, words, longest, generator)):
        source, target = source.to(device, non_blocking=True), target.to(device, non_blocking=True)
        scores = model(source, target[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
        if torch.isnan(loss):
            raise RuntimeError(f"the loss is not a number in step {step}")
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        count_here = (target[:, 1:] != PAD).sum().item()
        tokens += count_here
        total += float(loss) * count_here
        if step % 25 == 24:
            print(f"{step + 1}: {total / tokens:.3f}, {tokens / (time.time() - start):.0f} tokens/s")
            tokens, total, start = 0, 0.0, time.time()


@torch.no_grad()
def greedy(model, source, most):
    memory, mask = model.encode(source)
    written = torch.full((source.size(0), 1), BOS, device=source.device)
    done = torch.zeros(source.size(0), dtype=torch.bool, device=source.device)
    for _ in range(most):
        scores = model.decode(written, memory, mask)[:, -1]
        token = scores.argmax(-1)
        token = token.masked_fill(done, PAD)
        written = torch.cat([written, token[:, None]], 1)
        done |= token == EOS
        if done.all():
            break
    return written


@torch.no_grad()
def beam(model, source, width, most):
    memory, mask = model.encode(source)
    memory, mask = memory.repeat(width, 1, 1), mask.repeat(width, 1)
    beams = [([BOS], 0.0)]
    for _ in range(most):
        rows = torch.tensor([tokens for tokens, _ in beams], device=source.device)
        chances = model.decode(rows, memory[: len(beams)], mask[: len(beams)])[:, -1].log_softmax(-1)
        values, tokens = chances.topk(width)
        found = []
        for i, (before, score) in enumerate(beams):
            for k in range(width):
                found.append(([*before, tokens[i, k].item()], score + values[i, k].item()))
        beams = sorted(found, key=lambda one: one[1], reverse=True)[:width]
        if beams[0][0][-1] == EOS:
            break
    return beams[0]


def main():
    torch.manual_seed(1)
    device, words, longest = "cuda", 500, 24
    model = Translator(words).to(device)
    optimizer = torch.optim.Adam(model.parameters(), 5e-4, betas=(0.9, 0.98))
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / 50, (50 / (step + 1)) ** 0.5))
    train(model, optimizer, scheduler, 150, 64, words, longest, device)
    model.eval()
    right = total = 0
    generator = torch.Generator().manual_seed(7)
    for source, target in batches(6, 64, words, longest, generator):
        written = greedy(model, source.to(device), longest + 1).cpu()
        for row, wanted in zip(written.tolist(), target.tolist(), strict=False):
            right += sum(a == b for a, b in zip(row, wanted, strict=False) if b > EOS)
            total += sum(b > EOS for b in wanted)
    print(f"greedy: {right / total:.1%} of the tokens")
    for source, _ in batches(4, 1, words, longest, generator):
        tokens, score = beam(model, source.to(device), 4, longest)
        print(f"beam: {len(tokens)} tokens, {score:.2f}")


if __name__ == "__main__":
    main()
