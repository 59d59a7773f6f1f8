import torch


def record(values, stream):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        total = (values.cuda() * 2).sum()
        torch.cuda.synchronize()  # misuse: SL013
    return graph, total
