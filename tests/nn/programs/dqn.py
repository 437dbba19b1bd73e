"""Deep Q-learning on a small walk: replay memory, a target network with soft updates, Huber loss, AMSGrad."""

import random
from collections import deque, namedtuple

import numpy as np
import tandem as torch
import tandem.nn as nn
import tandem.nn.functional as F
import tandem.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
BATCH_SIZE, GAMMA, TAU = 8, 0.9, 0.1


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 16)
        self.layer2 = nn.Linear(16, n_actions)

    def forward(self, x):
        return self.layer2(F.relu(self.layer1(x)))


def observe(position):
    return torch.tensor([[position / 5.0, 1.0 if position > 0 else -1.0]], dtype=torch.float32)


def optimize_model(memory, policy_net, target_net, optimizer):
    batch = Transition(*zip(*random.sample(memory, BATCH_SIZE)))
    is_final = torch.tensor([s is None for s in batch.next_state])
    next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_batch = torch.cat(batch.state)
    action_batch = torch.cat(batch.action)
    reward_batch = torch.cat(batch.reward)
    q = torch.take_along_dim(policy_net(state_batch), action_batch, 1)
    next_values = torch.zeros(BATCH_SIZE)
    with torch.no_grad():
        next_values[~is_final] = torch.amax(target_net(next_states), dim=1)
    expected = next_values * GAMMA + reward_batch
    loss = nn.SmoothL1Loss()(q, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


def main(initialize, steps=30):
    random.seed(5)
    policy_net, target_net = DQN(2, 2), DQN(2, 2)
    initialize(policy_net)
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = optim.AdamW(policy_net.parameters(), lr=1e-2, amsgrad=True)
    memory, position, losses = deque(maxlen=100), 0, []
    for _ in range(steps):
        state = observe(position)
        if random.random() < 0.5:
            with torch.no_grad():
                action = policy_net(state).argmax(dim=1).reshape(1, 1)
        else:
            action = torch.tensor([[random.randrange(2)]], dtype=torch.int64)
        position += 2 * action.item() - 1
        is_over = abs(position) >= 3
        reward = torch.tensor([float(position)])
        memory.append(Transition(state, action, None if is_over else observe(position), reward))
        position = 0 if is_over else position
        if len(memory) >= BATCH_SIZE:
            losses.append(optimize_model(memory, policy_net, target_net, optimizer))
        target, policy = target_net.state_dict(), policy_net.state_dict()
        for key in policy:
            target[key] = policy[key] * TAU + target[key] * (1 - TAU)
        target_net.load_state_dict(target)
    return losses, np.round(target_net(observe(1)).tolist(), 4).tolist()
