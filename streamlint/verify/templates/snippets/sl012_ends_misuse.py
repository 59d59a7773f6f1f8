import torch
import torch.multiprocessing as mp


def send(box):
    box.put(torch.ones(64, device="cuda"))  # misuse: SL012


def run():
    context = mp.get_context("forkserver")
    box = context.SimpleQueue()
    sender = context.Process(target=send, args=(box,))
    sender.start()
    sender.join()
    return box.get().sum().item()
