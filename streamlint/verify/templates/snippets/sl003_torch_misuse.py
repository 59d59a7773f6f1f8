import torch


def evaluate(rounds, count):
    for _ in range(rounds):
        scores = torch.ones(count, device="cuda")
        del scores
        torch.cuda.empty_cache()  # misuse: SL003
