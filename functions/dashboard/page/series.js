// What is drawn of a history: no function of this file knows the page.

// valueOf is the number of a sample that a chart draws; null is unknown. Nothing pending has an age of 0.
const VALUES = {
  lag: (s) => s.lag,
  age: (s) => s.changeAgeSeconds ?? (s.lag === 0 ? 0 : null),
  replicas: (s) => s.desiredReplicas,
};

// changed tells whether a sample is a decision that changed the replicas, or the first.
const changed = (s) => s.desiredReplicas !== null && s.previousReplicas !== s.desiredReplicas;

// usualStep is the median time between two samples, in ms.
function usualStep(samples) {
  const steps = samples.slice(1).map((s, i) => s.ms - samples[i].ms).sort((a, b) => a - b);
  return steps[Math.floor(steps.length / 2)] ?? 0;
}

// runs are the stretches of time in which a sample holds: up to the next one, if that comes as
// usual; else the polls between are missing. every is the step of which they are samples, in ms.
function runs(samples, until, every) {
  const usual = Math.max(usualStep(samples), every);
  return samples.map((s, i) => {
    const next = samples[i + 1]?.ms ?? until;
    return { sample: s, from: s.ms, to: next - s.ms <= 3 * usual ? next : s.ms + usual };
  });
}

// merge puts newer samples, which are all there are from a time on, behind those that are known, and
// forgets what is before since.
function merge(known, newer, from, since) {
  return [...known.filter((s) => s.ms >= since && s.ms < from), ...newer];
}

// beginning is from when on a chart is drawn whose samples fill less than half of its time: from the
// first one, over at least five minutes, so that the first minutes are no sliver.
function beginning(first, to, length) {
  return first > to - length / 2 ? Math.min(first, to - 300_000) : to - length;
}

// ticksUpTo are about three round numbers up to the greatest value: 1, 2 or 5 times a power of ten.
function ticksUpTo(most, whole) {
  if (!(most > 0)) return [0, 1];
  let step = 10 ** Math.floor(Math.log10(most / 3));
  for (const times of [1, 2, 5, 10]) {
    if (most / (step * times) <= 3.5) {
      step *= times;
      break;
    }
  }
  if (whole) step = Math.max(1, Math.round(step));
  const ticks = [];
  for (let t = 0; t < most + step; t += step) ticks.push(t);
  return ticks;
}

// secondTicks are the same for seconds, at whole minutes, hours and days.
function secondTicks(most) {
  const steps = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000];
  const step = steps.find((s) => most / s <= 3.5) ?? 10 ** Math.ceil(Math.log10(most / 3));
  const ticks = [];
  for (let t = 0; t < most + step; t += step) ticks.push(t);
  return ticks;
}

// timeTicks are round times between two, so many at most.
function timeTicks(from, to, most) {
  const minute = 60_000;
  const step = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880].map((m) => m * minute).find((s) => (to - from) / s <= most) ?? 7 * 1440 * minute;
  const ticks = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) ticks.push(t);
  return ticks;
}

const shortNumber = (n) => (n >= 1e9 ? n / 1e9 + 'G' : n >= 1e6 ? n / 1e6 + 'M' : n >= 1e4 ? n / 1e3 + 'k' : number(n));

// shortSpan prints seconds of a scale.
function shortSpan(s) {
  for (const [unit, length] of [['d', 86400], ['h', 3600], ['min', 60]]) if (s >= length && s % length === 0) return s / length + ' ' + unit;
  return s + ' s';
}

// summary says in words what a chart shows, for who cannot see it.
function summary(title, print, samples, value, now) {
  const known = samples.filter((s) => value(s) !== null);
  if (known.length === 0) return title + ': nothing is known in this time.';
  const last = samples.at(-1);
  const top = known.reduce((a, b) => (value(b) > value(a) ? b : a));
  const unknown = samples.length - known.length;
  return title + ': last ' + (value(last) === null ? 'unknown' : print(value(last))) + ', most ' + print(value(top)) + ' at ' + clock(top.ms, now) +
    ', least ' + print(Math.min(...known.map(value))) + (unknown ? '; unknown in ' + number(unknown) + ' of ' + count(samples.length, 'sample') : '') + '.';
}

// reading says in words what a sample knows.
function reading(s) {
  return 'lag ' + number(s.lag) + ', age ' + age(s) + ', ' + (s.desiredReplicas === null ? 'replicas unknown' : count(s.desiredReplicas, 'replica')) + ', ' + s.status +
    (s.partitionCount === null ? '' : ', ' + withLag(s) + ' partitions with lag');
}

// totals sums a history up: hours of replicas, the most of lag and age, changes.
function totals(samples, until, every) {
  const known = (value) => samples.map(value).filter((v) => v !== null);
  return {
    replicaHours: runs(samples, until, every).reduce((sum, r) => sum + (r.sample.desiredReplicas ?? 0) * (r.to - r.from), 0) / 3_600_000,
    maxLag: Math.max(0, ...known(VALUES.lag)), maxAgeSeconds: Math.max(0, ...known(VALUES.age)),
    actions: samples.filter((s) => changed(s) && s.previousReplicas !== null).length,
  };
}
