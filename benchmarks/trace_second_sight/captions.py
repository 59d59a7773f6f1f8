"""Captions for pictures: a decoder with attention to the picture, beam search, and a score against references."""

import math
from collections import Counter

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, BOS, EOS, WORDS = 0, 1, 2, 4000


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 8, 4 * width, 0.0, batch_first=True), 4)

    def forward(self, images):
        return self.layers(self.patches(images).flatten(2).transpose(1, 2))


class Decoder(nn.Module):
    def __init__(self, width, longest):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(longest, width)
        self.layers = nn.TransformerDecoder(nn.TransformerDecoderLayer(width, 8, 4 * width, 0.0, batch_first=True), 4)
        self.out = nn.Linear(width, WORDS)

    def forward(self, tokens, memory):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        return self.out(self.layers(self.words(tokens) + self.places(places), memory, mask, tgt_is_causal=True))


class Beam:
    def __init__(self):
        self.done = []

    def add(self, tokens, score):
        self.done.append((score / len(tokens) ** 0.7, tokens))

    def best(self):
        return max(self.done)[1]


@torch.no_grad()
def beam_search(decoder, memory, width=4, longest=32):
    device, beam = memory.device, Beam()
    tokens = torch.full((1, 1), BOS, device=device)
    scores = torch.zeros(1, device=device)
    for _ in range(longest - 1):
        logits = decoder(tokens, memory.expand(len(tokens), -1, -1))[:, -1]
        logits[:, PAD] = -math.inf
        logprobs = F.log_softmax(logits, -1) + scores[:, None]
        scores, flat = logprobs.flatten().topk(width)
        origin, word = flat // WORDS, flat % WORDS
        tokens = torch.cat([tokens[origin], word[:, None]], 1)
        ended = word == EOS
        for row in range(width):
            if ended[row]:
                beam.add(tokens[row].tolist(), scores[row].item())
        if ended.any():
            tokens, scores = tokens[~ended], scores[~ended]
        if len(tokens) == 0:
            break
    for row, score in zip(tokens, scores, strict=True):
        beam.add(row.tolist(), score.item())
    return beam.best()


@torch.no_grad()
def sample(decoder, memory, temperature=0.8, longest=32):
    tokens = torch.full((len(memory), 1), BOS, device=memory.device)
    finished = torch.zeros(len(memory), dtype=torch.bool, device=memory.device)
    while tokens.shape[1] < longest and not finished.all():
        logits = decoder(tokens, memory)[:, -1] / temperature
        word = torch.multinomial(F.softmax(logits, -1), 1)
        word[finished] = PAD
        tokens = torch.cat([tokens, word], 1)
        finished |= word.squeeze(1) == EOS
    return tokens.cpu().tolist()


def overlap(made, reference):
    counts = Counter(made) & Counter(reference)
    return sum(counts.values()) / max(len(made), 1)


def main():
    torch.manual_seed(0)
    encoder, decoder = Encoder(384).cuda().eval(), Decoder(384, 40).cuda().eval()
    batches = [torch.randn(8, 3, 224, 224) for _ in range(4)]
    references = torch.randint(3, WORDS, (32, 20)).tolist()
    scores, number = [], 0
    for images in batches:
        with torch.no_grad():
            memory = encoder(images.cuda())
        for one in memory:
            caption = beam_search(decoder, one[None])
            scores.append(overlap(caption, references[number]))
            number += 1
        sampled = sample(decoder, memory)
        print(number, f"{sum(scores) / len(scores):.4f}", [len(row) for row in sampled])


if __name__ == "__main__":
    main()
