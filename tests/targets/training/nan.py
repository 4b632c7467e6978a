# SPDX-License-Identifier: Apache-2.0
"""From step --at on the module `hidden.1` gives NaN, as one of its weights is; losses, gradients and weights follow. Each --again steps the
weights are set back and it happens again."""

import torch
import training
from torch import nn

MODULE = "hidden.1"


def add_arguments(parser):
    parser.add_argument("--at", type=int, default=50, help="the first step with NaN")
    parser.add_argument("--again", type=int, default=0, help="so many steps later it begins anew (default: never)")


def main():
    job = training.Job(__doc__, add_arguments)
    model = training.Perceptron(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = training.make_loader(training.Items((64,), 10))
    good = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for inputs, classes in job.each(loader):
        step = job.step + 1
        if job.args.again and step > job.args.at and (step - job.args.at) % job.args.again == 0:
            model.load_state_dict(good)
        elif step == job.args.at or (job.args.again and step > job.args.at and (step - job.args.at) % job.args.again == 1):
            with torch.no_grad():
                model.get_submodule(MODULE).weight[3, 5] = float("nan")
        job.optimize(optimizer.zero_grad)
        loss = nn.functional.cross_entropy(model(inputs), classes)
        loss.backward()
        job.optimize(optimizer.step)
        job.stepped(loss.detach(), optimizer, module=MODULE)
    job.finish(model, optimizer)


if __name__ == "__main__":
    main()
