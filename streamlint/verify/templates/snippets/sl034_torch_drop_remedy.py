import torch


def doubled(value, count, stream):
    graph = torch.cuda.CUDAGraph()
    numbers, result = capture(graph, value, count, stream)
    torch.full((count,), -1.0, device="cuda")
    graph.replay()
    return result[-1].item() - numbers[-1].item() + value


def capture(graph, value, count, stream):
    numbers = torch.full((count,), value, device="cuda")
    with torch.cuda.graph(graph, stream=stream):
        result = numbers * 2
    return numbers, result
