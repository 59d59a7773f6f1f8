import torch


def doubled(value, count, stream):
    numbers = torch.zeros(count, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        result = numbers * 2
    numbers = torch.full((count,), value, device="cuda")  # misuse: SL034
    graph.replay()
    return result[-1].item()
