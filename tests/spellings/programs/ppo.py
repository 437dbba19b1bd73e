"""Proximal policy optimization: advantages, clipped losses, shuffled batches."""

import numpy as np
import tandem.torch as torch
import tandem.torch.nn as nn
import tandem.torch.nn.functional as F


def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self, obs_dim, n_actions):
        super().__init__()
        self.critic = nn.Sequential(
            layer_init(nn.Linear(obs_dim, 16)), nn.Tanh(), layer_init(nn.Linear(16, 1), std=1.0)
        )
        self.actor = nn.Sequential(
            layer_init(nn.Linear(obs_dim, 16)), nn.Tanh(), layer_init(nn.Linear(16, n_actions), std=0.01)
        )
        self.log_std = nn.Parameter(torch.zeros(1, n_actions))

    def get_value(self, x):
        return self.critic(x)

    def evaluate(self, x, action):
        logits = self.actor(x)
        logprob = F.log_softmax(logits, dim=-1)
        entropy = -(logprob.exp() * logprob).sum(-1)
        return logprob.gather(-1, action.long().unsqueeze(-1)).squeeze(-1), entropy, self.critic(x)


def gae(agent, rewards, values, dones, next_obs, next_done, gamma=0.99, lam=0.95):
    num_steps = rewards.shape[0]
    with torch.no_grad():
        next_value = agent.get_value(next_obs).reshape(1, -1)
        advantages = torch.zeros_like(rewards)
        lastgaelam = 0
        for t in reversed(range(num_steps)):
            if t == num_steps - 1:
                nextnonterminal = 1.0 - next_done
                nextvalues = next_value
            else:
                nextnonterminal = 1.0 - dones[t + 1]
                nextvalues = values[t + 1]
            delta = rewards[t] + gamma * nextvalues * nextnonterminal - values[t]
            advantages[t] = lastgaelam = delta + gamma * lam * nextnonterminal * lastgaelam
        returns = advantages + values
    return advantages, returns


def main(make, initialize):
    out = []
    agent = Agent(4, 3)
    initialize(agent)
    optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-3, eps=1e-5)
    num_steps, num_envs = 6, 2
    obs = torch.zeros((num_steps, num_envs) + (4,))
    actions = torch.zeros((num_steps, num_envs))
    logprobs, rewards, dones, values = (torch.zeros((num_steps, num_envs)) for _ in range(4))
    for update in range(1, 4):
        optimizer.param_groups[0]["lr"] = (1.0 - (update - 1.0) / 3) * 2.5e-3
        next_obs = torch.Tensor(make("o%d" % update, (num_envs, 4)))
        next_done = torch.zeros(num_envs)
        for step in range(num_steps):
            obs[step] = next_obs
            dones[step] = next_done
            with torch.no_grad():
                action = torch.tensor(make("a%d%d" % (update, step), (num_envs,), high=3))
                logprob, _, value = agent.evaluate(next_obs, action)
                values[step] = value.flatten()
            actions[step] = action
            logprobs[step] = logprob
            rewards[step] = torch.tensor(make("r%d%d" % (update, step), (num_envs,))).view(-1)
            next_obs = torch.Tensor(make("n%d%d" % (update, step), (num_envs, 4)))
            next_done = torch.Tensor(
                (make("d%d%d" % (update, step), (num_envs,), high=4) == 0).astype(np.float32)
            )
        advantages, returns = gae(agent, rewards, values, dones, next_obs, next_done)
        b_obs, b_logprobs = obs.reshape((-1, 4)), logprobs.reshape(-1)
        b_actions, b_advantages = actions.reshape((-1,)), advantages.reshape(-1)
        b_returns, b_values = returns.reshape(-1), values.reshape(-1)
        b_inds = np.arange(num_steps * num_envs)
        clipfracs = []
        for epoch in range(2):
            b_inds = b_inds[make("shuffle%d%d" % (update, epoch), (12,), permutation=True)]
            for start in range(0, 12, 6):
                mb = b_inds[start : start + 6]
                newlogprob, entropy, newvalue = agent.evaluate(b_obs[mb], b_actions.long()[mb])
                logratio = newlogprob - b_logprobs[mb]
                ratio = logratio.exp()
                with torch.no_grad():
                    approx_kl = ((ratio - 1) - logratio).mean()
                    clipfracs += [((ratio - 1.0).abs() > 0.2).float().mean().item()]
                adv = b_advantages[mb]
                adv = (adv - adv.mean()) / (torch.std(adv) + 1e-8)
                pg_loss1 = -adv * ratio
                pg_loss2 = -adv * torch.clamp(ratio, 1 - 0.2, 1 + 0.2)
                pg_loss = torch.max(pg_loss1, pg_loss2).mean()
                newvalue = newvalue.view(-1)
                v_unclipped = (newvalue - b_returns[mb]) ** 2
                v_clipped = b_values[mb] + torch.clamp(newvalue - b_values[mb], -0.2, 0.2)
                v_loss = 0.5 * torch.max(v_unclipped, (v_clipped - b_returns[mb]) ** 2).mean()
                loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        y_pred, y_true = b_values.cpu().numpy(), b_returns.cpu().numpy()
        var_y = np.var(y_true)
        out += [
            loss.item(),
            pg_loss.item(),
            approx_kl.item(),
            float(np.mean(clipfracs)),
            float(1 - np.var(y_true - y_pred) / var_y),
        ]
    out += agent.get_value(b_obs[:2]).flatten().tolist()
    return out
