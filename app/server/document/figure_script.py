"""Streamlit's script of figures without what no figure of ours draws: maps, 3D, WebGL and the like.

It holds all of Plotly, 4.7 MB; 2.0 are left. Plotly makes its smaller bundles by leaving names out
of the list that its `lib/index.js` registers; here they are taken from the list in the script, and
with them the modules that nothing reaches any more. Those stand in it as esbuild writes them,
`NAME=HELPER({"path/of/module.js"(exports,module){…}}),`, and reach others by `NAME()`. One that has
something else behind it stays. A script that is written in another way is sent whole.
"""

import re
from typing import Final

TRACES: Final = ("bar", "heatmap", "sankey")  # beside `scatter`, which is Plotly's core
MODULE: Final = re.compile(r'([\w$]+)=[\w$]+\(\{"([^"\n]+)"\(')
REGISTERED: Final = re.compile(r"\.register\(\[([\w$]+\(\),?){20,}\]\)")
REACHED: Final = re.compile(r"(?<![\w$.])([\w$]+)\(\)")
END: Final = "}}),"  # of a module behind which nothing else stands


def with_our_traces(script: str) -> str:
    """The script with TRACES alone; as it is where it is not written as expected."""
    named = {path: name for name, path in MODULE.findall(script)}
    ours = [named.get(f"lib/{trace}.js") for trace in TRACES]
    if not all(ours) or not REGISTERED.search(script):
        return script
    listed = ",".join(f"{name}()" for name in ours)
    script = REGISTERED.sub(lambda _: f".register([{listed}])", script, count=1)
    found = list(MODULE.finditer(script))
    ends = [*(each.start() for each in found[1:]), len(script)]
    parts = {each[1]: script[each.start() : end] for each, end in zip(found, ends, strict=True)}
    head, last = script[: found[0].start()], found[-1][1]  # behind the last all else stands
    reached: set[str] = set()
    waiting = [head, parts[last]]
    while waiting:
        new = {name for name in REACHED.findall(waiting.pop()) if name in parts} - reached
        reached |= new
        waiting += [parts[name] for name in new]
    kept = (part for name, part in parts.items() if name in reached or not part.endswith(END))
    return head + "".join(kept)
