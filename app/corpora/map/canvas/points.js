// Decodes the points of a map and indexes them by grid cell.

function unpacked(given) {
  const bytes = new Uint8Array(given).buffer; // a copy at offset 0, so that the typed arrays are aligned
  const length = new DataView(bytes).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
  const pieces = header.lines.reduce((sum, line) => sum + line.pieces, 0);
  let place = 4 + length;
  const take = (Kind, count) => {
    const found = new Kind(bytes, place, count);
    place += found.byteLength;
    return found;
  };
  const x = take(Float32Array, header.points);
  const y = take(Float32Array, header.points);
  const lines = take(Float32Array, 4 * pieces);
  const cells = take(Float32Array, (header.difference?.cells ?? 0) ** 2);
  const category = take(Uint16Array, header.points);
  return { ...header, x, y, pieces: lines, cells, category };
}

// The rows of a set that came as base64 of one bit per row, the lowest bit first.
function rowsOfBits(text) {
  const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  const rows = [];
  bytes.forEach((byte, place) => {
    for (let bit = 0; byte >> bit; bit += 1) if ((byte >> bit) & 1) rows.push(8 * place + bit);
  });
  return Uint32Array.from(rows);
}

// Points by grid cell, so that a hover searches only nearby points.
class Grid {
  constructor(x, y) {
    this.cells = Math.max(1, Math.min(1024, Math.ceil(Math.sqrt(x.length / 2))));
    [this.low, this.high] = [[0, 0], [0, 0]];
    [x, y].forEach((values, side) => {
      let [low, high] = [Infinity, -Infinity];
      for (let row = 0; row < values.length; row += 1) {
        if (values[row] < low) low = values[row];
        if (values[row] > high) high = values[row];
      }
      [this.low[side], this.high[side]] = [low, high];
    });
    this.size = [0, 1].map((side) => (this.high[side] - this.low[side] || 1) / this.cells);
    this.start = new Uint32Array(this.cells * this.cells + 1);
    const cell = new Uint32Array(x.length);
    for (let row = 0; row < x.length; row += 1) {
      cell[row] = this.at(x[row], 0) * this.cells + this.at(y[row], 1);
      this.start[cell[row] + 1] += 1;
    }
    for (let each = 0; each < this.start.length - 1; each += 1) {
      this.start[each + 1] += this.start[each];
    }
    const next = this.start.slice();
    this.rows = new Uint32Array(x.length);
    for (let row = 0; row < x.length; row += 1) this.rows[next[cell[row]]++] = row;
  }

  at(value, side) {
    const found = Math.floor((value - this.low[side]) / this.size[side]);
    return Math.max(0, Math.min(this.cells - 1, found));
  }

  *near(x, y, reach) {
    for (let i = this.at(x - reach, 0); i <= this.at(x + reach, 0); i += 1) {
      const first = this.start[i * this.cells + this.at(y - reach, 1)];
      const last = this.start[i * this.cells + this.at(y + reach, 1) + 1];
      for (let place = first; place < last; place += 1) yield this.rows[place];
    }
  }
}

