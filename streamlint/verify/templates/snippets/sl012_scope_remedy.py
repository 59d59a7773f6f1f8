import torch
import torch.multiprocessing as mp

side = torch.cuda.Stream()


def answer(inbox, outbox):
    while (values := inbox.get()) is not None:
        outbox.put(values.sum().item())
        del values


def hand_over(values, inbox: mp.SimpleQueue, outbox: mp.SimpleQueue):
    with torch.cuda.stream(side):
        sent = values.cuda() + 1.0
        inbox.put(sent)
    return outbox.get()
