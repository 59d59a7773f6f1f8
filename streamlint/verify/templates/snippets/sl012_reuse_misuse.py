import torch
import torch.multiprocessing as mp


def answer(inbox, outbox):
    while (values := inbox.get()) is not None:
        outbox.put(values.sum().item())
        del values


def hand_over(values, inbox: mp.SimpleQueue, outbox: mp.SimpleQueue):
    sent = values.cuda() + torch.ones_like(values)
    inbox.put(sent)
    sent.fill_(-1.0)  # misuse: SL012
    return outbox.get()
