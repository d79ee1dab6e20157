#!/bin/sh
# Serve an exported folder by vLLM's pooling mode: serve_vllm.sh FOLDER
# Then: curl 127.0.0.1:8000/v1/embeddings -H 'Content-Type: application/json' \
#         -d '{"model": "inf-embed", "input": ["how long is the bridge"]}'
set -eu
folder=$(realpath "${1:?give the folder that inf models export wrote}")
exec vllm serve "$folder" --runner pooling --served-model-name inf-embed --host 127.0.0.1
