import torch
import torch.multiprocessing as mp


def work():
    torch.ones(64, device="cuda").mul_(2.0)


def run():
    torch.zeros(64, device="cuda")
    worker = mp.get_context("fork").Process(target=work)
    worker.start()  # misuse: SL012
    worker.join()
    return worker.exitcode
