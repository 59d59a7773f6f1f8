import torch
from torch.utils.data import DataLoader, Dataset


class Frames(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.full((256,), float(index)).cuda()  # misuse: SL025


def first():
    loader = DataLoader(Frames(), batch_size=2, num_workers=1, multiprocessing_context="fork")
    return next(iter(loader)).cuda().sum().item()
