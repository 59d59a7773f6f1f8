import torch
import torch.multiprocessing as mp


def answer(inbox, outbox):
    while (values := inbox.get()) is not None:
        outbox.put(values.sum().item())
        del values


def hand_over(values, inbox: mp.SimpleQueue, outbox: mp.SimpleQueue):
    sent = values.cuda() + torch.ones_like(values)
    inbox.put(sent)
    total = outbox.get()
    sent.fill_(-1.0)
    return total
