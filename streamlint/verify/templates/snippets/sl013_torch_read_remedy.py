import torch


def record(values, stream):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        total = (values.cuda() * 2).sum()
    graph.replay()
    return total.item()
