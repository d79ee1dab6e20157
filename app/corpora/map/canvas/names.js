// Writes the names of clusters where their texts lie: the largest first, none over another. More of
// them fit as one zooms in.

const NAME_FONT = "600 12.5px 'Source Sans', 'Source Sans Pro', sans-serif";
const NAME_HEIGHT = 18;
const HALO = 3.5; // pixels of background around a name

const NAME_LENGTH = 36; // characters: of a longer one, of three instructions, the first stands here

// Returns where the names were written: [{name, left, top, right, bottom}].
function drawNames(context, labels, view, width, height, [ground, ink]) {
  const written = [];
  context.font = NAME_FONT;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  for (const { name, x, y, panel } of labels) {
    const [at, py] = [(x - view.x) * view.scale + width / 2, (view.y - y) * view.scale + height / 2];
    if (at < 0 || at > width || py < 0 || py > height) continue;
    const shown = name.length > NAME_LENGTH ? name.split(" / ")[0] : name;
    const half = context.measureText(shown).width / 2 + 4;
    const px = Math.max(half, Math.min(width - half, at)); // whole, also near an edge
    const box = {
      name,
      panel,
      left: px - half,
      right: px + half,
      top: py - NAME_HEIGHT / 2,
      bottom: py + NAME_HEIGHT / 2,
    };
    if (written.some((other) => overlaps(box, other))) continue;
    written.push(box);
    context.strokeStyle = ground;
    context.lineWidth = 2 * HALO;
    context.globalAlpha = 0.85;
    context.strokeText(shown, px, py);
    context.globalAlpha = 1;
    context.fillStyle = ink;
    context.fillText(shown, px, py);
  }
  return written;
}

function overlaps(one, other) {
  return (
    one.left < other.right &&
    other.left < one.right &&
    one.top < other.bottom &&
    other.top < one.bottom
  );
}
