import torch


@torch.inference_mode()
def best(model, images):
    scores = model(images.cuda())
    host = scores.to("cpu", non_blocking=True)
    return host.numpy().argmax(axis=-1)
