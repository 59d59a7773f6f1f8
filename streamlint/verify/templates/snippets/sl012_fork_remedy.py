import torch
import torch.multiprocessing as mp


def work():
    torch.ones(64, device="cuda").mul_(2.0)


def run():
    torch.zeros(64, device="cuda")
    worker = mp.get_context("forkserver").Process(target=work)
    worker.start()
    worker.join()
    return worker.exitcode
