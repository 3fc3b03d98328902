"""llama.cpp's own OpenAI server in a process of its own: `python llama_server.py MODEL '{"n_ctx": 1024}'`.

It says where it listens, and ends when nobody holds its standard input any more.
"""

import json
import os
import sys

os.environ["OMP_WAIT_POLICY"] = "passive"  # the library looks at this once, when it is loaded

import xllamacpp

model, options = sys.argv[1], json.loads(sys.argv[2])
params = xllamacpp.CommonParams()
params.model.path = model
params.hostnames, params.port = ["127.0.0.1"], 0
params.n_parallel = 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.cpuparams.poll = params.cpuparams_batch.poll = 0
params.ui = params.warmup = params.fit_params = False
params.verbosity = -1
params.sampling.ignore_eos = options.pop("ignore_eos", False)
for name, value in options.items():
    setattr(params, name, value)

server = xllamacpp.Server(params)
sys.stdout.write(f"{server.listening_address}\n")
sys.stdout.flush()
sys.stdin.read()
