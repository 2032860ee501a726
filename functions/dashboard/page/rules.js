'use strict';

// The statuses, worst first, and how loud each one is.
const SEVERITY = {
  unknown: 'bad', bootstrap: 'warn', splitting: 'warn', stalled: 'bad',
  unclaimed: 'warn', uncheckpointed: 'warn', lagging: 'busy', ok: 'ok',
};
const STATUSES = Object.keys(SEVERITY);
const UNKNOWN = '?';
const NOTHING = '–';
const collator = new Intl.Collator('en', { numeric: true });

// worstFirst orders what has a status, a lag and a name: an unknown lag stands
// above every known one, and a status that this page has never heard of first.
function worstFirst(a, b) {
  const rank = (x) => STATUSES.indexOf(x.status);
  const lag = (x) => (x.lag === null ? Infinity : x.lag);
  return rank(a) - rank(b) || (lag(a) === lag(b) ? 0 : lag(b) - lag(a)) ||
    collator.compare(a.name ?? a.lease, b.name ?? b.lease);
}

// number prints a count; null is unknown, which is not zero.
const number = (n) => (n === null ? UNKNOWN : n.toLocaleString('en'));

// span prints seconds as people say them.
function span(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 120) return s + ' s';
  if (s < 2 * 3600) return Math.floor(s / 60) + ' min';
  if (s < 48 * 3600) return Math.floor(s / 3600) + ' h';
  return Math.floor(s / 86400) + ' d';
}

// age is that of the oldest pending change, of a processor or a partition.
function age(x) {
  if (x.changeAgeSeconds !== null) return span(x.changeAgeSeconds);
  return x.lag === 0 ? NOTHING : UNKNOWN;
}

const ARROWS = { out: '↑', in: '↓' };
const replicas = (p) => (p.desiredReplicas === null ? UNKNOWN : (ARROWS[p.direction] ?? '') + number(p.desiredReplicas));
const partitions = (p) => (p.partitionCount === null ? UNKNOWN : number(p.partitionsWithLag) + ' / ' + number(p.partitionCount));
const charge = (p) => (p.requests === 0 ? NOTHING : p.requestCharge.toFixed(1));
const measured = (p, now) => (p.polledAt === null ? 'never' : span((now - Date.parse(p.polledAt)) / 1000) + ' ago');

// why is the error where there is one, else the reason that settled the decision.
function why(p) {
  if (p.error !== null) return p.error;
  const last = p.reasons.at(-1);
  return last ? last.step + ': ' + last.why : p.polledAt === null ? 'never polled' : '';
}

// matches tells whether a processor is among those that a filter asks for: all
// its words are in the name, the status or the error; or it is a status itself.
function matches(p, filter) {
  const wanted = filter.trim().toLowerCase();
  if (STATUSES.includes(wanted)) return p.status === wanted;
  const text = [p.name, p.status, p.error ?? '', p.paused ? 'paused' : ''].join(' ').toLowerCase();
  return wanted.split(/\s+/).every((word) => text.includes(word));
}

// refusal says what an answer other than 200 means, and what to do.
function refusal(status, detail) {
  if (status === 401 || status === 403) {
    return 'The function key does not open the list of processors. Open this page with ?code= and a key of the whole app (a host key), since a key of this function alone is not enough.';
  }
  return 'The server answers ' + status + (detail ? ': ' + detail : '') + '.';
}

// Data older than this is remarked upon.
const OLD = 5 * 60;

// tooOld is what to say where no processor was measured for long.
function tooOld(processors, now) {
  const last = Math.max(...processors.map((p) => (p.polledAt === null ? -Infinity : Date.parse(p.polledAt))));
  const seconds = (now - last) / 1000;
  if (processors.length === 0 || seconds < OLD) return '';
  return (last === -Infinity ? 'No processor was ever measured.' : 'Nothing was measured for ' + span(seconds) + '.') +
    ' Unless the schedules ask for that, see whether the poll function runs.';
}
