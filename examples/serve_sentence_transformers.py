"""Search with a checkpoint through sentence-transformers: MODEL [QUERY [INSTRUCTION]].

The text of a query is made by the template that the checkpoint stores (`inf_embed.json`).
"""

import json
import sys
from pathlib import Path

from sentence_transformers import SentenceTransformer

PASSAGES = ["The bridge is 240 metres long.", "The bridge was built by Ina Holt."]


def main(folder: str, query: str, instruction: str) -> None:
    memory = Path(folder) / "inf_embed.json"
    template = json.loads(memory.read_text()).get("template") if memory.is_file() else None
    template = template or "{instruction} {query}"
    text = template.format(instruction=instruction, query=query) if instruction else query
    model = SentenceTransformer(folder)
    # a checkpoint whose index stays has an encoder of its own for texts with an instruction
    door = {"task": "instructed", "prompt_name": "instructed"}
    is_apart = bool(instruction) and "instructed" in model.prompts
    asked = model.encode([text], **door) if is_apart else model.encode_query([text])
    scores = model.similarity(asked, model.encode_document(PASSAGES))[0]
    for score, passage in sorted(zip(scores.tolist(), PASSAGES, strict=True), reverse=True):
        print(f"{score:.4f}  {passage}")


if __name__ == "__main__":
    given = [
        *sys.argv[1:],
        *["", "how long is the bridge", "Give the figure."][len(sys.argv[1:]) :],
    ]
    main(*given[:3])
