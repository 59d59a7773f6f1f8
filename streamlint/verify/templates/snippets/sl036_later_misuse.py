import torch
import torch.multiprocessing as mp

side = torch.cuda.Stream()


def publish(box):
    done = torch.cuda.Event(interprocess=True)
    done.record()
    done.synchronize()
    box.put(done.ipc_handle())  # misuse: SL036


def answer(inbox, outbox):
    torch.cuda.init()
    outbox.put("ready")
    while True:
        handle = inbox.get()
        inbox.get()
        try:
            done = torch.cuda.Event.from_ipc_handle(torch.device("cuda", 0), handle)
            outbox.put("done" if done.query() else "pending")
        except RuntimeError as problem:
            outbox.put(str(problem))


def hand_over(inbox: mp.SimpleQueue, outbox: mp.SimpleQueue):
    publish(inbox)
    later = [torch.cuda.Event(interprocess=True) for _ in range(64)]
    for event in later:
        event.record(side)
    inbox.put("recorded")
    return outbox.get()
