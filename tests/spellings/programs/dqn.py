"""A loop of deep Q-learning: replay memory, a target network, a dueling head, and a policy gradient step."""

import random
from collections import deque, namedtuple
from itertools import count

import tandem.torch as torch
import tandem.torch.nn as nn
import tandem.torch.nn.functional as F
import tandem.torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super(DQN, self).__init__()
        self.layer1 = nn.Linear(n_observations, 16)
        self.value = nn.Linear(16, 1)
        self.advantage = nn.Linear(16, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        adv = self.advantage(x)
        return self.value(x) + adv - adv.mean(1, keepdim=True)


class Walk:
    def reset(self):
        self.position = 0
        return [0.0, 1.0]

    def step(self, action):
        self.position += 1 if action else -1
        done = abs(self.position) > 3
        reward = 1.0 if self.position > 3 else -0.1
        return [self.position / 4, 1.0 if self.position >= 0 else -1.0], reward, done


BATCH_SIZE, GAMMA, TAU = 8, 0.99, 0.05


def select_action(state, policy_net, eps):
    if random.random() > eps:
        with torch.no_grad():
            return policy_net(state).max(dim=1).indices.view(1, 1)
    return torch.tensor([[random.randrange(2)]], dtype=torch.long)


def optimize_model(memory, policy_net, target_net, optimizer):
    if len(memory) < BATCH_SIZE:
        return None
    batch = Transition(*zip(*memory.sample(BATCH_SIZE)))
    non_final_mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool)
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_batch = torch.cat(batch.state)
    action_batch = torch.cat(batch.action)
    reward_batch = torch.cat(batch.reward)
    state_action_values = policy_net(state_batch).gather(1, action_batch)
    next_state_values = torch.zeros(BATCH_SIZE)
    with torch.no_grad():
        next_state_values[non_final_mask] = target_net(non_final_next_states).max(dim=1).values
    expected = (next_state_values * GAMMA) + reward_batch
    criterion = nn.SmoothL1Loss()
    loss = criterion(state_action_values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


def soft_update(policy_net, target_net):
    target_state = target_net.state_dict()
    policy_state = policy_net.state_dict()
    for key in policy_state:
        target_state[key] = policy_state[key] * TAU + target_state[key] * (1 - TAU)
    target_net.load_state_dict(target_state)


def main(make, initialize):
    random.seed(3)
    policy_net, target_net = DQN(2, 2), DQN(2, 2)
    initialize(policy_net)
    target_net.load_state_dict(policy_net.state_dict())
    target_net.requires_grad_(False)
    optimizer = optim.AdamW(policy_net.parameters(), lr=1e-2, amsgrad=True)
    memory, env, results = ReplayMemory(200), Walk(), []
    for episode in range(6):
        state = torch.tensor(env.reset(), dtype=torch.float32).unsqueeze(0)
        for t in count():
            action = select_action(state, policy_net, eps=0.9 * 0.7**episode)
            observation, reward, done = env.step(action.item())
            reward = torch.tensor([reward])
            next_state = None if done else torch.tensor(observation, dtype=torch.float32).unsqueeze(0)
            memory.push(state, action, next_state, reward)
            state = next_state
            loss = optimize_model(memory, policy_net, target_net, optimizer)
            if loss is not None:
                results.append(loss)
            soft_update(policy_net, target_net)
            if done or t > 12:
                results.append(t)
                break
    returns = torch.tensor(make("returns", (5,)), dtype=torch.float32)
    returns = (returns - returns.mean()) / (torch.std(returns) + 1e-6)
    hidden = F.relu(policy_net.layer1(torch.tensor(make("states", (5, 2))).float()))
    log_probs = F.log_softmax(policy_net.advantage(hidden), dim=-1)  # value has no gradient: it cancels
    chosen = log_probs[range(5), [0, 1, 1, 0, 1]]
    policy_loss = torch.stack([-lp * r for lp, r in zip(chosen, returns)]).sum()
    optimizer.zero_grad()
    policy_loss.backward()
    for param in policy_net.parameters():
        if param.grad is not None:
            param.grad.data.clamp_(-1, 1)
    optimizer.step()
    results += [policy_loss.item()] + [p.abs().sum().item() for p in policy_net.parameters()]
    return results
