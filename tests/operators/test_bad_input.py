"""Bad input gets an exception of PyTorch's class, with the operator and what it got, and leaves its outputs alone.

The tables hold expressions in `m`, the module, so that the same can be asked of PyTorch where it is installed.
"""

from __future__ import annotations

import builtins
import copy
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorpy as tp


class BadIndex:
    def __index__(self) -> int:
        raise KeyError("mine")


class BadFloat:
    def __float__(self) -> float:
        raise KeyError("mine")


class BadLen:
    def __len__(self) -> int:
        raise KeyError("mine")

    def __getitem__(self, i: int) -> int:
        return 1


def selflist() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


def clearing() -> list[Any]:
    """A list that an element empties while it is read."""
    found: list[Any] = []

    class Clears:
        def __index__(self) -> int:
            found.clear()
            return 1

        __float__ = __index__

    found += [Clears() for _ in range(50)]
    return found


NAMES = {"np": np, "copy": copy, "pickle": pickle} | {
    f.__name__: f for f in (BadIndex, BadFloat, BadLen, selflist, clearing)
}

# By the exception's class, which is PyTorch's or one below it.
AS_TORCH = {
    "AttributeError": r"""
        setattr(m.ones(2),'shape',3)
        setattr(m.ones(2),'dtype',m.int64)
    """,
    "BufferError": r"""
        m.from_dlpack(np.array(['a']))
    """,
    "IndexError": r"""
        m.ones(2,3).sum(2)
        m.ones(2,3).sum(-3)
        m.ones(2,3).sum((0,5))
        m.ones(2,3).transpose(0,2)
        m.ones(2,3).permute(0,2)
        m.ones(2,3).unsqueeze(4)
        m.ones(2,3).squeeze(2)
        m.ones(2,3).select(0,2)
        m.ones(2,3).select(3,0)
        m.ones(2,3)[2]
        m.ones(2,3)[0,3]
        m.ones(2,3)[0,0,0]
        m.ones(2,3)[[5]]
        m.ones(2,3)[m.tensor([7])]
        m.ones(2,3)[m.tensor([1.5])]
        m.ones(2,3)[m.ones(3,dtype=m.bool)]
        m.ones(2,3)[1.5]
        m.ones(2,3)[object()]
        m.tensor(3)[0]
        m.ones(2,3).softmax(2)
        m.ones(2,3).cumsum(2)
        m.cat([m.ones(2),m.ones(2)],1)
        m.ones(2,3).flatten(0,5)
        m.ones(0).argmax()
        m.ones(2,0).max(1)
        m.gather(m.ones(2,3),2,m.zeros(2,3,dtype=m.int64))
        m.ones(3).index_add_(0,m.tensor([4]),m.ones(1))
        m.index_select(m.ones(2,3),0,m.tensor([5]))
        m.index_select(m.ones(2,3),0,m.tensor([[0]]))
        m.take(m.ones(3),m.tensor([4]))
        m.nn.functional.embedding(m.tensor([5]),m.ones(3,2))
        m.nn.functional.cross_entropy(m.ones(2,3),m.tensor([0,5]))
    """,
    "NotImplementedError": r"""
        m.nn.functional.pad(m.ones(3),(1,1),mode='reflect')
        m.nn.functional.pad(m.ones(1,3),(1,1),mode='nonsense')
        m.ones(2)&m.ones(2)
        m.ones(2)<<1
        m.ones(2,dtype=m.int64)<<1.5
        m.ones(2,dtype=m.complex64)<1
        m.ones(2,dtype=m.complex64).max()
        m.ones(2,dtype=m.complex64).floor()
        m.ones(2,dtype=m.int64).softmax(0)
        m.ones(2).copy_(m.ones(2,device='meta'))
        m.ones(2,device='meta').tolist()
        m.ones(1,device='meta').item()
        bool(m.ones(1,device='meta'))
        m.ones(2,device='meta').to('cpu')
        m.ones(2,device='meta').nonzero()
    """,
    "OverflowError": r"""
        m.arange(10**30)
        m.full((2,2),10**30,dtype=m.int64)
        m.ones(2).fill_(10**30)
        m.ones(2,dtype=m.uint8)+10**30
        m.ones(2)+10**30
        m.ones(2)*10**400
        int(m.tensor(float('inf')))
    """,
    "RuntimeError": r"""
        int(m.tensor(1j))
        m.Generator(99)
        -m.tensor([True])
        m.nn.functional.celu(m.ones(2),0.0)
        m.celu_(m.ones(2),0.0)
        m.tensor([3]).float_power_(2)
        m.ones(2).float_power_(m.ones(2))
        +m.tensor([True])
        m.neg(m.tensor([True]))
        m.masked_fill(m.ones(2),m.tensor([1,0]),5)
        m.ones(2).masked_fill_(m.tensor([1,0]),m.tensor(5.))
        m.addcdiv(m.ones(2),m.tensor([1,2]),m.tensor([1,2]))
        m.nn.functional.gelu(m.ones(2),approximate='x')
        m.nn.functional.softshrink(m.ones(2),-0.5)
        m.nn.functional.pad(m.ones(1,3),(1,1),mode='reflect',value=2)
        m.empty(2**40, 2**40)
        m.empty(2**62)
        m.zeros(2**31,2**31,2)
        m.empty(-1)
        m.empty(2,-3)
        m.full((2**40,2**40),1.)
        m.arange(0,2**62)
        m.arange(float('inf'))
        m.arange(float('nan'))
        m.arange(0,1j)
        m.arange(0,1,0)
        m.arange(0,1,-1)
        m.linspace(0,1,-1)
        m.linspace(0,1,2**62)
        m.logspace(0,1,-1)
        m.eye(-1)
        m.eye(2**32)
        m.eye(2**62,2**62)
        m.eye(2,-1)
        m.ones(3).expand(2**40,2**40,3)
        m.ones(3).expand(-1,-1)
        m.ones(3).expand(-1,3)
        m.ones(3).expand(2)
        m.ones(3).repeat(2**62)
        m.ones(3).repeat(-1)
        m.ones(3,3).repeat(2)
        m.nn.functional.pad(m.ones(3),(2**62,2**62))
        m.nn.functional.pad(m.ones(3),(-5,0))
        m.nn.functional.pad(m.ones(3),(1,2,3))
        m.nn.functional.pad(m.ones(1,3),(5,5),mode='reflect')
        m.ones(3).repeat_interleave(2**62)
        m.ones(3).repeat_interleave(-1)
        m.ones(3).repeat_interleave(m.tensor([1,-1,1]))
        m.ones(3).tile((2**62,))
        m.randn(-1)
        m.randperm(-1)
        m.randperm(2**62)
        m.rand(2**62)
        m.randint(5,5,(2,))
        m.tril_indices(-1,3)
        m.ones(2,3).sum((0,0))
        m.ones(2,3).permute(0,0)
        m.ones(2,3).permute(0)
        m.cat([m.ones(2,3),m.ones(3,2)])
        m.stack([])
        m.stack([m.ones(2),m.ones(3)])
        m.ones(2,3).flatten(1,0)
        m.ones(6).unflatten(0,(4,2))
        m.ones(6).view(4)
        m.ones(6).view(-1,-1)
        m.ones(6).view(-1,4)
        m.ones(0).view(-1,0)
        m.ones(2,3).t().view(6)
        m.ones(6).reshape(5)
        m.ones(6).view(-2,3)
        m.ones(2,3,4).t()
        m.ones(6).split(-1)
        m.ones(6).split([1,2])
        m.ones(6).chunk(0)
        m.ones(6).unfold(0,7,1)
        m.ones(6).unfold(0,2,0)
        m.ones(6).narrow(0,5,2)
        m.ones(6).narrow(0,0,-1)
        m.ones(2,3).diagonal(0,0,0)
        m.ones(6).as_strided((2**40,2**40),(1,1))
        m.ones(6).as_strided((2,),(-1,))
        m.ones(6).as_strided((2,2),(1,))
        m.ones(6).as_strided((7,),(1,))
        m.ones(6).as_strided((2,),(2**62,))
        m.ones(6).as_strided((2,),(1,),-1)
        m.ones(6).as_strided((2,),(1,),2**62)
        m.ones(6).as_strided((2**62,2**62),(0,0))
        m.ones(6).as_strided((-1,),(1,))
        m.tensor(None)
        m.tensor(object())
        m.tensor([None])
        m.tensor({})
        m.tensor({1:2})
        m.tensor(300,dtype=m.uint8)
        m.tensor(2**31,dtype=m.int32)
        m.tensor(float('nan'),dtype=m.int32)
        m.tensor(float('inf'),dtype=m.int64)
        m.tensor(1,device='nonsense')
        m.tensor([BadFloat()])
        m.tensor([BadIndex()])
        m.tensor(1,requires_grad=True)
        m.ones(2,dtype=m.int64,requires_grad=True)
        m.full((2,),300,dtype=m.uint8)
        m.ones(2,dtype=m.int32).fill_(2**40)
        m.ones(2,dtype=m.int64).fill_(float('nan'))
        m.ones(2,dtype=m.int64).fill_(1j)
        m.ones(2).fill_(1j)
        m.add(m.ones(2),m.ones(3))
        m.add(m.ones(2,dtype=m.int64),m.ones(2,dtype=m.int64),alpha=1.5)
        m.ones(2)@m.ones(3)
        m.ones(2,3)@m.ones(2,3)
        m.sub(m.ones(2,dtype=m.bool),m.ones(2,dtype=m.bool))
        m.ones(2,dtype=m.bool)-1
        m.ones(2,dtype=m.complex64).sort()
        m.ones(2,dtype=m.int64).mean()
        m.ones(2,dtype=m.int64).var()
        m.ones(2,dtype=m.int64)//m.zeros(2,dtype=m.int64)
        m.ones(2,dtype=m.int64)%0
        m.ones(2,dtype=m.int64)**-1
        m.ones(0).max()
        m.ones(2,2,dtype=m.int64)@m.ones(2,2)
        m.mm(m.ones(2),m.ones(2,2))
        m.bmm(m.ones(2,2),m.ones(2,2))
        m.dot(m.ones(2),m.ones(3))
        m.einsum('ij,jk',m.ones(2,2))
        m.einsum('i->ij',m.ones(2))
        m.einsum('',m.ones(2))
        m.where(m.ones(2),1,2)
        m.clamp(m.ones(2))
        m.masked_select(m.ones(2),m.ones(2))
        m.gather(m.ones(2,3),0,m.ones(2,3))
        m.gather(m.ones(2,3),0,m.full((2,3),5))
        m.ones(3).scatter_(0,m.tensor([4]),1.)
        m.ones(3).scatter_(0,m.tensor([0]),m.ones(1,dtype=m.int64))
        m.topk(m.ones(3),4)
        m.kthvalue(m.ones(3),4)
        m.bincount(m.tensor([-1]))
        m.nn.functional.one_hot(m.tensor([-1]))
        m.nn.functional.one_hot(m.tensor([5]),3)
        m.multinomial(m.ones(3),4)
        m.multinomial(-m.ones(3),1)
        m.bernoulli(m.ones(2)*2)
        m.normal(m.ones(2),-m.ones(2))
        m.ones(2).normal_(0,-1)
        m.ones(2).uniform_(1,0)
        m.ones(2).exponential_(-1)
        m.dropout(m.ones(2),2.,True)
        m.add(m.ones(2),m.ones(2),out=m.empty(2,dtype=m.int64))
        m.add(m.ones(2),m.ones(2),out=m.empty(2,device='meta'))
        m.add(m.ones(2),m.ones(2),out=m.empty(2,requires_grad=True))
        m.add(m.ones(2),m.ones(2,requires_grad=True),out=m.empty(2))
        m.max(m.ones(2,3),0,out=(m.empty(3),m.empty(3)))
        m.ones(3).expand(2,3).add_(1)
        m.ones(3,1).expand(3,3).copy_(m.ones(3,3))
        m.ones(3).add_(m.ones(2,3))
        (lambda a: m.add(a[1:],1,out=a[:-1]))(m.ones(4))
        (lambda a: m.add(a[:-1],a[1:],out=a[:-1]))(m.ones(4))
        (lambda a: a[1:].add_(a[:-1]))(m.ones(4))
        (lambda a: a.copy_(a.expand(2,2)))(m.ones(2))
        m.ones(2,dtype=m.int64).add_(1.5)
        m.ones(2,dtype=m.bool).add_(1)
        m.ones(2).add_(1j)
        m.ones(2,dtype=m.int64).sqrt_()
        m.ones(2)+m.ones(2,device='meta')
        m.cat([m.ones(2),m.ones(2,device='meta')])
        m.ones(2,device='meta').item()
        m.ones(2).to('nonsense')
        m.ones(2).to('float32')
        m.device('cpu:-2')
        m.device('cpu:a')
        m.device('cuda',-2)
        bool(m.ones(2))
        bool(m.ones(0))
        m.ones(2).item()
        float(m.tensor(1j))
        'a' in m.ones(2)
        m.ones(2,requires_grad=True).backward()
        m.ones(2).backward()
        m.ones(2).sum().backward()
        (lambda y:(y.backward(),y.backward()))(m.ones(2,requires_grad=True).exp().sum())
        (m.ones(2,requires_grad=True)*2).backward(m.ones(3))
        (m.ones(2,requires_grad=True)*2).backward(m.ones(2,device='meta'))
        m.autograd.grad(m.ones(2,requires_grad=True).sum(),m.ones(2))
        m.autograd.grad(m.ones(2,requires_grad=True).sum(),m.ones(2,requires_grad=True))
        m.ones(2,requires_grad=True).add_(1)
        m.ones(2,requires_grad=True)[0].zero_()
        m.ones(2,requires_grad=True).numpy()
        (m.ones(2,requires_grad=True)*2).numpy()
        m.ones(2,dtype=m.int64).requires_grad_()
        setattr(m.ones(2),'grad',m.ones(3))
        setattr(m.ones(2),'grad',m.ones(2,dtype=m.float64))
        setattr(m.ones(2),'grad',m.ones(2,device='meta'))
        (lambda a:setattr(a,'grad',a))(m.ones(2))
        setattr(m.ones(2,requires_grad=True),'data',m.ones(2,dtype=m.int64))
        setattr(m.ones(2),'requires_grad','a')
        setattr(m.ones(2),'requires_grad',3)
        setattr(m.ones(2,requires_grad=True)*2,'requires_grad',False)
        setattr(m.ones(2,dtype=m.int64),'requires_grad',True)
        delattr(m.ones(2),'data')
        m.ones(2).register_hook(lambda g:g)
        m.ones(2).retain_grad()
        m.ones(4,requires_grad=True).chunk(2)[0].add_(1)
        (lambda x:(lambda a:(lambda y:(a.add_(1),y.sum().backward()))(a.exp()*a))(x*2))(m.ones(2,requires_grad=True))
        copy.deepcopy(m.ones(2,requires_grad=True)*2)
        m.from_dlpack(3)
        m.from_dlpack(object())
        m.as_tensor(object())
        np.asarray(m.ones(2,requires_grad=True))
        m.ones(3).view(m.float64)
        m.ones(3).view(m.complex64)
        m.nn.functional.conv2d(m.ones(1,1,3,3),m.ones(1,2,3,3))
        m.nn.functional.conv2d(m.ones(1,1,3,3),m.ones(1,1,5,5))
        m.nn.functional.conv2d(m.ones(1,1,3,3),m.ones(1,1,3,3),stride=0)
        m.nn.functional.conv2d(m.ones(1,1,3,3),m.ones(1,1,3,3),padding=-1)
        m.nn.functional.conv2d(m.ones(1,1,3,3),m.ones(1,1,3,3),groups=0)
        m.nn.functional.conv2d(m.ones(1,1,3,3),m.ones(1,1,3,3),dilation=0)
        m.nn.functional.conv2d(m.ones(1,1,3,3),m.ones(1,1,3,3),padding=2**62)
        m.nn.functional.conv2d(m.ones(1,1,3,3),m.ones(1,1,3,3),padding='nonsense')
        m.nn.functional.max_pool2d(m.ones(1,1,3,3),0)
        m.nn.functional.max_pool2d(m.ones(1,1,3,3),5)
        m.nn.functional.max_pool2d(m.ones(1,1,3,3),2,padding=2)
        m.nn.functional.max_pool2d(m.ones(1,1,3,3),2**62)
        m.nn.functional.avg_pool2d(m.ones(1,1,3,3),2,stride=0)
        m.nn.functional.adaptive_avg_pool2d(m.ones(1,1,3,3),-1)
        m.nn.functional.embedding(m.ones(2),m.ones(3,2))
        m.nn.functional.nll_loss(m.ones(2,3),m.ones(2))
        m.nn.functional.linear(m.ones(2,3),m.ones(2,2))
        m.nn.functional.layer_norm(m.ones(2,3),(2,))
        m.nn.functional.layer_norm(m.ones(2,3),[])
        m.nn.functional.group_norm(m.ones(2,3),2)
        m.nn.functional.batch_norm(m.ones(2,3),m.ones(2),m.ones(2))
        m.nn.functional.scaled_dot_product_attention(m.ones(2,3),m.ones(2,4),m.ones(2,3))
    """,
    "TypeError": r"""
        m.ones(2,device='meta').numpy()
        np.asarray(m.ones(2,device='meta'))
        m.Size([1.5])
        m.Size(['a'])
        m.Size(5)
        m.Size([1,2])+[3]
        3+m.Size([1,2])
        m.can_cast(m.int32)
        m.promote_types(m.int32,3)
        m.ones(2**63)
        m.empty(10**30)
        m.ones(2,3)['a']
        m.cat([m.ones(2),1])
        m.cat(m.ones(2))
        m.tensor([1,[2]])
        m.tensor([[1],2])
        m.tensor('abc')
        m.tensor([1j],dtype=m.float32)
        m.tensor(1j,dtype=m.int64)
        m.tensor(1,dtype='float32')
        m.tensor(1,dtype=3)
        m.tensor(1,device=3.5)
        m.tensor()
        m.tensor(1,2)
        m.tensor(data=1,nonsense=2)
        m.empty(BadIndex())
        m.zeros([BadIndex()])
        m.full((2,),BadFloat())
        m.full((2,),None)
        m.full((2,),'a')
        m.add(m.ones(2))
        m.add()
        m.add(m.ones(2),1,2,3,4)
        m.add(m.ones(2),'a')
        m.add(m.ones(2),None)
        m.add(None,m.ones(2))
        m.add(m.ones(2),m.ones(2),alpha='a')
        m.add(m.ones(2),m.ones(2),alpha=None)
        m.add(m.ones(2),m.ones(2),aplha=2)
        m.add(m.ones(2),other=m.ones(2),alpha=1,nonsense=1)
        m.add(m.ones(2),m.ones(2),input=m.ones(2))
        m.ones(2)+'a'
        m.ones(2)+None
        m.ones(2)+[1,2]
        'a'+m.ones(2)
        m.ones(2)@2
        m.ones(2)<'a'
        ~m.ones(2)
        m.einsum('ij,jk','x')
        m.where(m.ones(2)>0,m.ones(2),'a')
        m.randn(2,generator=3)
        m.randn(2,generator=object())
        m.sort(m.ones(3),out=m.empty(3))
        m.max(m.ones(2,3),0,out=(m.empty(3),))
        m.device(3.5)
        range(3)[m.tensor(1.)]
        [1,2][m.tensor([0,1])]
        len(m.tensor(3))
        list(m.tensor(3))
        m.tensor(3).__len__()
        iter(m.tensor(1))
        m.ones(2).tolist(1)
        format(m.ones(2),'.2f')
        (m.ones(2,requires_grad=True)*2).backward(3)
        (m.ones(2,requires_grad=True)*2).backward('a')
        m.autograd.grad(1,2)
        setattr(m.ones(2),'grad',3)
        setattr(m.ones(2),'data',3)
        m.frombuffer(bytearray(8))
        m.from_numpy(3)
        m.from_numpy([1])
        m.from_numpy(np.array(['a']))
        m.from_numpy(np.array([object()]))
        m.from_numpy(np.zeros(2,dtype='M8[s]'))
        m.asarray('a')
        m.ones(2).numpy('a')
        m.finfo(m.int64)
        m.iinfo(m.float32)
        m.finfo(3)
        m.set_default_dtype(m.int64)
        m.set_default_dtype(3)
        m.can_cast(1,2)
        m.promote_types(m.int64,3)
        m.Generator().set_state(m.ones(3))
        m.ones(2).type(3)
        m.ones(2).view('a')
    """,
    "ValueError": r"""
        m.manual_seed('a')
        m.nn.functional.hardtanh(m.ones(2),2,-2)
        m.nn.functional.huber_loss(m.ones(2),m.zeros(2),weight=m.ones(1))
        m.nn.functional.binary_cross_entropy_with_logits(m.ones(2),m.ones(3))
        m.randint(0,2**65,(2,))
        m.ones(2,3)[10**30]
        m.ones(2,3)[::-1]
        m.ones(2,3)[::0]
        m.cat([])
        m.tensor([[1,2],[3]])
        m.tensor(['a'])
        m.tensor(10**30)
        m.tensor([10**30])
        m.tensor(selflist())
        int(m.ones(2))
        float(m.ones(2))
        int(m.tensor(float('nan')))
        complex(m.ones(2))
        m.frombuffer(b'',dtype=m.float32)
        m.frombuffer(b'abc',dtype=m.float32)
        m.frombuffer(bytearray(8),dtype=m.float32,count=3)
        m.frombuffer(bytearray(8),dtype=m.float32,offset=9)
        m.frombuffer(bytearray(8),dtype=m.float32,offset=-1)
        m.frombuffer(bytearray(8),dtype=m.float32,count=0)
        m.frombuffer(3,dtype=m.float32)
        m.from_numpy(np.zeros(2,dtype='>f4'))
        m.manual_seed(2**70)
        m.nn.functional.cross_entropy(m.ones(2,3),m.tensor([0,1,2]))
        m.nn.functional.cross_entropy(m.ones(2,3),m.tensor([0,1]),reduction='nonsense')
        m.nn.functional.mse_loss(m.ones(2),m.ones(2),reduction='x')
        m.nn.functional.batch_norm(m.ones(1,3),None,None,training=True)
        m.nn.functional.dropout(m.ones(2),-0.1)
    """,
}

# What PyTorch takes, raises in another class or crashes on.
OUR_OWN = {
    "RuntimeError": r"""
        m.ones([1]*65)
        m.ones(1).view([1]*65)
        m.ones(1).expand([1]*65)
        m.ones([1]*64).unsqueeze(0)
        m.stack([m.ones([1]*64)]*2)
        m.ones(2)[(None,)*64]
        m.ones([1]*64)[None]
        m.mm(m.ones(2,2),m.ones(2,2,device='meta'))
        m.nn.functional.conv2d(m.ones(1,1,3,3),m.ones(1,1,3,3),dilation=2**62)
        m.nn.functional.group_norm(m.ones(2,3),0)
        m.tensor(clearing())
        m.ones(2,3)[clearing()]
        m.zeros(clearing())
        m.ones(3).view(clearing())
        m.ones(3).sum(clearing())
    """,
    "TypeError": r"""
        m.add(m.ones(2),m.ones(2),out=1)
        m.ones(2).to(3.5)
        m.Generator().manual_seed(1.5)
    """,
    "ValueError": r"""
        m.tensor(eval('['*70+'1'+']'*70))
        m.tensor([10**400],dtype=m.float32)
        m.tensor(BadLen())
        m.frombuffer(bytearray(9),dtype=m.float32,offset=1)
        m.frombuffer(bytearray(8),dtype=m.float32,count=2**62)
    """,
}


def rows(table: dict[str, str]) -> list[Any]:
    found = []
    for name, text in table.items():
        for line in filter(None, map(str.strip, text.splitlines())):
            found.append(pytest.param(line, getattr(builtins, name), id=line))
    return found


@pytest.mark.parametrize(("expression", "expected"), rows(AS_TORCH) + rows(OUR_OWN))
def test_raises(expression: str, expected: type[Exception]) -> None:
    with pytest.raises(expected) as caught:
        eval(expression, NAMES | {"m": tp})
    assert type(caught.value) is expected
    assert str(caught.value).strip()
    assert "without an error" not in str(caught.value)


@pytest.mark.parametrize(("expression", "expected"), rows(AS_TORCH))
@pytest.mark.filterwarnings("ignore")
def test_torch_raises_the_same(expression: str, expected: type[Exception]) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as caught:
        eval(expression, NAMES | {"m": torch})
    assert issubclass(expected, type(caught.value))


# ---- messages: the operator, the argument and what it got ----

MESSAGES = [
    ("m.add(m.ones(2), m.ones(2), aplha=2)", r"add\(\).*aplha.*alpha"),
    ("m.ones(2).sum(dmi=0)", r"sum\(\).*dmi.*dim"),
    ("m.zeros(2, dytpe=m.int64)", r"zeros\(\).*dytpe.*dtype"),
    ("m.add(m.ones(2), 'a')", r"add\(\).*other.*str"),
    ("m.add(None, m.ones(2))", r"add\(\).*input.*None"),
    ("m.mm(m.ones(2, 2), m.ones(2, 2, device='meta'))", r"mm.*self on cpu, mat2 on meta"),
    ("m.add(m.ones(2), m.ones(2, device='meta'))", r"add.*self on cpu, other on meta"),
    ("m.ones(2).add_(m.ones(2, device='meta'))", r"add.*other on meta"),
    ("m.add(m.ones(2), m.ones(2), out=m.ones(2, device='meta'))", r"output on meta"),
    ("m.cat([m.ones(2), m.ones(2, device='meta')])", r"cat.*tensors\[0\] on cpu, tensors\[1\] on meta"),
    ("m.ones(2, 3).sum(2)", r"2"),
    ("m.ones(2)[5]", r"5.*2"),
    ("m.ones(2, -3)", r"-3"),
    ("m.ones(2) + m.ones(3)", r"2.*3"),
    ("m.ones(2).sum(10**30)", r"1000000000"),
    ("m.ones(3).view(2, 10**30)", r"size.*1000000000"),
    ("m.empty(2**40, 2**40)", r"1099511627776"),
    ("m.tensor([[1, 2], [3]])", r"length 2.*got 1"),
    ("m.ones([1] * 65)", r"64.*65"),
    ("m.ones(2, dtype=m.int64).add_(1.5)", r"Float.*Long"),
    ("m.stack([])", r"stack.*non-empty"),
]


@pytest.mark.parametrize(("expression", "pattern"), MESSAGES)
def test_message(expression: str, pattern: str) -> None:
    with pytest.raises(Exception) as caught:
        eval(expression, NAMES | {"m": tp})
    assert re.search(pattern, str(caught.value), re.DOTALL), str(caught.value)


# ---- nothing is written half ----

OUTPUTS = [
    "m.add(m.ones(2), m.ones(3), out=o)",
    "m.add(m.ones(2, 3), 1j, out=o)",
    "m.mm(m.ones(2, 3), m.ones(2, 3), out=o)",
    "m.cat([m.ones(2, 3), m.ones(3, 2)], out=o)",
    "m.gather(m.ones(2, 3), 0, m.full((2, 3), 5), out=o)",
    "m.index_select(m.ones(2, 3), 0, m.tensor([0, 7]), out=o)",
    "m.max(m.ones(2, 3), 0, out=(o, m.empty(3)))",
    "m.sort(m.ones(2, 3), out=(o, m.empty(3)))",
    "m.topk(m.ones(2, 3), 9, out=(o, m.empty(3, dtype=m.int64)))",
    "m.sum(m.ones(2, 3), 5, out=o)",
    "m.stack([m.ones(2), m.ones(3)], out=o)",
    "m.take(m.ones(3), m.tensor([0, 4]), out=o)",
    "m.arange(0, 1, 0, out=o)",
    "m.bmm(m.ones(1, 2, 3), m.ones(1, 2, 3), out=o)",
    "m.add(m.ones(2, requires_grad=True), m.ones(2), out=o)",
    "m.where(m.ones(2), m.ones(2), m.ones(2), out=o)",
    "m.multinomial(m.ones(3), 4, out=o)",
    "m.std(m.ones(2, 3), 7, out=o)",
    "m.var_mean(m.ones(2, 3), 7, out=(o, o))",
    "o.add_(m.ones(5))",
    "o.scatter_(0, m.tensor([[0, 0, 9]]), 1.0)",
    "o.index_add_(0, m.tensor([0, 9]), m.ones(2, 3))",
    "o.index_copy_(0, m.tensor([0, 9]), m.ones(2, 3))",
    "o.index_fill_(0, m.tensor([0, 9]), 1.0)",
    "o.put_(m.tensor([0, 99]), m.ones(2))",
    "o.masked_fill_(m.ones(5) > 0, 1.0)",
    "o.masked_scatter_(m.ones(2, 3) > 0, m.ones(2))",
    "o.copy_(m.ones(5))",
    "o.fill_(1j)",
    "o.uniform_(3, 1)",
    "o.normal_(0, -1)",
    "o.__setitem__((slice(None), m.tensor([0, 9])), m.ones(2))",
    "o.__setitem__(5, 1)",
    "o.__setitem__(0, m.ones(7))",
    "o.clamp_()",
    "o.pow_(1j)",
    "o.resize_(2**62)",
    "o.unsqueeze_(7)",
    "o.transpose_(0, 7)",
    "o.set_(m.ones(2, dtype=m.int64))",
]


@pytest.mark.parametrize("expression", OUTPUTS)
def test_outputs_stay(expression: str) -> None:
    o = tp.arange(6.0).reshape(2, 3)
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)):
        eval(expression, NAMES | {"m": tp, "o": o})
    assert o.shape == (2, 3)
    assert o.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_methods_whose_tensor_is_not_the_first_argument() -> None:
    t = tp.tensor([1.0, 3.0])
    assert t.where(t > 2, tp.zeros(2)).tolist() == [0.0, 3.0]
    assert t.where(condition=t > 2, other=t * 5).tolist() == [5.0, 3.0]
    assert t.polygamma(1).tolist() == tp.special.polygamma(1, t).tolist()


def test_numbers_with_out() -> None:
    for name in ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide"):
        out = tp.empty(2)
        function = getattr(tp, name)
        assert function(tp.tensor([3.0, 5.0]), 2, out=out) is out
        assert out.tolist() == function(tp.tensor([3.0, 5.0]), 2).tolist()


def test_numbers_for_tensors() -> None:
    """The functions that PyTorch's parser gives numbers to where tensors are declared."""
    for name in ("add", "sub", "mul", "div", "true_divide", "floor_divide"):
        function = getattr(tp, name)
        assert function(6, tp.tensor([2, 3])).tolist() == function(tp.tensor(6), tp.tensor([2, 3])).tolist()
        assert function(6, 2.5).item() == function(tp.tensor(6), tp.tensor(2.5)).item()
    assert tp.add(1, tp.ones(2), alpha=3).tolist() == [4.0, 4.0]
    assert tp.add(1, 2).dtype == tp.int64
    assert tp.empty(2).copy_(3).tolist() == [3.0, 3.0]
    with pytest.raises(TypeError):
        tp.maximum(1, tp.ones(2))


def test_result_too_large() -> None:
    """Operators whose result does not fit the memory raise, and the process goes on."""
    a = tp.ones(1 << 20, 1).expand(1 << 20, 1 << 20)
    for call in (
        lambda: a + a,
        lambda: a.clone(),
        lambda: a.contiguous().sum(),
        lambda: tp.cat([a, a]),
        lambda: tp.ones(1 << 20, 1) @ tp.ones(1, 1 << 20) @ tp.ones(1 << 20, 1 << 10),
        lambda: tp.eye(1 << 24),
        lambda: tp.ones(1 << 20).repeat(1 << 24),
        lambda: tp.nn.functional.one_hot(tp.tensor([1 << 50])),
        lambda: tp.ones(1 << 20).diag(),
        lambda: tp.bincount(tp.tensor([1 << 50])),
    ):
        with pytest.raises((MemoryError, RuntimeError)):
            call()
    assert (tp.ones(3) + 1).tolist() == [2.0, 2.0, 2.0]


FUZZ_PARTS = 4


@pytest.mark.parametrize("part", range(FUZZ_PARTS))
def test_wrong_arguments_everywhere(part: int, tmp_path: Any) -> None:
    """Every operator with every wrong value in each place: fuzz_operators.py, in a process of its own."""
    journal = tmp_path / "journal"
    journal.write_bytes(b"\0" * 256)
    fuzz = Path(__file__).parent / "fuzz_operators.py"
    program = [sys.executable, str(fuzz), str(journal), f"{part}/{FUZZ_PARTS}"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(os.path.abspath(folder) for folder in sys.path)}
    # In a folder of its own: some operators make files of the names that they are given.
    done = subprocess.run(program, capture_output=True, text=True, timeout=1200, env=environment, cwd=tmp_path)
    last = journal.read_bytes().rstrip(b"\0").decode()
    assert done.returncode == 0, f"at {last}: exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-1500:]}"


# ---- numbers and outputs that do not fit ----

MASK = tp.tensor([True, False, True])


@pytest.mark.parametrize(
    "call",
    [
        lambda: tp.ones(3).masked_fill(MASK, 1j),
        lambda: tp.ones(3).masked_fill_(MASK, 1j),
        lambda: tp.ones(3).masked_fill(MASK, tp.tensor(1j)),
        lambda: tp.ones(3, dtype=tp.uint8).masked_fill(MASK, 300),
        lambda: tp.ones(3, dtype=tp.float16).masked_fill(MASK, 1e10),
        lambda: tp.ones(3).masked_fill(MASK, 1e300),
        lambda: tp.add(tp.ones(2), tp.ones(2), alpha=1j),
        lambda: tp.sub(*[tp.ones(2, dtype=tp.int8)] * 2, alpha=-129),
        lambda: tp.addcmul(*[tp.ones(2, dtype=tp.int32)] * 3, value=2**40),
        lambda: tp.index_add(tp.ones(2, dtype=tp.uint8), 0, tp.tensor([0]), tp.ones(1, dtype=tp.uint8), alpha=300),
        lambda: tp.ones(2, dtype=tp.uint8).clamp(max=260),
        lambda: tp.ones(2, dtype=tp.int8).clamp(min=-200),
        lambda: tp.ones(2, dtype=tp.int8).clamp(-200, 200),
        lambda: tp.ones(2, dtype=tp.float16).clamp_(max=1e10),
        lambda: tp.ones(2).clamp_max(1e300),
        lambda: tp.where(MASK, tp.ones(3, dtype=tp.uint8), 300),
        lambda: tp.where(MASK, 300, tp.ones(3, dtype=tp.uint8)),
        lambda: tp.where(MASK, tp.ones(3), 1e300),
        lambda: tp.addmm(*[tp.ones(2, 2)] * 3, beta=1j),
        lambda: tp.addmm(*[tp.ones(2, 2, dtype=tp.int8)] * 3, alpha=300),
        lambda: tp.baddbmm(*[tp.ones(1, 2, 2)] * 3, alpha=1j),
        lambda: tp.addmv(tp.ones(2), tp.ones(2, 2), tp.ones(2), beta=1j),
        lambda: tp.addr(tp.ones(2, 2), tp.ones(2), tp.ones(2), beta=1j),
        lambda: tp.linspace(0, 300, 3, dtype=tp.uint8),
        lambda: tp.linspace(-300, 1, 3, dtype=tp.int8),
    ],
)
def test_a_number_that_does_not_fit_the_dtype(call: Any) -> None:
    with pytest.raises(RuntimeError, match=r"cannot be converted to|alpha must not be a complex number"):
        call()


def test_numbers_that_decide_the_dtype_or_fit() -> None:
    """Where the number is of a higher kind it is not cast at all, and into a half it goes as infinity."""
    byte = tp.tensor([5], dtype=tp.uint8)
    assert byte.clamp(max=2.5).tolist() == [2.5] and byte.clamp(min=-1).tolist() == [255]
    assert tp.where(tp.tensor([False]), byte, 1.5).tolist() == [1.5]
    assert tp.where(tp.tensor([False]), tp.tensor([True]), 300).tolist() == [300]
    assert tp.where(tp.tensor([False]), tp.ones(1, dtype=tp.float16), 1e10).tolist() == [float("inf")]
    assert tp.ones(1).clamp(max=float("inf")).tolist() == [1.0]


def test_an_infinite_number_fits_every_floating_dtype() -> None:
    for dtype in (tp.float16, tp.bfloat16, tp.float32, tp.float64):
        assert tp.ones(3, dtype=dtype).masked_fill(MASK, float("-inf")).tolist()[0] == float("-inf")


@pytest.mark.parametrize(
    "call",
    [
        lambda out: tp.gather(tp.ones(3), 0, tp.tensor([0]), out=out(tp.float64)),
        lambda out: tp.complex(tp.ones(2), tp.ones(2), out=out(tp.complex128)),
        lambda out: tp.polar(tp.ones(2), tp.ones(2), out=out(tp.complex128)),
    ],
)
def test_an_output_of_another_dtype(call: Any) -> None:
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        call(lambda dtype: tp.empty(0, dtype=dtype))


@pytest.mark.parametrize("training", [False, True])
def test_bounds_of_slopes(training: bool) -> None:
    for lower, upper in ((0.9, 0.1), (float("nan"), 0.1), (0.1, float("inf"))):
        with pytest.raises(RuntimeError, match="bound"):
            tp.nn.functional.rrelu(tp.ones(3), lower, upper, training=training)


def test_classes_of_errors_about_indices() -> None:
    x, one, two = tp.ones(3, 4), tp.tensor([0]), tp.tensor([0, 1])
    for write, what in ((x.index_add, "source tensor shape must match"), (x.index_copy, "slice shapes")):
        with pytest.raises(RuntimeError, match=what):
            write(0, one, tp.ones(1, 3))
    with pytest.raises(RuntimeError, match=r"Number of indices \(2\)"):
        x.index_add(0, two, tp.ones(1, 4))
    with pytest.raises(IndexError, match=r"Number of indices \(2\)"):
        x.index_copy(0, two, tp.ones(1, 4))
    assert tp.empty(0, 3, dtype=tp.int16).fmod(tp.tensor([5, 0, 1], dtype=tp.int16)).shape == (0, 3)
    assert tp.cosine_similarity(tp.ones(2, dtype=tp.float16), tp.tensor([1, 2]), 0).dtype == tp.float16
