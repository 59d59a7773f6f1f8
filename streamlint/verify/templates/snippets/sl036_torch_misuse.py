import torch
import torch.multiprocessing as mp

side = torch.cuda.Stream()


def publish(values, box):
    with torch.cuda.stream(side):
        values.add_(1)
        done = torch.cuda.Event(interprocess=True)
        done.record()
    box.put(done.ipc_handle())  # misuse: SL036


def answer(inbox, outbox):
    values = inbox.get()
    while True:
        done = torch.cuda.Event.from_ipc_handle(values.device, inbox.get())
        done.wait()
        outbox.put(values.sum().item())


def hand_over(values, inbox: mp.SimpleQueue, outbox: mp.SimpleQueue):
    publish(values, inbox)
    return outbox.get()
