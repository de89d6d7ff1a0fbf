"""serve.py MODEL PORT [TEMPLATE]: llama.cpp's OpenAI-compatible server on loopback, with one thread.

It says "listening" on stdout and serves until it is killed. GET /health answers 200 when the model is loaded.
"""

import sys
import threading

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[2])
params.n_ctx = 8192
params.n_parallel = 1
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.use_jinja = True
params.endpoint_slots = True
if len(sys.argv) > 3:
    with open(sys.argv[3], encoding="utf-8") as template:
        params.chat_template = template.read()

server = xllamacpp.Server(params)
print("listening", flush=True)
threading.Event().wait()
