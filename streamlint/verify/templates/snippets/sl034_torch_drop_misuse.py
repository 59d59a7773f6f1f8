import torch


def doubled(value, count, stream):
    graph = torch.cuda.CUDAGraph()
    result = capture(graph, value, count, stream)
    torch.full((count,), -1.0, device="cuda")
    graph.replay()
    return result[-1].item()


def capture(graph, value, count, stream):
    numbers = torch.full((count,), value, device="cuda")  # misuse: SL034
    with torch.cuda.graph(graph, stream=stream):
        return numbers * 2
