import torch


def record(values, stream):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        total = (values.cuda() * 2).sum()
        host = total.item()  # misuse: SL013
    graph.replay()
    return host
