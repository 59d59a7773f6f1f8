import torch
import torch.multiprocessing as mp


def send(box, done):
    box.put(torch.ones(64, device="cuda"))
    done.wait()


def run():
    context = mp.get_context("forkserver")
    first, second, done = context.SimpleQueue(), context.SimpleQueue(), context.Event()
    sender = context.Process(target=send, args=(first, done), daemon=True)
    sender.start()
    received = first.get()
    try:
        second.put(received.clone())
    finally:
        del received
        done.set()
        sender.join()
