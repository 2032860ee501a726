// Drawings of what was recorded, as SVG.

const LEFT = 46, RIGHT = 10, TOP = 8, BOTTOM = 6;
const CHARTS = [
  { id: 'lag', title: 'Lag', unit: 'pending transactions', height: 120, value: VALUES.lag, ticks: (most) => ticksUpTo(most, true), scale: shortNumber, print: number },
  { id: 'age', title: 'Age', unit: 'of the oldest pending change', height: 90, value: VALUES.age, ticks: secondTicks, scale: shortSpan, print: span },
  { id: 'replicas', title: 'Replicas', unit: 'desired; ▲ more and ▼ fewer are decisions', height: 100, value: VALUES.replicas, ticks: (most) => ticksUpTo(most, true), scale: shortNumber, print: number },
];

// line is the path of values over stretches of time, each of which holds to its end; null is a gap.
function line(stretches, x, y) {
  let d = '', end = null;
  for (const { from, to, value } of stretches) {
    if (value === null) {
      end = null;
      continue;
    }
    d += (end === from ? 'V' + y(value) : 'M' + x(from) + ',' + y(value)) + 'H' + x(to);
    end = to;
  }
  return d;
}

// joined are neighbours of which a property is the same, as one.
function joined(stretches, property) {
  const out = [];
  for (const s of stretches) {
    const last = out.at(-1), value = property(s);
    if (last && last.to === s.from && last.value === value) last.to = s.to;
    else out.push({ from: s.from, to: s.to, value });
  }
  return out;
}

// drawChart draws one series. scene has the samples, from when until when, the width, what is drawn
// beside them (others), and which decisions are marked.
function drawChart(chart, scene) {
  const { width, from, to } = scene, { height, value } = chart;
  const stretches = runs(scene.samples, to, scene.every).map((r) => ({ ...r, value: value(r.sample) }));
  const others = scene.others.map((o) => ({ ...o, stretches: o.points.map((p, i) => ({ from: p.ms, to: o.points[i + 1]?.ms ?? p.ms, value: value(p) })) }));
  const most = Math.max(0, ...[stretches, ...others.map((o) => o.stretches)].flatMap((list) => list.map((s) => s.value ?? 0)));
  const ticks = chart.ticks(most), top = Math.max(ticks.at(-1), 1);
  const round = (n) => Math.round(n * 10) / 10;
  const x = (ms) => round(LEFT + (Math.min(Math.max(ms, from), to) - from) / (to - from) * (width - LEFT - RIGHT));
  const y = (n) => round(height - BOTTOM - n / top * (height - TOP - BOTTOM));

  const parts = [];
  for (const t of timeTicks(from, to, width / 90)) parts.push(svg('line', { class: 'grid', x1: x(t), x2: x(t), y1: TOP, y2: height - BOTTOM }));
  for (const t of ticks) {
    parts.push(svg('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y(t), y2: y(t) }),
      svg('text', { class: 'scale', x: LEFT - 6, y: y(t) + 4, 'text-anchor': 'end' }, chart.scale(t)));
  }
  for (const gap of joined(stretches, (s) => s.value === null)) {
    if (gap.value) parts.push(svg('rect', { class: 'gap', fill: 'url(#hatch)', x: x(gap.from), y: TOP, width: Math.max(1, x(gap.to) - x(gap.from)), height: height - TOP - BOTTOM }));
  }
  const beside = others.map((o) => svg('path', { class: 'other ' + o.className, d: line(o.stretches, x, y) }));
  const curve = svg('path', { class: 'curve', d: line(stretches, x, y) });
  const replayed = others.some((o) => o.className === 'simulated');
  parts.push(...(replayed ? [curve, ...beside] : [...beside, curve]));
  if (chart.id === 'replicas') {
    const size = scene.decisions.length > width / 12 ? 3 : 5;
    parts.push(...scene.decisions.map((s) => mark(s, x(s.ms), y(s.desiredReplicas), height, size)));
  }
  const cursor = svg('line', { class: 'cursor', y1: 0, y2: height });
  return {
    svg: svg('svg', { class: 'chart', role: 'img', 'aria-label': summary(chart.title, chart.print, scene.samples, value, scene.now), width, height, viewBox: '0 0 ' + width + ' ' + height }, ...parts, cursor),
    cursor, x,
  };
}

// mark is a decision: up if there are more replicas, down if there are fewer.
function mark(s, x, y, height, size) {
  const up = s.desiredReplicas > (s.previousReplicas ?? 0);
  const tip = Math.min(Math.max(y, 8), height - 8), side = up ? size : -size;
  return svg('path', { class: up ? 'mark out' : 'mark in', d: `M${x},${tip - side}L${x + size},${tip + side}L${x - size},${tip + side}Z` });
}

// drawStatus is a band: the worse the status, the higher it stands.
const STANDS = { critical: 18, warning: 12, info: 7, ok: 2 };
function drawStatus(scene) {
  const { width, from, to } = scene, height = 20;
  const x = (ms) => Math.round(10 * (LEFT + (Math.max(ms, from) - from) / (to - from) * (width - LEFT - RIGHT))) / 10;
  const bands = joined(runs(scene.samples, to, scene.every), (r) => r.sample.status);
  const parts = bands.map((b) => {
    const kind = severity(b.value), left = x(b.from), wide = Math.max(1, x(b.to) - left);
    const rect = svg('rect', { class: 'band ' + kind, x: left, y: height - STANDS[kind], width: wide, height: STANDS[kind] });
    return wide > b.value.length * 7 + 8 && kind === 'critical' ? [rect, svg('text', { class: 'band-name', x: left + 4, y: height - 5 }, b.value)] : [rect];
  });
  const seen = joined(bands.filter((b) => severity(b.value) === 'critical' || severity(b.value) === 'warning'), (b) => b.value);
  const words = seen.slice(-5).map((b) => b.value + ' from ' + clock(b.from, scene.now) + ' to ' + clock(b.to, scene.now));
  const cursor = svg('line', { class: 'cursor', y1: 0, y2: height });
  return {
    svg: svg('svg', { class: 'chart', role: 'img', width, height, viewBox: '0 0 ' + width + ' ' + height, 'aria-label': 'Status: ' + (words.length ? (seen.length > 5 ? 'the last five times of trouble: ' : '') + words.join('; ') : 'lagging or ok all the time') + '.' }, ...parts.flat(), cursor),
    cursor, x,
  };
}

// drawTimes is the scale below all charts.
function drawTimes(scene) {
  const { width, from, to } = scene;
  const days = to - from > 36 * 3_600_000;
  const labels = timeTicks(from, to, width / 90).map((t) => {
    const text = new Date(t).toISOString();
    const x = LEFT + (t - from) / (to - from) * (width - LEFT - RIGHT);
    return svg('text', { class: 'scale', x: Math.min(Math.max(x, LEFT), width - 20), y: 12, 'text-anchor': 'middle' }, days && text.slice(11, 16) === '00:00' ? text.slice(5, 10) : text.slice(11, 16));
  });
  return svg('svg', { class: 'chart', 'aria-hidden': 'true', width, height: 16, viewBox: '0 0 ' + width + ' 16' }, ...labels, svg('text', { class: 'scale', x: 0, y: 12 }, 'UTC'));
}

// spark draws values of equal steps in a small chart, from 0 to the most of them; null is a gap.
const SPARK = { width: 96, height: 20 };
function spark(values, words) {
  const { width, height } = SPARK, most = Math.max(1, ...values.filter((v) => v !== null)), wide = width / values.length;
  const stretches = values.map((value, i) => ({ from: i * wide, to: (i + 1) * wide, value }));
  const round = (n) => Math.round(n * 10) / 10;
  return svg('svg', { class: 'spark', role: 'img', 'aria-label': words, width, height, viewBox: '0 0 ' + width + ' ' + height },
    svg('title', {}, words), svg('path', { class: 'curve', d: line(stretches, round, (n) => round(height - 2 - n / most * (height - 4))) }));
}
