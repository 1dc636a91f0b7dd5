"""Programs of the kind that people post, as they are written for PyTorch.

Each is a function of what its models become (themselves, or compiled) and of a number of steps, and gives losses and
what else it computes. `python -m tensorpy.run public_programs.py NAME` runs one of them as it is and compiled, and says
how much is equal to the bit.
"""

from __future__ import annotations

import collections
import copy
import math
import random
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.distributions import Categorical, Normal
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

Wrap = Callable[[Any], Any]
STEPS = 50


def nanogpt(wrap: Wrap, steps: int) -> list[Any]:
    class SelfAttention(nn.Module):
        def __init__(self, n_embd, n_head, block):
            super().__init__()
            self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=False)
            self.c_proj = nn.Linear(n_embd, n_embd, bias=False)
            self.attn_dropout = nn.Dropout(0.1)
            self.resid_dropout = nn.Dropout(0.1)
            self.n_head = n_head
            self.register_buffer("bias", torch.tril(torch.ones(block, block)).view(1, 1, block, block))

        def forward(self, x):
            B, T, C = x.size()
            q, k, v = self.c_attn(x).split(C, dim=2)
            q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            att = self.attn_dropout(F.softmax(att, dim=-1))
            y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
            return self.resid_dropout(self.c_proj(y))

    class Block(nn.Module):
        def __init__(self, c, h, block):
            super().__init__()
            self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(c), SelfAttention(c, h, block), nn.LayerNorm(c)
            self.mlp = nn.Sequential(nn.Linear(c, 4 * c), nn.GELU(), nn.Linear(4 * c, c), nn.Dropout(0.1))

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))

    class GPT(nn.Module):
        def __init__(self, vocab, c, h, layers, block):
            super().__init__()
            self.block = block
            self.transformer = nn.ModuleDict(
                {
                    "wte": nn.Embedding(vocab, c),
                    "wpe": nn.Embedding(block, c),
                    "drop": nn.Dropout(0.1),
                    "h": nn.ModuleList([Block(c, h, block) for _ in range(layers)]),
                    "ln_f": nn.LayerNorm(c),
                }
            )
            self.lm_head = nn.Linear(c, vocab, bias=False)
            self.transformer.wte.weight = self.lm_head.weight
            self.apply(self._init)

        def _init(self, m):
            if isinstance(m, nn.Linear):
                torch.nn.init.normal_(m.weight, mean=0.0, std=0.02)
                if m.bias is not None:
                    torch.nn.init.zeros_(m.bias)

        def forward(self, idx, targets=None):
            pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device)
            x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
            for block in self.transformer.h:
                x = block(x)
            x = self.transformer.ln_f(x)
            if targets is None:
                return self.lm_head(x[:, [-1], :]), None
            logits = self.lm_head(x)
            return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    data = torch.randint(0, 40, (2000,))
    model = GPT(40, 32, 4, 2, 24)
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    opt = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=1e-3, betas=(0.9, 0.95)
    )
    run = wrap(model)

    def get_lr(it):
        if it < 5:
            return 1e-3 * (it + 1) / 6
        ratio = (it - 5) / (steps - 5)
        return 1e-4 + 0.5 * (1 + math.cos(math.pi * ratio)) * 9e-4

    out = []
    for it in range(steps):
        for g in opt.param_groups:
            g["lr"] = get_lr(it)
        for _micro in range(2):
            ix = torch.randint(len(data) - 24, (4,))
            x = torch.stack([data[i : i + 24] for i in ix])
            y = torch.stack([data[i + 1 : i + 25] for i in ix])
            logits, loss = run(x, y)
            loss = loss / 2
            loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        out += [loss.item(), norm.item()]
    model.eval()
    idx = torch.zeros(1, 1, dtype=torch.long)
    with torch.no_grad():
        for _ in range(30):
            logits, _ = run(idx[:, -24:])
            probs = F.softmax(logits[:, -1, :] / 0.8, dim=-1)
            _v, _ = torch.topk(logits[:, -1], 5)
            idx = torch.cat((idx, torch.multinomial(probs, 1)), dim=1)
    return [*out, idx, *list(model.parameters())]


def dcgan(wrap: Wrap, steps: int) -> list[Any]:
    def weights_init(m):
        name = m.__class__.__name__
        if name.find("Conv") != -1:
            nn.init.normal_(m.weight.data, 0.0, 0.02)
        elif name.find("BatchNorm") != -1:
            nn.init.normal_(m.weight.data, 1.0, 0.02)
            nn.init.constant_(m.bias.data, 0)

    G = nn.Sequential(
        nn.ConvTranspose2d(8, 16, 4, 1, 0, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(True),
        nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(True),
        nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False),
        nn.Tanh(),
    )
    D = nn.Sequential(
        nn.Conv2d(1, 8, 4, 2, 1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(8, 16, 4, 2, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(16, 1, 4, 1, 0, bias=False),
        nn.Sigmoid(),
    )
    G.apply(weights_init)
    D.apply(weights_init)
    g, d = wrap(G), wrap(D)
    oD = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
    oG = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
    criterion = nn.BCELoss()
    real = torch.rand(64, 1, 16, 16) * 2 - 1
    out = []
    for _it in range(steps):
        D.zero_grad()
        x = real[torch.randint(64, (8,))]
        label = torch.full((8,), 1.0)
        errD_real = criterion(d(x).view(-1), label)
        errD_real.backward()
        noise = torch.randn(8, 8, 1, 1)
        fake = g(noise)
        label.fill_(0.0)
        o = d(fake.detach()).view(-1)
        errD_fake = criterion(o, label)
        errD_fake.backward()
        oD.step()
        G.zero_grad()
        label.fill_(1.0)
        o = d(fake).view(-1)
        errG = criterion(o, label)
        errG.backward()
        oG.step()
        out += [(errD_real + errD_fake).item(), errG.item(), o.mean().item()]
    return [*out, *G.parameters(), *D.parameters(), *G.buffers(), *D.buffers()]


def dqn(wrap: Wrap, steps: int) -> list[Any]:
    Transition = collections.namedtuple("Transition", ("state", "action", "next_state", "reward"))

    class DQN(nn.Module):
        def __init__(self):
            super().__init__()
            self.l1, self.l2, self.l3 = nn.Linear(4, 32), nn.Linear(32, 32), nn.Linear(32, 2)

        def forward(self, x):
            return self.l3(F.relu(self.l2(F.relu(self.l1(x)))))

    memory = collections.deque(maxlen=200)
    rng = random.Random(3)
    policy, target = DQN(), DQN()
    target.load_state_dict(policy.state_dict())
    p, t = wrap(policy), wrap(target)
    opt = torch.optim.AdamW(policy.parameters(), lr=1e-3, amsgrad=True)
    state = torch.zeros(1, 4)
    out = []
    for it in range(steps * 2):
        with torch.no_grad():
            action = p(state).max(1).indices.view(1, 1) if rng.random() > 0.3 else torch.tensor([[rng.randrange(2)]])
        nxt = None if it % 9 == 8 else state * 0.9 + torch.randn(1, 4) * (action.item() * 2 - 1)
        memory.append(Transition(state, action, nxt, torch.tensor([float(state.sum())])))
        state = torch.zeros(1, 4) if nxt is None else nxt
        if len(memory) < 16:
            continue
        batch = Transition(*zip(*rng.sample(list(memory), 16), strict=False))
        mask = torch.tensor(tuple(s is not None for s in batch.next_state), dtype=torch.bool)
        nn_states = torch.cat([s for s in batch.next_state if s is not None])
        q = p(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
        nv = torch.zeros(16)
        with torch.no_grad():
            nv[mask] = t(nn_states).max(1).values
        loss = nn.SmoothL1Loss()(q, (nv * 0.99 + torch.cat(batch.reward)).unsqueeze(1))
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
        opt.step()
        sd, pd = target.state_dict(), policy.state_dict()
        for k in pd:
            sd[k] = pd[k] * 0.005 + sd[k] * 0.995
        target.load_state_dict(sd)
        out.append(loss.item())
    return [*out, *policy.parameters(), *target.parameters()]


def lstm_text(wrap: Wrap, steps: int) -> list[Any]:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(20, 16, padding_idx=0)
            self.rnn = nn.LSTM(16, 24, 2, batch_first=True, dropout=0.2, bidirectional=True)
            self.fc = nn.Linear(48, 2)

        def forward(self, text, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(self.e(text), lengths, batch_first=True, enforce_sorted=False)
            _out, (h, _c) = self.rnn(packed)
            return self.fc(torch.cat((h[-2], h[-1]), dim=1))

    m = Net()
    run = wrap(m)
    opt = torch.optim.RMSprop(m.parameters(), lr=1e-3)
    out = []
    sched = torch.optim.lr_scheduler.StepLR(opt, 10, 0.5)
    for _it in range(steps):
        lengths = torch.randint(2, 9, (6,))
        text = torch.randint(1, 20, (6, int(lengths.max())))
        text[torch.arange(text.shape[1])[None] >= lengths[:, None]] = 0
        loss = F.cross_entropy(run(text, lengths), torch.randint(2, (6,)))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 0.25)
        opt.step()
        sched.step()
        out.append(loss.item())
    return [*out, *m.parameters()]


def vit(wrap: Wrap, steps: int) -> list[Any]:
    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch = nn.Conv2d(3, 32, 4, 4)
            self.cls = nn.Parameter(torch.zeros(1, 1, 32))
            self.pos = nn.Parameter(torch.randn(1, 17, 32) * 0.02)
            layer = nn.TransformerEncoderLayer(32, 4, 64, 0.1, "gelu", batch_first=True, norm_first=True)
            self.enc = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(32), enable_nested_tensor=False)
            self.head = nn.Linear(32, 10)

        def forward(self, x):
            x = self.patch(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.cls.expand(x.size(0), -1, -1), x], 1) + self.pos
            return self.head(self.enc(x)[:, 0])

    m = ViT()
    run = wrap(m)
    opt = torch.optim.AdamW(m.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=steps + 1)
    crit = nn.CrossEntropyLoss(label_smoothing=0.1)
    out = []
    for _it in range(steps):
        x, y = torch.rand(6, 3, 16, 16), torch.randint(10, (6,))
        opt.zero_grad(set_to_none=True)
        loss = crit(run(x), y)
        loss.backward()
        opt.step()
        sched.step()
        out.append(loss.item())
    m.eval()
    with torch.inference_mode():
        out.append(run(torch.rand(2, 3, 16, 16)).argmax(1))
    return [*out, *m.parameters()]


def unet(wrap: Wrap, steps: int) -> list[Any]:
    def double(i, o):
        return nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1),
            nn.GroupNorm(2, o),
            nn.SiLU(),
            nn.Conv2d(o, o, 3, padding=1),
            nn.InstanceNorm2d(o, affine=True),
            nn.ReLU(inplace=True),
        )

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.d1, self.d2, self.b = double(1, 8), double(8, 16), double(16, 16)
            self.up1 = nn.ConvTranspose2d(16, 16, 2, 2)
            self.u1 = double(32, 8)
            self.up2 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.u2 = double(16, 8)
            self.out = nn.Conv2d(8, 1, 1)

        def forward(self, x):
            a = self.d1(x)
            b = self.d2(F.max_pool2d(a, 2))
            c = self.b(F.max_pool2d(b, 2))
            y = self.up1(c)
            y = F.pad(y, [0, b.size(3) - y.size(3), 0, b.size(2) - y.size(2)])
            y = self.u1(torch.cat([y, b], 1))
            y = self.up2(y)
            dy, dx = a.size(2) - y.size(2), a.size(3) - y.size(3)
            y = F.pad(y, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
            return self.out(self.u2(torch.cat([y, a], 1)))

    def dice(p, t):
        p = torch.sigmoid(p)
        inter = (p * t).sum((1, 2, 3))
        return (1 - (2 * inter + 1) / (p.sum((1, 2, 3)) + t.sum((1, 2, 3)) + 1)).mean()

    m = UNet()
    run = wrap(m)
    opt = torch.optim.SGD(m.parameters(), 0.05, momentum=0.9, nesterov=True, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=3)
    out = []
    for it in range(steps):
        x = torch.rand(2, 1, 18 if it % 3 else 20, 18)
        t = (x > 0.5).float()
        p = run(x)
        loss = F.binary_cross_entropy_with_logits(p, t) + dice(p, t)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step(loss.item())
        out.append(loss.item())
    return [*out, *m.parameters()]


def gat(wrap: Wrap, steps: int) -> list[Any]:
    class GATLayer(nn.Module):
        def __init__(self, i, o, heads):
            super().__init__()
            self.W = nn.Parameter(torch.empty(heads, i, o))
            self.a = nn.Parameter(torch.empty(heads, 2 * o, 1))
            nn.init.xavier_uniform_(self.W)
            nn.init.xavier_uniform_(self.a)
            self.o = o

        def forward(self, h, adj):
            Wh = torch.einsum("ni,hio->hno", h, self.W)
            e = F.leaky_relu(Wh @ self.a[:, : self.o] + (Wh @ self.a[:, self.o :]).transpose(1, 2), 0.2)
            att = F.dropout(torch.where(adj > 0, e, torch.full_like(e, -9e15)).softmax(2), 0.3, training=self.training)
            return (att @ Wh).permute(1, 0, 2).reshape(h.size(0), -1)

    class Sparse(nn.Module):  # message passing over edges
        def __init__(self, i, o):
            super().__init__()
            self.lin = nn.Linear(i, o)

        def forward(self, x, edges):
            src, dst = edges
            deg = torch.zeros(x.size(0)).index_add_(0, dst, torch.ones(dst.numel())).clamp(min=1)
            return (
                torch.zeros(x.size(0), x.size(1))
                .scatter_add(0, dst[:, None].expand(-1, x.size(1)), x[src])
                .div(deg[:, None])
                @ self.lin.weight.t()
                + self.lin.bias
            )

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.g1, self.g2, self.s = GATLayer(8, 8, 3), GATLayer(24, 5, 1), Sparse(5, 4)

        def forward(self, x, adj, edges):
            x = F.elu(self.g1(F.dropout(x, 0.2, self.training), adj))
            return F.log_softmax(self.s(self.g2(x, adj), edges), 1)

    n = 30
    adj = (torch.rand(n, n) < 0.2).float() + torch.eye(n)
    edges = adj.nonzero(as_tuple=True)
    x = torch.randn(n, 8)
    y = torch.randint(4, (n,))
    train = torch.rand(n) < 0.6
    m = Net()
    run = wrap(m)
    opt = torch.optim.Adam(m.parameters(), lr=5e-3, weight_decay=5e-4)
    out = []
    for _it in range(steps):
        m.train()
        opt.zero_grad()
        o = run(x, adj, edges)
        loss = F.nll_loss(o[train], y[train])
        loss.backward()
        opt.step()
        m.eval()
        with torch.no_grad():
            acc = (run(x, adj, edges)[~train].argmax(1) == y[~train]).float().mean().item()
        out += [loss.item(), acc]
    return [*out, *m.parameters()]


def seq2seq(wrap: Wrap, steps: int) -> list[Any]:
    class PE(nn.Module):
        def __init__(self, d, n=50):
            super().__init__()
            pos = torch.arange(n).unsqueeze(1)
            div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
            pe = torch.zeros(n, 1, d)
            pe[:, 0, 0::2] = torch.sin(pos * div)
            pe[:, 0, 1::2] = torch.cos(pos * div)
            self.register_buffer("pe", pe)
            self.drop = nn.Dropout(0.1)

        def forward(self, x):
            return self.drop(x + self.pe[: x.size(0)])

    class Seq(nn.Module):
        def __init__(self):
            super().__init__()
            self.src, self.tgt, self.pe = nn.Embedding(20, 16), nn.Embedding(20, 16), PE(16)
            self.t = nn.Transformer(16, 2, 1, 1, 32, 0.1)
            self.gen = nn.Linear(16, 20)

        def forward(self, s, t, sm, tm, sp, tp_):
            return self.gen(self.t(self.pe(self.src(s) * 4.0), self.pe(self.tgt(t) * 4.0), sm, tm, None, sp, tp_, sp))

    m = Seq()
    run = wrap(m)
    for p in m.parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
    opt = torch.optim.Adam(m.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
    crit = nn.CrossEntropyLoss(ignore_index=1)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min((s + 1) ** -0.5, (s + 1) * 10**-1.5))
    out = []
    for it in range(steps):
        S, T = random.Random(it).choice([(7, 6), (9, 8)])
        s = torch.randint(0, 20, (S, 4))
        t = torch.randint(0, 20, (T, 4))
        ti, to = t[:-1], t[1:]
        tm = torch.triu(torch.ones(T - 1, T - 1, dtype=torch.bool), 1)
        sm = torch.zeros(S, S, dtype=torch.bool)
        sp = (s == 1).t().clone()
        sp[:, 0] = False
        tpad = (ti == 1).t().clone()
        tpad[:, 0] = False
        o = run(s, ti, sm, tm, sp, tpad)
        loss = crit(o.reshape(-1, 20), to.reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        out.append(loss.item())
    return [*out, *m.parameters()]


def amp(wrap: Wrap, steps: int) -> list[Any]:
    m = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 10)
    )
    run = wrap(m)
    opt = torch.optim.AdamW(m.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=5)
    out = []
    for it in range(steps):
        x, y = torch.rand(8, 1, 12, 12), torch.randint(10, (8,))
        opt.zero_grad()
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            o = run(x)
            loss = F.cross_entropy(o, y)
        scaler.scale(loss).backward()
        if it % 2 == 1 or True:
            scaler.unscale_(opt)
            norm = torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
        out += [loss.item(), norm.item(), scaler.get_scale()]
    return [*out, *m.parameters(), *m.buffers()]


def ema_checkpoint(wrap: Wrap, steps: int) -> list[Any]:
    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.n, self.a, self.b = nn.RMSNorm(c), nn.Linear(c, 4 * c), nn.Linear(2 * c, c)

        def forward(self, x):
            u, g = self.a(self.n(x)).chunk(2, -1)
            return x + self.b(F.silu(g) * u)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block(16) for _ in range(3))
            self.out = nn.Linear(16, 4)

        def forward(self, x):
            for b in self.blocks:
                x = checkpoint(b, x, use_reentrant=False) if self.training else b(x)
            return self.out(F.dropout(x, 0.1, self.training))

    m = Net()
    run = wrap(m)
    ema = torch.optim.swa_utils.AveragedModel(m, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    shadow = copy.deepcopy(m)
    opt = torch.optim.NAdam(m.parameters(), lr=3e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, 10)
    out = []
    for _it in range(steps):
        loss = 0
        for _k in range(3):
            x = torch.randn(8, 5, 16)
            part = F.mse_loss(run(x), x[..., :4].sin()) / 3
            part.backward()
            loss += part.item()
        opt.step()
        opt.zero_grad()
        sched.step()
        ema.update_parameters(m)
        with torch.no_grad():
            for s, p in zip(shadow.parameters(), m.parameters(), strict=False):
                s.mul_(0.95).add_(p, alpha=0.05)
        out.append(loss)
    return [*out, *m.parameters(), *ema.parameters(), *shadow.parameters()]


def resnet(wrap: Wrap, steps: int) -> list[Any]:
    class Basic(nn.Module):
        def __init__(self, i, o, stride=1):
            super().__init__()
            self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(o)
            self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(o)
            self.short = (
                nn.Sequential()
                if stride == 1 and i == o
                else nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))
            )

        def forward(self, x):
            y = F.relu(self.bn1(self.conv1(x)))
            y = self.bn2(self.conv2(y))
            y += self.short(x)
            return F.relu(y)

    m = nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        Basic(8, 8),
        Basic(8, 16, 2),
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Flatten(),
        nn.Linear(16, 10),
    ).to(memory_format=torch.channels_last)
    run = wrap(m)
    opt = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.SequentialLR(
        opt,
        [
            torch.optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=5),
            torch.optim.lr_scheduler.CosineAnnealingLR(opt, steps),
        ],
        [5],
    )
    out = []
    correct = 0
    for _it in range(steps):
        x, y = torch.rand(8, 3, 8, 8).to(memory_format=torch.channels_last), torch.randint(10, (8,))
        opt.zero_grad()
        o = run(x)
        loss = F.cross_entropy(o, y)
        loss.backward()
        opt.step()
        sched.step()
        _, p = o.max(1)
        correct += p.eq(y).sum().item()
        out.append(loss.item())
    m.eval()
    with torch.no_grad():
        out.append(run(torch.rand(3, 3, 8, 8)))
    return [*out, correct, *m.parameters(), *m.buffers()]


def ppo(wrap: Wrap, steps: int) -> list[Any]:
    class AC(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
            self.a = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
            self.log_std = nn.Parameter(torch.zeros(1, 2))
            self.mu = nn.Linear(4, 2)

        def forward(self, x, action=None):
            d = Categorical(logits=self.a(x))
            n = Normal(self.mu(x), self.log_std.expand(x.size(0), 2).exp())
            if action is None:
                action = d.sample()
            return (
                action,
                d.log_prob(action) + n.log_prob(x[:, :2]).sum(-1),
                d.entropy() + n.entropy().sum(-1),
                self.c(x).squeeze(-1),
            )

    m = AC()
    run = wrap(m)
    opt = torch.optim.Adam(m.parameters(), lr=1e-3, eps=1e-5)
    out = []
    for _it in range(steps // 2):
        obs = torch.randn(12, 4)
        with torch.no_grad():
            a, lp, _, v = run(obs)
        ret = torch.randn(12)
        adv = ret - v
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        for _ep in range(2):
            inds = torch.randperm(12)[:8]
            _, nlp, ent, nv = run(obs[inds], a[inds])
            ratio = (nlp - lp[inds]).exp()
            with torch.no_grad():
                kl = ((ratio - 1) - (nlp - lp[inds])).mean()
            pg = torch.max(-adv[inds] * ratio, -adv[inds] * torch.clamp(ratio, 0.8, 1.2)).mean()
            loss = pg - 0.01 * ent.mean() + 0.5 * 0.5 * ((nv - ret[inds]) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(m.parameters(), 0.5)
            opt.step()
            out += [loss.item(), kl.item()]
    return [*out, *m.parameters()]


PROGRAMS = [nanogpt, dcgan, dqn, lstm_text, vit, unet, gat, seq2seq, amp, ema_checkpoint, resnet, ppo]


def results(program: Callable[[Wrap, int], list[Any]], wrap: Wrap) -> list[Any]:
    torch.manual_seed(1)
    random.seed(1)
    return [v.detach().clone() if isinstance(v, torch.Tensor) else v for v in program(wrap, STEPS)]


def each_module(model: Any) -> Any:
    for module in model.modules():
        if type(module).forward is not nn.Module.forward:
            module.compile(options={"smallest": 512})
    return model


WAYS: dict[str, Wrap] = {
    "compile": lambda model: torch.compile(model, options={"smallest": 512}),
    "each module": each_module,
    "reduce-overhead": lambda model: torch.compile(model, mode="reduce-overhead"),
}


def main(name: str) -> None:
    (program,) = [p for p in PROGRAMS if p.__name__ == name]
    for threads in (1, 2):
        torch.set_num_threads(threads)
        expected = results(program, lambda model: model)
        for way, wrap in WAYS.items():
            got = results(program, wrap)
            pairs = list(zip(got, expected, strict=True))
            same = [a.equal(b) if isinstance(a, torch.Tensor) else a == b for a, b in pairs]
            print(f"{name}, {threads} threads, {way}: {sum(same)} of {len(same)} equal")


if __name__ == "__main__":
    main(sys.argv[1])
