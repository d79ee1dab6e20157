#!/bin/sh
# Serve an exported folder by text-embeddings-inference on the CPU: serve_tei.sh FOLDER
# Then: curl 127.0.0.1:8080/embed -d '{"inputs": "how long is the bridge"}' -H 'Content-Type: application/json'
set -eu
folder=$(realpath "${1:?give the folder that inf models export wrote}")
exec docker run --rm -p 127.0.0.1:8080:80 -v "$folder:/model:ro" \
  ghcr.io/huggingface/text-embeddings-inference:cpu-1.8 --model-id /model
