// What is shown, in which words and in which order: no function of this file knows the page.

// The statuses, worst first: SEVERITY is that of package report.
const STATUSES = Object.keys(SEVERITY);
// What each severity is called, and the sign before a status, so that neither needs a color.
const SEVERITIES = {
  critical: { word: 'act now', sign: '✖' }, warning: { word: 'watch', sign: '▲' }, info: { word: 'nothing to do', sign: '●' }, ok: { word: 'fine', sign: '✓' },
};
const UNKNOWN = '?';
const NOTHING = '–';
const collator = new Intl.Collator('en', { numeric: true });

// severity of a status; one that this page has never heard of is the worst.
const severity = (status) => SEVERITY[status] ?? 'critical';

// An unknown number stands above every known one.
const orMost = (n) => n ?? Infinity;
const difference = (a, b) => (a === b ? 0 : a - b);
const nameOf = (x) => x.name ?? x.lease ?? x.processor;

// worstFirst orders what has a status, a lag and a name: a status that this page has never heard of
// stands first.
function worstFirst(a, b) {
  const rank = (x) => STATUSES.indexOf(x.status);
  return rank(a) - rank(b) || difference(orMost(b.lag), orMost(a.lag)) || collator.compare(nameOf(a), nameOf(b));
}

// The columns of the list, and by what each one sorts; '-' before its name is from the most down.
const COLUMNS = {
  name: { title: 'Processor', by: (a, b) => collator.compare(a.name, b.name) },
  status: { title: 'Status', by: worstFirst, help: 'worst first' },
  lag: { title: 'Lag', number: true, by: (a, b) => difference(orMost(a.lag), orMost(b.lag)), help: 'pending transactions; ? is unknown' },
  age: { title: 'Age', number: true, by: (a, b) => difference(ageOrder(a), ageOrder(b)), help: 'of the oldest pending change' },
  replicas: { title: 'Replicas', number: true, by: (a, b) => difference(orMost(a.desiredReplicas), orMost(b.desiredReplicas)), help: 'desired, with the direction of the last decision' },
  partitions: { title: 'Partitions', number: true, by: (a, b) => difference(orMost(a.partitionCount), orMost(b.partitionCount)), help: 'with lag / all; of a group its members' },
  charge: { title: 'RU', number: true, by: (a, b) => difference(a.requestCharge ?? 0, b.requestCharge ?? 0), help: 'request units of the last poll' },
  measured: { title: 'Measured', number: true, by: (a, b) => difference(polled(a), polled(b)), help: 'when a poll last measured something' },
};
const ageOrder = (x) => x.changeAgeSeconds ?? (x.lag === 0 ? -1 : Infinity);
const polled = (x) => (x.polledAt === null ? -Infinity : Date.parse(x.polledAt));

// sorted orders by a column; what is equal there is ordered by worst first. Anything else than a
// column is worst first.
function sorted(list, sort) {
  const down = sort.startsWith('-');
  const column = COLUMNS[down ? sort.slice(1) : sort];
  const by = column?.by ?? worstFirst;
  return [...list].sort((a, b) => (down ? -1 : 1) * by(a, b) || worstFirst(a, b));
}

// nextSort is what a click on the head of a column makes of a sort: numbers begin with the most.
function nextSort(sort, column) {
  const first = COLUMNS[column].number && column !== 'measured' ? '-' + column : column;
  const second = first.startsWith('-') ? column : '-' + column;
  return sort === first ? second : first;
}

// number prints a count; null is unknown, which is not zero.
const number = (n) => (n === null || n === undefined ? UNKNOWN : n.toLocaleString('en'));

// rate prints transactions per second; null is unknown.
const rate = (n) => (n === null ? UNKNOWN : (n >= 100 ? Math.round(n) : Number(n.toPrecision(3))).toLocaleString('en') + '/s');

const count = (n, word) => number(n) + ' ' + word + (n === 1 ? '' : 's');

// span prints seconds as people say them.
function span(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 120) return s + ' s';
  if (s < 2 * 3600) return Math.floor(s / 60) + ' min';
  if (s < 48 * 3600) return Math.floor(s / 3600) + ' h';
  return Math.floor(s / 86400) + ' d';
}

// clock prints a time as the logs and the terminal do, in UTC; with its day if it is another one
// than now.
function clock(time, now) {
  const text = new Date(time).toISOString();
  const day = now !== undefined && new Date(now).toISOString().slice(0, 10) !== text.slice(0, 10) ? text.slice(5, 10) + ' ' : '';
  return day + text.slice(11, 19) + ' UTC';
}

// age is that of the oldest pending change, of a processor, a partition or a sample.
function age(x) {
  if (x.changeAgeSeconds !== null) return span(x.changeAgeSeconds);
  return x.lag === 0 ? NOTHING : UNKNOWN;
}

const ARROWS = { out: '↑', in: '↓' };
const replicas = (p) => (p.desiredReplicas === null ? UNKNOWN : (ARROWS[p.direction] ?? '') + number(p.desiredReplicas));
const withLag = (p) => (p.partitionCount === null ? UNKNOWN : number(p.partitionsWithLag) + ' / ' + number(p.partitionCount));
const partitions = (p) => (p.members ? count(p.members.length, 'member') : withLag(p));
const charge = (p) => (!p.requests ? NOTHING : p.requestCharge.toFixed(1));
const measured = (p, now) => (p.polledAt === null ? 'never' : span((now - Date.parse(p.polledAt)) / 1000) + ' ago');

// since says for how long a processor has had its status; nothing if nobody knows.
const since = (p, now) => (p.since ? ' ' + span((now - Date.parse(p.since)) / 1000) : '');

// catchUp is how long the lag takes to drain. A finding says if it only grows, or if nothing moves.
function catchUp(p) {
  if (p.catchUpSeconds !== null) return span(p.catchUpSeconds);
  return p.lag === 0 ? NOTHING : UNKNOWN;
}

// why is the worst that was found and what to do about it, else the reason that settled the decision, and nothing
// to do.
function why(p) {
  const found = p.findings?.find((f) => f.severity === 'critical' || f.severity === 'warning');
  if (found) return [sentence(found.sentence), sentence(found.remedy)];
  if (p.error !== null) return [p.error, ''];
  const last = p.reasons.at(-1);
  return [last ? last.step + ': ' + last.why : p.polledAt === null ? 'never polled' : '', ''];
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.?!:…]$/.test(text) ? '' : '.');

const LONGEST = 160; // characters of a sentence that one row says in full

// firstSentences are what a list says first: the causes that several processors share or, if there is
// none, the worst finding; else that nothing is wrong.
function firstSentences(data) {
  const shared = (data.causes ?? []).filter((c) => c.shared);
  if (shared.length) return shared.map((c) => ({ severity: c.beside ? 'warning' : 'critical', sentence: c.sentence, remedy: c.remedy }));
  const all = [...data.processors, ...data.groups];
  for (const [loud, need] of [['critical', 'help'], ['warning', 'watching']]) {
    const found = all.filter((p) => p.findings?.some((f) => f.severity === loud)).sort((a, b) => !!a.members - !!b.members || worstFirst(a, b));
    if (!found.length) continue;
    const { sentence, remedy } = found[0].findings.find((f) => f.severity === loud);
    const said = sentence.length > LONGEST ? sentence.slice(0, LONGEST) + ' …' : sentence;
    const others = found.length - 1;
    return [{ severity: loud, name: found[0].name, sentence: said, remedy, more: others ? count(others, 'other') + ' below ' + (others === 1 ? 'needs ' : 'need ') + need + ' as well.' : '' }];
  }
  if (!data.processors.length || all.some((p) => severity(p.status) === 'critical')) return []; // of a release without findings
  return [{ severity: 'ok', sentence: 'nothing is wrong with ' + (data.processors.length === 1 ? 'the processor' : 'any of ' + count(data.processors.length, 'processor')) }];
}

// ranTrouble says for how long something was wrong in a time of a report.
const ranTrouble = (m) => ['expiring', 'stalled', 'uncovered', 'unclaimed'].filter((s) => m.statusSeconds[s] > 0).map((s) => s + ' ' + span(m.statusSeconds[s])).join(', ');

// trendWords says in words what a small chart shows.
function trendWords(values, since, step, now) {
  const known = values.filter((v) => v !== null);
  if (!known.length) return 'nothing is known';
  const most = Math.max(...known);
  return 'most ' + number(most) + ' at ' + clock(since + values.indexOf(most) * step, now).slice(0, -7) + ', last ' + number(known.at(-1));
}

// matches tells whether a processor is among those that a filter asks for: it has one of the statuses,
// if there are any, and all of the words are in its name, group, status or error.
function matches(p, words, statuses) {
  if (statuses.length && !statuses.includes(p.status)) return false;
  const text = [p.name, p.group ?? '', p.members ? 'group' : '', p.status, p.error ?? '', p.paused ? 'paused' : ''].join(' ').toLowerCase();
  return words.trim().toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

// highest are the members that ask for as many replicas as any.
function highest(members) {
  const most = Math.max(...members.map((m) => m.desiredReplicas ?? -1));
  return most < 0 ? [] : members.filter((m) => m.desiredReplicas === most).map((m) => m.processor);
}

// note is what a partition has to say beside its numbers.
function note(q, now) {
  const parts = [];
  if (q.stall) parts.push(q.stall.kind + ' since ' + clock(q.stall.since, now) + (q.stall.owners?.length ? ', owners seen: ' + q.stall.owners.join(', ') : ''));
  if (q.rewound) parts.push('rewound from LSN ' + q.rewound.from + ' to ' + q.rewound.to + ' at ' + clock(q.rewound.time, now));
  if (q.ahead) parts.push('ahead: at LSN ' + q.ahead.position + ', the feed at ' + q.ahead.feed);
  if (q.carried) parts.push('carried: measured at ' + clock(q.carried, now));
  if (q.approximate) parts.push('approximate');
  if (q.error !== null) parts.push(q.error);
  return parts.join('; ');
}

// refusal says what an answer other than 200 means, and what to do.
function refusal(status, detail) {
  if (status === 401 || status === 403) {
    return 'The key does not open the list of processors' + (detail ? ' (' + detail + ')' : '') +
      '. Give one below, or open this page with ?code= and a key of the whole app (a host key), since a key of this function alone is not enough.';
  }
  return 'The server answers ' + status + (detail ? ': ' + detail : '') + '.';
}

// Data older than this is remarked upon, in seconds.
const OLD = 5 * 60;

// tooOld is what to say if no processor was measured for long and no cause says why.
function tooOld(processors, causes, now) {
  if (causes.some((c) => !c.beside)) return '';
  const last = Math.max(...processors.map(polled));
  const seconds = (now - last) / 1000;
  if (processors.length === 0 || seconds < OLD) return '';
  return (last === -Infinity ? 'No processor was ever measured.' : 'Nothing was measured since ' + clock(last, now) + '.') +
    ' Unless the schedules ask for that, check that the poller runs: its log has a line tick for each poll.';
}

// pause is how long to wait for the next question, in ms, after an answer that took so long, and so
// many failures in a row: what is slow is asked less.
const EVERY = 10_000;
const pause = (took, failures) => Math.min(60_000, Math.max(EVERY, 10 * took, failures ? EVERY * 2 ** Math.min(failures, 3) : 0));

// news is what a screen reader is told: which processors turned bad since the last answer.
function news(before, after) {
  const bad = new Set(before.filter((p) => severity(p.status) === 'critical').map((p) => p.name + ' ' + p.status));
  const fresh = after.filter((p) => severity(p.status) === 'critical' && !bad.has(p.name + ' ' + p.status));
  if (fresh.length === 0) return '';
  if (fresh.length > 3) return count(fresh.length, 'processor') + ' turned bad.';
  return fresh.map((p) => p.name + ' is ' + p.status).join(', ') + '.';
}
